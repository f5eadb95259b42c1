import json
from xml.etree import ElementTree as ET

import pytest

from grader.formats import MEDIA_TYPES, Format, Material, rendered
from grader.report import Report
from grader.text import render
from grader.unit import Unit
from tests.grader.form_reports import as_seen, failing, the_unit


def test_every_form_has_a_media_type_and_is_what_that_says(unit: Unit) -> None:
    assert set(MEDIA_TYPES) == set(Format)
    for report in as_seen(unit):
        for form, media_type in MEDIA_TYPES.items():
            text = rendered(report, form, Material(the_unit(unit)))
            assert text.endswith("\n")
            if media_type == "application/json":
                assert isinstance(json.loads(text, parse_constant=pytest.fail), dict)
            elif media_type == "application/xml":
                ET.fromstring(text.encode())
            else:
                assert text == render(report)


def test_our_own_json_is_the_report(unit: Unit) -> None:
    report = failing(unit)
    assert Report.model_validate_json(rendered(report, Format.JSON)) == report


def test_points_are_those_of_gradescope_alone(unit: Unit) -> None:
    report = failing(unit)
    for form in Format:
        same = rendered(report, form) == rendered(report, form, points=7.0)
        assert same is (form is not Format.GRADESCOPE)


def test_the_reference_is_in_no_form_unless_the_unit_is_given(unit: Unit) -> None:
    report = failing(unit)
    for form in Format:
        assert "class Double" not in rendered(report, form)
    assert "class Double" in rendered(report, Format.STRYKER, Material(the_unit(unit)))
