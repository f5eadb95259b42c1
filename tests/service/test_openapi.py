"""Schemathesis tries what OpenAPI describes, on both databases: the same cases on every run.

The longer run, by hand: AUTOGRADER_FUZZ=500 python -m pytest tests/service/test_openapi.py
"""

import os
from contextlib import suppress

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from service import database, outbox, tables
from service.worker import FakeGrading
from tests.service import samples
from tests.service.live import live

pytestmark = pytest.mark.both_databases

EXAMPLES = int(os.environ.get("AUTOGRADER_FUZZ", "6"))
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


def bounded(test):
    return settings(
        max_examples=EXAMPLES,
        derandomize="AUTOGRADER_FUZZ" not in os.environ,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )(test)


@pytest.mark.parametrize("real", [False, True], ids=["any names", "names that are there"])
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_every_answer_is_as_described_and_none_is_our_failure(bench, mode, real):
    submission = bench.submitted("ada")
    [run] = bench.queue.submitted
    bench.graded(bench.worker(FakeGrading(samples.surviving("s01", "m01"))))
    names = {"unit": "L0.0", "course": "default", "student": "ada", "submission_id": submission, "run_id": run}
    with database.writing(bench.engine) as connection:
        told = {"platform": "p", "line_item": "https://lms.example/1", "recipient": "7", "now": bench.clock()}
        outbox.connect(connection, course="default", unit="L0.0", student="ada", **told)
    names["delivery"] = bench.rows(tables.deliveries)[0].id
    names |= {"mutant": "m01", "number": 1}
    schema = schemathesis.openapi.from_dict(bench.app.openapi())
    tried = 0
    with live(bench.app, bench.settings) as running:
        for found in schema.get_all_operations():
            operation = found.ok()
            if operation.label == "GET /readyz":  # no worker runs here, and its 503 is our failure to schemathesis
                continue
            here = {name: value for name, value in names.items() if f"{{{name}}}" in operation.path}
            if real and (not here or operation.label == "DELETE /v1/students/{student}"):
                continue

            @bounded
            @given(case=operation.as_strategy(generation_mode=mode, path_parameters=here if real else None))
            def try_one(case):
                nonlocal tried
                tried += 1
                headers = bench.auth("admin")
                answer = case.call(base_url=running.url, headers=headers, timeout=30)
                case.validate_response(answer, checks=CHECKS)

            with suppress(Unsatisfiable):  # there may be nothing to get wrong
                try_one()
    assert tried > 8 * EXAMPLES
