import json
from pathlib import Path

import jsonschema
import pytest

from grader import conclude
from grader.report import Report
from grader.schema import schema
from grader.unit import Unit
from grader.views import for_role
from sandbox.errors import EngineFailed
from tests.grader.simulated import ABOUT, Act, SimulatedSuite, a_unit

PUBLISHED = Path(__file__).resolve().parents[2] / "docs" / "report.schema.json"


def reports(unit: Unit) -> list[Report]:
    unit = a_unit(unit, ["m1", "m2"], required=["m1"])
    acts = {"m1": {"test_a": Act.HANG}, "m2": {"test_a": Act.CRASH}, "w01": {"test_b": Act.FAIL}}
    whole = SimulatedSuite(unit, ("test_a", "test_b"), acts).grade()
    return [
        whole,
        for_role(whole, "student"),
        SimulatedSuite(unit, ()).grade(),
        conclude.rejected("Z1", ABOUT, "link", "This is a link."),
        conclude.failed("Z1", ABOUT, "", EngineFailed("gone")),
    ]


def test_the_published_schema_is_that_of_the_models() -> None:
    assert PUBLISHED.read_text(encoding="utf-8") == schema()


def test_reports_of_every_kind_are_valid_by_the_published_schema(unit: Unit) -> None:
    validator = jsonschema.Draft202012Validator(
        json.loads(PUBLISHED.read_text(encoding="utf-8")), format_checker=jsonschema.FormatChecker()
    )
    for report in reports(unit):
        validator.validate(json.loads(report.to_json()))


def test_the_schema_allows_no_unknown_field_and_no_verdict_of_another_name(unit: Unit) -> None:
    validator = jsonschema.Draft202012Validator(json.loads(schema()))
    good = json.loads(reports(unit)[0].to_json())
    for bad in ({**good, "more": 1}, {**good, "verdict": "maybe"}, {**good, "score": 1.5}):
        with pytest.raises(jsonschema.ValidationError):
            validator.validate(bad)


def test_reports_read_back_as_they_were_written(unit: Unit) -> None:
    for report in reports(unit):
        assert Report.model_validate_json(report.to_json()) == report


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_are_not_finite_are_refused_when_a_report_is_built(unit: Unit, number: float) -> None:
    good = reports(unit)[0].model_dump(by_alias=True)
    with pytest.raises(ValueError):
        Report.model_validate({**good, "score": number})
    with pytest.raises(ValueError):
        Report.model_validate({**good, "timing": {"queued": 0.0, "phases": {"x": number}, "total": 0.0}})
