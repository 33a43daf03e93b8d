"""What exists while the application runs: made by the lifespan, reached by routes through one dependency."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, cast

from attrs import frozen
from fastapi import Depends, Request
from sqlalchemy import Engine

from policy.profile import Known
from server.asking import Asking
from server.live import Live
from server.metrics import Metrics
from server.settings import Settings
from server.store import Store


@frozen(eq=False)
class State:
    """The service's parts."""

    settings: Settings
    engine: Engine
    store: Store
    asking: Asking
    profiles: Sequence[Known]
    live: Live | None
    metrics: Metrics


def state_of(request: Request) -> State:
    """Return the running application's parts."""
    return cast(State, request.app.state.rowsmith)


Running = Annotated[State, Depends(state_of)]
