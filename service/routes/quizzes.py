"""A student's answers to a unit's questions go in and are marked; the questions, and a class's answers, come out."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from grader.quiz import Choices, Mark, Quiz, Shapes
from grader.unit import Unit
from service import accounts, links, offerings, quizzes, schedules, wording
from service.answers import moment
from service.database import reading, writing
from service.dependencies import Caller, ClassReader, CourseId, KnownCaller, Served, Wanted, token_invalid
from service.posted import NAME_CHARS, STORABLE
from service.problems import Problem, documented
from service.quizzes import Answered
from service.routes.offerings import UNIT

router = APIRouter(tags=["quiz"])

HERE = "/v1/units/{unit}/quiz"
MOST_QUESTIONS = 100

CourseAsked = Annotated[str, Query(pattern=schedules.COURSE_ID, description="whose answers are shown")]


class ChoiceAnswer(BaseModel):
    model_config = ConfigDict(frozen=True)

    id: str
    text: str


class QuestionAnswer(BaseModel):
    model_config = ConfigDict(frozen=True)

    id: str
    kind: str = Field(description="shapes: a shape for each of `parts`; choice: one of `choices`; text: free")
    text: str
    parts: tuple[str, ...] = ()
    choices: tuple[ChoiceAnswer, ...] = ()


class MarkedAnswer(BaseModel):
    model_config = ConfigDict(frozen=True)

    question: str
    answer: str = Field(description="as it was understood")
    mark: Mark
    message: str
    answered_at: datetime


class QuizAnswer(BaseModel):
    model_config = ConfigDict(frozen=True)

    unit: str
    questions: tuple[QuestionAnswer, ...]
    answers: tuple[MarkedAnswer, ...] = Field(description="the caller's latest, if the caller is a student")


class QuizBody(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    course: Annotated[str, Field(pattern=schedules.COURSE_ID)] = schedules.DEFAULT_COURSE
    answers: Annotated[dict[str, Any], Field(max_length=MOST_QUESTIONS)] = Field(
        description="by question: a text, or for several shapes an object from part to text"
    )


class StudentAnswers(BaseModel):
    model_config = ConfigDict(frozen=True)

    student: str
    answers: tuple[MarkedAnswer, ...]


class ClassAnswers(BaseModel):
    model_config = ConfigDict(frozen=True)

    students: tuple[StudentAnswers, ...]
    next: str | None


@router.get(HERE, summary="The questions of a unit", responses=documented(401, 404, 422))
def questions(
    account: KnownCaller, unit: Wanted, service: Served, course: CourseAsked = schedules.DEFAULT_COURSE
) -> QuizAnswer:
    quiz = _quiz(unit)
    within = account.within(course) if account is not None else None
    found: tuple[Answered, ...] = ()
    if within is not None and within.student is not None:
        with reading(service.engine) as connection:
            found = quizzes.of_student(connection, course, unit.id, within.student)
    return _shown(unit, quiz, found)


@router.post(HERE, summary="Answer questions of a unit", responses=documented(401, 403, 404, 422))
def answer(account: Caller, unit: Wanted, body: QuizBody, service: Served) -> QuizAnswer:
    quiz = _quiz(unit)
    within = account.within(body.course)
    if within is None or within.student is None:
        raise Problem(403, "role_missing", wording.QUIZ_OF_STUDENTS)
    now = service.clock()
    with writing(service.engine) as connection:
        if not accounts.hold(connection, account.id, now):  # its student may have been erased a moment ago
            raise token_invalid()
        if offerings.find(connection, body.course) is None:
            raise Problem(422, "course_unknown", wording.course_unknown(body.course))
        found = quizzes.put(
            connection, quiz, body.answers, course=body.course, unit=unit.id, student=within.student, now=now
        )
    return _shown(unit, quiz, found)


@router.get(UNIT + "/quiz", summary="What a class answered, for staff", responses=documented(401, 403, 404, 422))
def of_class(
    request: Request,
    account: ClassReader,
    course: CourseId,
    unit: Wanted,
    service: Served,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    after: Annotated[
        str | None, Query(max_length=NAME_CHARS, pattern=STORABLE, description="the last student of the page before")
    ] = None,
) -> ClassAnswers:
    _quiz(unit)
    with reading(service.engine) as connection:
        found, last = quizzes.of_class(connection, course, unit.id, after, limit)
    students = tuple(StudentAnswers(student=name, answers=_marked(each)) for name, each in found.items())
    return ClassAnswers(students=students, next=links.next_page(request, after=last))


def _quiz(unit: Unit) -> Quiz:
    if unit.quiz is None:
        raise Problem(404, "quiz_unknown", wording.quiz_unknown(unit.id))
    return unit.quiz


def _shown(unit: Unit, quiz: Quiz, found: Iterable[Answered]) -> QuizAnswer:
    asked = tuple(
        QuestionAnswer(
            id=question.id,
            kind=question.kind,
            text=question.text,
            parts=tuple(part.name for part in question.parts) if isinstance(question, Shapes) else (),
            choices=tuple(ChoiceAnswer(id=each.id, text=each.text) for each in question.choices)
            if isinstance(question, Choices)
            else (),
        )
        for question in quiz.questions
    )
    return QuizAnswer(unit=unit.id, questions=asked, answers=_marked(found))


def _marked(found: Iterable[Answered]) -> tuple[MarkedAnswer, ...]:
    return tuple(
        MarkedAnswer(
            question=each.question,
            answer=each.answer,
            mark=each.mark,
            message=each.message,
            answered_at=moment(each.answered_at),
        )
        for each in found
    )
