"""Requests made up from our own OpenAPI, good and bad: some here, many in ``make fuzz-serve``."""

from __future__ import annotations

import httpx
import pytest
from hypothesis import HealthCheck, given, settings

from tests.serve.conftest import missing_extra

reason = missing_extra("schemathesis")
pytestmark = pytest.mark.skipif(reason is not None, reason=str(reason))

PATHS = [
    ("/predict", "POST"), ("/explain", "POST"), ("/predict.csv", "POST"), ("/ranking", "GET"),
    ("/density", "GET"),
    ("/model", "GET"), ("/models", "GET"), ("/healthz", "GET"), ("/readyz", "GET"), ("/metrics", "GET"),
]  # fmt: skip


def test_requests_of_our_own_schema(serving, models):
    import schemathesis
    from schemathesis import GenerationMode

    with serving(models / "text.maxdisc", models / "table.maxdisc") as service:
        schema = schemathesis.openapi.from_dict(httpx.get(f"{service.url}/openapi.json").json())
        assert set(schema) == {path for path, _ in PATHS}
        for path, method in PATHS:
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                operation = schema[path][method]
                if (
                    mode is GenerationMode.NEGATIVE
                    and method == "GET"
                    and path not in ("/ranking", "/density")
                ):
                    continue  # nothing in it can be wrong

                @given(case=operation.as_strategy(generation_mode=mode))
                @settings(
                    max_examples=8, deadline=None, database=None, suppress_health_check=list(HealthCheck)
                )
                def check(case):
                    answer = case.call(base_url=service.url)
                    assert answer.status_code < 500, (answer.status_code, answer.text)
                    if answer.status_code >= 400:
                        assert "\n" not in answer.json()["error"]
                    else:
                        case.validate_response(answer)

                check()
        assert not service.events("defect")
