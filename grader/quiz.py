"""A unit's quiz file and a student's answers go in; what each answer is worth, and why, comes out.

[[questions]]
id = "shapes"
text = "What is asked"
kind = "shapes"                                       numbers in order, written as (2, 3), [2, 3], 2x3 or 2 3
parts = [{ name = "queries", answer = [2, 3, 5, 4] }]
explanation = "Shown with the result"

[[questions]]
id = "count"
kind = "choice"                                       one of `choices`; `why` is said to who chose a wrong one
choices = [{ id = "same", text = "It stays." }, { id = "doubles", text = "It doubles.", why = "…" }]
answer = "same"

[[questions]]
id = "reason"
kind = "text"                                         kept for the teacher, graded by nobody here

Answers are a mapping from question ids to a text, of shapes with several parts to a mapping from part names to texts. A
question without an answer is not an error, and nothing a student sends raises.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from grader import wording
from grader.course_file import settings_of

MOST_CHARACTERS = 5_000  # of one answer; what is beyond is cut, and said to be
MOST_AXES = 16
MOST_SHAPE_CHARACTERS = 500  # of a text that is read as a shape

Text = Annotated[str, Field(min_length=1)]
Id = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Part(_Table):
    """One shape that is asked for."""

    name: Text
    answer: Annotated[list[Annotated[int, Field(ge=0)]], Field(max_length=MOST_AXES)]


class Choice(_Table):
    """One of the answers to choose from; `why` it is wrong, if it is."""

    id: Id
    text: Text
    why: str = ""


class Shapes(_Table):
    kind: Literal["shapes"]
    id: Id
    text: Text
    explanation: str = ""
    parts: Annotated[list[Part], Field(min_length=1)]

    @model_validator(mode="after")
    def _distinct(self) -> "Shapes":
        _no_two_alike([part.name for part in self.parts], "parts")
        return self


class Choices(_Table):
    kind: Literal["choice"]
    id: Id
    text: Text
    explanation: str = ""
    choices: Annotated[list[Choice], Field(min_length=2)]
    answer: Id

    @model_validator(mode="after")
    def _answerable(self) -> "Choices":
        _no_two_alike([choice.id for choice in self.choices], "choices")
        if self.answer not in {choice.id for choice in self.choices}:
            raise ValueError(f"the answer {self.answer} is none of the choices")
        return self


class FreeText(_Table):
    kind: Literal["text"]
    id: Id
    text: Text
    explanation: str = ""


Question = Annotated[Shapes | Choices | FreeText, Field(discriminator="kind")]


class Quiz(_Table):
    """The questions of a unit, in their order."""

    questions: Annotated[list[Question], Field(min_length=1)]

    @model_validator(mode="after")
    def _distinct(self) -> "Quiz":
        _no_two_alike([question.id for question in self.questions], "questions")
        return self


def _no_two_alike(names: list[str], what: str) -> None:
    if len(set(names)) < len(names):
        raise ValueError(f"two of the {what} have the same name")


class Mark(StrEnum):
    RIGHT = "right"
    WRONG = "wrong"
    KEPT = "kept"  # for the teacher to read
    UNANSWERED = "unanswered"


@dataclass(frozen=True)
class Result:
    """What became of one question. `answer` is the student's, as it was understood; `message` says what to do."""

    id: str
    mark: Mark
    answer: str
    message: str


def load(file: str, data: bytes) -> Quiz:
    """Parse and check a quiz file named `file`. Raises LoadError with the line at fault."""
    return settings_of(file, data, Quiz)


def grade(quiz: Quiz, answers: Mapping[str, Any]) -> tuple[Result, ...]:
    """One result for each question, in order. Answers to questions that are not asked are passed over."""
    return tuple(_graded(question, answers.get(question.id)) for question in quiz.questions)


def points(results: tuple[Result, ...]) -> tuple[int, int]:
    """How many questions were answered rightly, of how many that a machine can tell; kept texts count in neither."""
    told = [result for result in results if result.mark is not Mark.KEPT]
    return sum(result.mark is Mark.RIGHT for result in told), len(told)


def _graded(question: Shapes | Choices | FreeText, answer: Any) -> Result:
    match question:
        case Shapes():
            return _shapes(question, answer)
        case Choices():
            return _choice(question, _text(answer))
        case FreeText():
            return _free(question, _text(answer))


def _shapes(question: Shapes, answer: Any) -> Result:
    """Every part has to be right; the first that is not is named, without its answer."""
    given = answer if isinstance(answer, Mapping) else {question.parts[0].name: answer}
    texts = {part.name: _text(given.get(part.name)) for part in question.parts}
    if not any(texts.values()):
        return Result(question.id, Mark.UNANSWERED, "", wording.QUIZ_UNANSWERED)
    read = {name: shape_of(text) for name, text in texts.items()}
    shown = "; ".join(f"{name}: {_shown(texts[name], shape)}" for name, shape in read.items())
    for part in question.parts:
        shape = read[part.name]
        if shape is None:
            return Result(question.id, Mark.WRONG, shown, wording.quiz_no_shape(part.name))
        if shape != tuple(part.answer):
            return Result(question.id, Mark.WRONG, shown, wording.quiz_wrong_part(part.name))
    return Result(question.id, Mark.RIGHT, shown, question.explanation)


def _choice(question: Choices, text: str) -> Result:
    """Chosen by id or by the whole text, however they are spelt."""
    if not text:
        return Result(question.id, Mark.UNANSWERED, "", wording.QUIZ_UNANSWERED)
    chosen = next((each for each in question.choices if _plain(text) in (_plain(each.id), _plain(each.text))), None)
    if chosen is None:
        return Result(question.id, Mark.WRONG, text, wording.quiz_no_choice([each.id for each in question.choices]))
    if chosen.id == question.answer:
        return Result(question.id, Mark.RIGHT, chosen.id, question.explanation)
    return Result(question.id, Mark.WRONG, chosen.id, chosen.why or wording.QUIZ_WRONG)


def _free(question: FreeText, text: str) -> Result:
    if not text:
        return Result(question.id, Mark.UNANSWERED, "", wording.QUIZ_UNANSWERED)
    return Result(question.id, Mark.KEPT, text, question.explanation or wording.QUIZ_KEPT)


def shape_of(text: str) -> tuple[int, ...] | None:
    """A shape however it is written: (2, 3), [2,3], 2x3, 2 × 3, torch.Size([2, 3]), B=2 T=3; None for anything else.

    The empty shape is () or [].
    """
    if len(text) > MOST_SHAPE_CHARACTERS:
        return None
    plain = re.sub(r"^\s*(torch\.Size|tuple|list|shape)?\s*", "", text.strip(), count=1)
    plain = re.sub(r"[A-Za-z_]\w*\s*=\s*(?=\d)", "", plain)  # names of axes
    plain = re.sub(r"[()\[\]{}]", " ", plain)
    if not plain.strip():
        return () if re.search(r"[(\[]", text) else None
    if not re.fullmatch(r"\s*[0-9]{1,9}(\s*[,;xX*×]\s*[0-9]{1,9}|\s+[0-9]{1,9})*\s*,?\s*", plain, re.ASCII):
        return None
    numbers = tuple(int(number) for number in re.findall(r"[0-9]+", plain))
    return numbers if len(numbers) <= MOST_AXES else None


def _shown(text: str, shape: tuple[int, ...] | None) -> str:
    return text if shape is None else str(list(shape))


def _text(answer: Any) -> str:
    """An answer as text; what is no text, number or list of numbers counts as none."""
    if isinstance(answer, list | tuple) and all(type(each) is int for each in answer):
        answer = str(list(answer))
    if isinstance(answer, int) and not isinstance(answer, bool):
        answer = str(answer)
    if not isinstance(answer, str):
        return ""
    text = answer.strip().encode(errors="replace").decode()  # half a character is none, and no database keeps it
    return text if len(text) <= MOST_CHARACTERS else text[:MOST_CHARACTERS] + wording.QUIZ_CUT


def _plain(text: str) -> str:
    return re.sub(r"\W+", " ", text).strip().casefold()
