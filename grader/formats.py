"""A report, as its reader may see it, arrives with the form it is wanted in; the text to send leaves. Pure."""

from dataclasses import dataclass
from enum import StrEnum

from grader import gradescope, junit, stryker, text
from grader.gradescope import POINTS
from grader.report import Level, Report
from grader.unit import Unit
from sandbox.records import File


class Format(StrEnum):
    JSON = "json"
    TEXT = "text"
    STRYKER = "stryker"
    GRADESCOPE = "gradescope"
    JUNIT = "junit"


MEDIA_TYPES = {
    Format.JSON: "application/json",
    Format.TEXT: "text/plain",
    Format.STRYKER: "application/json",
    Format.GRADESCOPE: "application/json",
    Format.JUNIT: "application/xml",
}


@dataclass(frozen=True)
class Material:
    """What a form shows beside the report: the unit, for readers who may see its reference, and the tests sent."""

    unit: Unit | None = None
    tests: tuple[File, ...] = ()


def rendered(
    report: Report,
    form: Format,
    material: Material | None = None,
    points: float = POINTS,
    level: Level = Level.HINTS,
) -> str:
    """The report in a form, ending in a newline; `points` is what a full score is worth on Gradescope, `level` how much
    students are told there, whoever asks."""
    match form:
        case Format.JSON:
            return report.to_json()
        case Format.TEXT:
            return text.render(report)
        case Format.STRYKER:
            material = material or Material()
            return stryker.render(report, material.unit, material.tests)
        case Format.GRADESCOPE:
            return gradescope.render(report, points, level)
        case Format.JUNIT:
            return junit.render(report)
