"""A report goes in; the same comes out with markup and odd characters in every text that others wrote.

Whatever a student, a teacher or a learning platform wrote has to be read as it was written, and to do nothing.
"""

from typing import Any

from grader.report import Report

MARKUP = "<img src=x onerror=alert(1)>"
SPELL = f"\"'>{MARKUP}<script>alert(2)</script></title></style>{{{{7*7}}}}&amp;‮\u0007\ufffd"
NAME = f" {MARKUP}"

SPOILED = frozenset(
    (
        "message",
        "where",
        "why",
        "chapter",
        "advice",
        "rejection",
        "denies",
        "hint",
        "hints",
        "detail",
        "next_step",
        "path",
    )
)


def spoiled(report: Report) -> Report:
    def spoil(value: Any, key: str = "") -> Any:
        match value:
            case dict():
                return {name: spoil(inner, name) for name, inner in value.items()}
            case list() | tuple():
                return [spoil(inner, key) for inner in value]
            case str() if key in SPOILED and value:
                return f"{value} {SPELL}"
            case str() if key in ("file", "killed_by", "kills", "rejected_by") or (key == "id" and "::" in value):
                return f"{value}{SPELL}"
        return value

    return Report.model_validate(spoil(report.model_dump(by_alias=True)))
