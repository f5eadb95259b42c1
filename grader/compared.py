"""What a course test said arrives; its words leave, and the arrays that it compared, if it told of them in the form of
the course's tests/_lib/piece.py. And two such arrays arrive; they leave side by side, as lines of text. Pure.

What a test says was made in one process with the student's code, so anything can stand there: what is not in this form
to the letter, or too large, stays words. (docs/decisions/0227)
"""

from collections.abc import Iterator

from pydantic import ValidationError

from grader import wording
from grader.report import ComparedPart, CourseTestPart, Rows

MARK = "Compared: "
MOST_BESIDE = 5  # columns of each, so that both fit a terminal


def taken_from(message: str) -> tuple[str, ComparedPart | None]:
    """The message without the arrays, and the arrays; the message as it is and None where there are none."""
    words, mark, said = message.rpartition(f"\n{MARK}")
    if not mark:
        return message, None
    try:
        return words, ComparedPart.model_validate_json(said)
    except ValidationError:
        return message, None


def said(test: CourseTestPart) -> str:
    """What a course test said, with the arrays that it compared side by side below."""
    return "\n".join((test.message, *(side_by_side(test.compared) if test.compared is not None else ())))


def side_by_side(part: ComparedPart) -> Iterator[str]:
    """Expected left, the student's right; wide ones one above the other. The first place where they differ stands in
    brackets."""
    yield wording.compared_place(part.axes, part.shape, part.at)
    left, right = _table(part, part.expected), _table(part, part.actual)
    if len(part.expected[0]) > MOST_BESIDE:
        yield from (f" {wording.EXPECTED}", *left, f" {wording.ACTUAL}", *right)
        return
    yield f" {wording.EXPECTED:<{len(left[0])}}   {wording.ACTUAL}"
    for mine, yours in zip(left, right, strict=True):
        yield f"{mine}    {yours}"


def _table(part: ComparedPart, rows: Rows) -> list[str]:
    texts = [[number(entry) for entry in row] for row in rows]
    width = max(len(wording.EXPECTED) // len(texts[0]), *(len(text) for row in texts for text in row))
    lines = []
    for y, row in enumerate(texts):
        marked = [
            f"[{text:>{width}}]" if (y, x) == (part.row, part.column) else f" {text:>{width}} "
            for x, text in enumerate(row)
        ]
        lines.append("".join(marked))
    return lines


def number(entry: float | str) -> str:
    return entry if isinstance(entry, str) else f"{entry:.4g}"
