"""A grade that a teacher sets by hand, with the reason, goes in and is stored; as they stand, they come out.

Every change is in the audit log and reaches the learning platform.
"""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from service import offerings, overrides, walltime, wording
from service.answers import Share
from service.audit import By
from service.database import reading, writing
from service.dependencies import ClassEditor, ClassReader, CourseId, RequestId, Served, Wanted
from service.offerings import Offering
from service.overrides import Override
from service.problems import Problem, documented
from service.routes.offerings import UNIT, Student

router = APIRouter(tags=["grades"])

OVERRIDES = UNIT + "/overrides"
OVERRIDE = OVERRIDES + "/{student:path}"  # a name may hold a slash


class OverrideBody(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    score: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
    reason: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1, max_length=400, pattern=r"^[^\x00-\x1f\x7f]*$")
    ] = Field(description="why; the student reads this too")


class OverrideAnswer(BaseModel):
    model_config = ConfigDict(frozen=True)

    student: str
    score: Share
    reason: str
    set_by: str = Field(description="the token's id")
    set_at: datetime


class OverrideList(BaseModel):
    model_config = ConfigDict(frozen=True)

    overrides: tuple[OverrideAnswer, ...]


@router.get(OVERRIDES, summary="Every grade set by hand for a unit", responses=documented(401, 403, 404, 422))
def all_of_unit(account: ClassReader, course: CourseId, unit: Wanted, service: Served) -> OverrideList:
    with reading(service.engine) as connection:
        offering = offerings.course_of(connection, course)
        found = overrides.of_unit(connection, course, unit.id)
    return OverrideList(overrides=tuple(_shown(each, offering) for each in found.values()))


@router.get(OVERRIDE, summary="The grade set by hand for a student", responses=documented(401, 403, 404, 422))
def one(account: ClassReader, course: CourseId, unit: Wanted, student: Student, service: Served) -> OverrideAnswer:
    with reading(service.engine) as connection:
        offering = offerings.course_of(connection, course)
        found = overrides.find(connection, course, unit.id, student)
    if found is None:
        raise Problem(404, "override_unknown", wording.OVERRIDE_UNKNOWN)
    return _shown(found, offering)


@router.put(OVERRIDE, summary="Set a student's grade by hand", responses=documented(401, 403, 404, 422))
def put(
    account: ClassEditor,
    course: CourseId,
    unit: Wanted,
    student: Student,
    body: OverrideBody,
    service: Served,
    request_id: RequestId,
) -> OverrideAnswer:
    now = service.clock()
    with writing(service.engine) as connection:
        offering = offerings.course_of(connection, course)
        wanted = Override(student, body.score, body.reason, account.id, now)
        overrides.put(connection, course, unit.id, wanted, By(account, now, request_id))
    return _shown(wanted, offering)


@router.delete(
    OVERRIDE,
    summary="Let a student's submissions be the grade again",
    status_code=204,
    response_class=Response,
    responses=documented(401, 403, 404, 422),
)
def withdraw(
    account: ClassEditor, course: CourseId, unit: Wanted, student: Student, service: Served, request_id: RequestId
) -> Response:
    by = By(account, service.clock(), request_id)
    with writing(service.engine) as connection:
        offerings.course_of(connection, course)
        if not overrides.withdraw(connection, course, unit.id, student, by):
            raise Problem(404, "override_unknown", wording.OVERRIDE_UNKNOWN)
    return Response(status_code=204)


def _shown(found: Override, course: Offering) -> OverrideAnswer:
    return OverrideAnswer(
        student=found.student,
        score=found.score,
        reason=found.reason,
        set_by=found.token,
        set_at=walltime.show(found.set_at, course.timezone),
    )
