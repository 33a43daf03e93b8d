"""Generated requests, good and bad, to every operation of a real server: each answer is one the document allows."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as limits
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS

from tests.server.service import QUESTION, fresh, process

# What a document cannot say is judged by the service: which cursors, digests and names there are, which strides fit.
# A batch is answered as a whole, and each bad item within it.
LEFT_OUT = {"": ["positive_data_acceptance"], "POST /v1/selections:batch": ["negative_data_rejection"]}
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
            left_out = CHECKS.get_by_names(LEFT_OUT[""] + LEFT_OUT.get(operation.label, []))
            ask(operation.as_strategy(generation_mode=mode), address, left_out)
        except Unsatisfiable:  # what takes nothing, or any text in its path, cannot be asked wrongly
            assert mode is GenerationMode.NEGATIVE, operation.label
            assert not operation.query, operation.label
            assert not operation.body, operation.label
    assert httpx.get(f"{address}/readyz").status_code == 200


def ask(strategy: Any, address: str, left_out: list[Any]) -> None:
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
        case.call_and_validate(base_url=address, excluded_checks=left_out)

    run()
