"""A teacher's decisions about courses, times, attempts and extensions go in and are stored; as they stand, they come
out.

Every change is in the audit log.
"""

from typing import Annotated

from fastapi import APIRouter, Path, Response

from service import offerings, schedules, wording
from service.audit import By
from service.database import reading, writing
from service.dependencies import (
    Caller,
    ClassEditor,
    ClassReader,
    CourseId,
    RequestId,
    Served,
    Wanted,
    reader,
    seen_courses,
)
from service.offerings import Assignment
from service.posted import NAME_CHARS
from service.problems import Problem, documented

router = APIRouter(tags=["courses"])

Student = Annotated[str, Path(min_length=1, max_length=NAME_CHARS, pattern=r"^[^\x00-\x1f\x7f]+$")]

HERE = "/v1/courses/{course}"
UNIT = HERE + "/units/{unit}"
EXTENSIONS = UNIT + "/extensions"
EXTENSION = EXTENSIONS + "/{student:path}"  # a name may hold a slash


@router.get("/v1/courses", summary="The courses on offer, for teachers", responses=documented(401, 403))
def courses(account: Caller, service: Served) -> schedules.OfferingList:
    mine = None if account.courses is None else seen_courses(account)
    if not mine:
        reader(account)
    with reading(service.engine) as connection:
        found = [each for each in offerings.all_offerings(connection) if mine is None or each.id in mine]
    return schedules.OfferingList(courses=tuple(map(schedules.shown_offering, found)))


@router.get(HERE, summary="A course and what it asks of its units", responses=documented(401, 403, 404, 422))
def course(account: ClassReader, course: CourseId, service: Served) -> schedules.CourseAnswer:
    with reading(service.engine) as connection:
        found = offerings.course_of(connection, course)
        return schedules.shown_course(found, offerings.assignments(connection, course))


@router.put(HERE, summary="Make a course, or change it", responses=documented(401, 403, 404, 422))
def put_course(
    account: ClassEditor, course: CourseId, body: schedules.OfferingBody, service: Served, request_id: RequestId
) -> schedules.CourseAnswer:
    now = service.clock()
    with writing(service.engine) as connection:
        before = offerings.find(connection, course)
        wanted = schedules.offering(course, body, before, now)
        offerings.put(connection, wanted, By(account, now, request_id))
        return schedules.shown_course(wanted, offerings.assignments(connection, course))


@router.get(UNIT, summary="What a course asks of a unit", responses=documented(401, 403, 404, 422))
def assignment(account: ClassReader, course: CourseId, unit: Wanted, service: Served) -> schedules.AssignmentAnswer:
    with reading(service.engine) as connection:
        found = offerings.course_of(connection, course)
        asked = offerings.assignment(connection, course, unit.id)
    return schedules.shown_assignment(found, unit.id, asked or Assignment())


@router.put(UNIT, summary="Say what a course asks of a unit", responses=documented(401, 403, 404, 422))
def put_assignment(
    account: ClassEditor,
    course: CourseId,
    unit: Wanted,
    body: schedules.AssignmentBody,
    service: Served,
    request_id: RequestId,
) -> schedules.AssignmentAnswer:
    with writing(service.engine) as connection:
        found = offerings.course_of(connection, course)
        wanted = schedules.assignment(body, found.timezone)
        offerings.put_assignment(connection, course, unit.id, wanted, By(account, service.clock(), request_id))
    return schedules.shown_assignment(found, unit.id, wanted)


@router.get(EXTENSIONS, summary="Every extension for a unit", responses=documented(401, 403, 404, 422))
def extensions(account: ClassReader, course: CourseId, unit: Wanted, service: Served) -> schedules.ExtensionList:
    with reading(service.engine) as connection:
        zone = offerings.course_of(connection, course).timezone
        found = offerings.extensions(connection, course, unit.id)
    return schedules.ExtensionList(extensions=tuple(schedules.shown_extension(each, zone) for each in found))


@router.get(EXTENSION, summary="A student's extension", responses=documented(401, 403, 404, 422))
def extension(
    account: ClassReader, course: CourseId, unit: Wanted, student: Student, service: Served
) -> schedules.ExtensionAnswer:
    with reading(service.engine) as connection:
        zone = offerings.course_of(connection, course).timezone
        found = offerings.extension(connection, course, unit.id, student)
    if found is None:
        raise Problem(404, "extension_unknown", wording.EXTENSION_UNKNOWN)
    return schedules.shown_extension(found, zone)


@router.put(EXTENSION, summary="Give a student more time or attempts", responses=documented(401, 403, 404, 422))
def put_extension(
    account: ClassEditor,
    course: CourseId,
    unit: Wanted,
    student: Student,
    body: schedules.ExtensionBody,
    service: Served,
    request_id: RequestId,
) -> schedules.ExtensionAnswer:
    now = service.clock()
    with writing(service.engine) as connection:
        zone = offerings.course_of(connection, course).timezone
        granted = schedules.extension(student, body, zone, account.id, now)
        offerings.grant(connection, course, unit.id, granted, By(account, now, request_id))
    return schedules.shown_extension(granted, zone)


@router.delete(
    EXTENSION,
    summary="Take a student's extension away",
    status_code=204,
    response_class=Response,
    responses=documented(401, 403, 404, 422),
)
def delete_extension(
    account: ClassEditor, course: CourseId, unit: Wanted, student: Student, service: Served, request_id: RequestId
) -> Response:
    by = By(account, service.clock(), request_id)
    with writing(service.engine) as connection:
        offerings.course_of(connection, course)
        if not offerings.withdraw(connection, course, unit.id, student, by):
            raise Problem(404, "extension_unknown", wording.EXTENSION_UNKNOWN)
    return Response(status_code=204)
