"""Quizzes load or say where they are wrong; answers are graded however they are written, and never raise."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grader.errors import LoadError
from grader.quiz import MOST_CHARACTERS, MOST_SHAPE_CHARACTERS, Mark, grade, load, points, shape_of

QUIZ = """\
[[questions]]
id = "shapes"
text = "Which shapes?"
kind = "shapes"
parts = [{ name = "in", answer = [2, 3] }, { name = "out", answer = [] }]
explanation = "As it is."

[[questions]]
id = "count"
text = "How many?"
kind = "choice"
choices = [
    { id = "same", text = "As many." },
    { id = "more", text = "More.", why = "Not more." },
    { id = "less", text = "Less" },
]
answer = "same"
explanation = "Count them."

[[questions]]
id = "reason"
text = "Why?"
kind = "text"
"""
COURSE = Path(__file__).resolve().parents[2] / "course"
quiz = load("quiz/Z1.toml", QUIZ.encode())


def one(question: str, answer: Any) -> tuple[Mark, str]:
    (result,) = [each for each in grade(quiz, {question: answer}) if each.id == question]
    return result.mark, result.message


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("(2,3,5,4)", (2, 3, 5, 4)),
        ("[2, 3, 5, 4]", (2, 3, 5, 4)),
        ("2x3x5x4", (2, 3, 5, 4)),
        ("2 × 3 X 5 * 4", (2, 3, 5, 4)),
        ("2 3 5 4", (2, 3, 5, 4)),
        ("torch.Size([2, 3])", (2, 3)),
        ("B=2, H=3", (2, 3)),
        ("(7,)", (7,)),
        (" 7 ", (7,)),
        ("()", ()),
        ("[]", ()),
        ("", None),
        ("two, three", None),
        ("2,,3", None),
        ("-2, 3", None),
        ("2.5, 3", None),
        ("2x", None),
        ("1 " * 17, None),
        ("²x3", None),
    ],
)
def test_a_shape_is_read_however_it_is_written(text: str, shape: tuple[int, ...] | None) -> None:
    assert shape_of(text) == shape


def test_shapes_are_right_only_if_every_part_is_and_the_wrong_one_is_named() -> None:
    assert one("shapes", {"in": "2x3", "out": "()"}) == (Mark.RIGHT, "As it is.")
    assert one("shapes", {"in": [2, 3], "out": []}) == (Mark.RIGHT, "As it is.")
    for wrong, named in (({"in": "3x2", "out": "()"}, "in: "), ({"in": "2x3", "out": "1"}, "out: "), ("2x3", "out: ")):
        mark, message = one("shapes", wrong)
        assert mark is Mark.WRONG
        assert message.startswith(named)
        assert "2, 3" not in message


def test_a_choice_is_made_by_its_id_or_its_text_and_a_wrong_one_is_told_why() -> None:
    for text in ("same", "SAME ", "As many.", "as  many"):
        assert one("count", text) == (Mark.RIGHT, "Count them.")
    assert one("count", "more") == (Mark.WRONG, "Not more.")
    assert one("count", "less")[0] is Mark.WRONG
    mark, message = one("count", "many")
    assert mark is Mark.WRONG and "same, more, less" in message


def test_a_text_is_kept_whole_up_to_a_length_and_marked_by_nobody() -> None:
    (_, _, result) = grade(quiz, {"reason": " Because. "})
    assert (result.mark, result.answer) == (Mark.KEPT, "Because.")
    (_, _, result) = grade(quiz, {"reason": "x" * (MOST_CHARACTERS + 1)})
    assert result.answer.startswith("x" * MOST_CHARACTERS) and result.answer.endswith("too long)")


def test_what_is_not_answered_is_said_to_be_and_points_count_what_a_machine_can_tell() -> None:
    results = grade(quiz, {"count": "same", "reason": "Because.", "other": "ignored"})
    assert [result.mark for result in results] == [Mark.UNANSWERED, Mark.RIGHT, Mark.KEPT]
    assert points(results) == (1, 2)
    assert points(grade(quiz, {})) == (0, 3)


def test_a_text_too_long_for_a_shape_is_none_whatever_it_says() -> None:
    assert shape_of("2" + " " * MOST_SHAPE_CHARACTERS) is None


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["in", "out", "y"]), inner, max_size=3),
    max_leaves=5,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(["shapes", "count", "reason", "x"]), ANYTHING))
def test_nothing_that_is_sent_raises(answers: dict[str, Any]) -> None:
    assert [result.id for result in grade(quiz, answers)] == ["shapes", "count", "reason"]


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        ("answer = [2, 3]", "answer = [2, -3]", 1, "greater than or equal"),
        ('kind = "shapes"', 'kind = "riddle"', 1, "riddle"),
        ('answer = "same"', 'answer = "none"', 8, "none of the choices"),
        ('id = "count"', 'id = "shapes"', 0, "same name"),
        ('name = "out"', 'name = "in"', 1, "same name"),
        ('text = "Why?"', 'text = "Why?"\npoints = 3', 22, "points"),
        ('kind = "text"', "kind = text", 23, "TOML"),
    ],
)
def test_a_malformed_quiz_is_refused_with_file_line_and_reason(old: str, new: str, line: int, reason: str) -> None:
    assert QUIZ.count(old) == 1
    with pytest.raises(LoadError) as refused:
        load("quiz/Z1.toml", QUIZ.replace(old, new).encode())
    assert (refused.value.file, refused.value.line) == ("quiz/Z1.toml", line)
    assert reason in refused.value.reason


# -- the course's own quizzes ------------------------------------------------------------------------------------------


def test_the_quiz_of_2_3_takes_the_right_answers_and_no_others() -> None:
    course_quiz = load("quiz/2.3.toml", (COURSE / "quiz/2.3.toml").read_bytes())
    B, T, D, H = 2, 5, 12, 3
    shapes = {"enters attention": f"({B}, {H}, {T}, {D // H})", "leaves the merge": f"{B}x{T}x{D}"}
    results = grade(course_quiz, {"shapes": shapes, "parameters": "same", "gradients": "A detached weight."})
    assert [result.mark for result in results] == [Mark.RIGHT, Mark.RIGHT, Mark.KEPT]
    assert points(results) == (2, 2)
    unsplit = {**shapes, "enters attention": f"({B}, {T}, {H}, {D // H})"}
    for answers in ({"shapes": unsplit, "parameters": "doubles"}, {"shapes": "2x5x12", "parameters": "halves"}):
        results = grade(course_quiz, answers)
        assert [result.mark for result in results] == [Mark.WRONG, Mark.WRONG, Mark.UNANSWERED]
        assert all(len(result.message) > 30 for result in results[:2])
