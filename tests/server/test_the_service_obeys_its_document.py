"""Generated requests, good and bad, to every operation of a real server: each answer is one that the document allows."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as limits
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode

from tests.server.service import QUESTION, fresh, process

EXAMPLES_AN_OPERATION = 12  # for each mode: about 20 s in all


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with a selection in it."""
    folder = tmp_path_factory.mktemp("document")
    fresh(folder)
    with process(folder) as (_, found):
        httpx.post(f"{found}/v1/selections", json=QUESTION)
        yield found


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_every_operation(address: str, mode: GenerationMode) -> None:
    """No server error, only documented statuses, types and forms; what the document forbids is refused."""
    schema = schemathesis.openapi.from_url(f"{address}/openapi.json")
    for found in schema.get_all_operations():
        operation = found.ok()
        try:
            ask(operation.as_strategy(generation_mode=mode), address)
        except Unsatisfiable:  # what takes nothing, or any text in its path, cannot be asked wrongly
            assert mode is GenerationMode.NEGATIVE, operation.label
            assert not (operation.query or operation.body), operation.label
    assert httpx.get(f"{address}/readyz").status_code == 200


def ask(strategy: Any, address: str) -> None:
    """Ask one operation with what Hypothesis makes of its document."""

    @limits(
        max_examples=EXAMPLES_AN_OPERATION,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy)
    def run(case: Any) -> None:
        case.call_and_validate(base_url=address)

    run()
