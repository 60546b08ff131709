"""The REST API is as its description says: schemathesis makes requests from /openapi.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode, checks
from schemathesis.core.result import Ok

from tests.app.conftest import serving

CHECKS = (
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
)


@pytest.mark.slow
@pytest.mark.parametrize("mode", list(GenerationMode))
def test_every_answer_is_one_that_the_description_lists(runs: list[Path], mode: GenerationMode) -> None:
    """To requests that are as they should be, and to others."""
    with serving(runs[:1]) as served:
        schema = schemathesis.openapi.from_url(f"{served.link}/openapi.json")
        operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
        assert len(operations) >= 9
        for operation in operations:
            if mode is GenerationMode.NEGATIVE and operation.path == "/api/models":
                continue  # it takes nothing that could be wrong

            @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), database=None)
            @given(case=operation.as_strategy(generation_mode=mode))
            def attempt(case: schemathesis.Case[Any]) -> None:
                case.validate_response(case.call(timeout=60), checks=list(CHECKS))

            attempt()
