"""A student's name goes in; everything stored of the student comes out as a zip, or is erased. For administrators."""

import tempfile
from collections.abc import Iterator
from typing import IO, Annotated

from fastapi import APIRouter, Path
from fastapi.responses import StreamingResponse

from service import answers, audit, students, wording
from service.audit import By
from service.database import reading, writing
from service.dependencies import Administrator, RequestId, Served
from service.posted import NAME_CHARS
from service.problems import Problem, documented

router = APIRouter()

PIECE_BYTES = 64 * 1024

Student = Annotated[str, Path(max_length=NAME_CHARS, description="as stored, with its slashes if it has any")]


@router.get(
    "/v1/students/{student:path}",
    summary="Everything stored of a student",
    tags=["students"],
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "A zip: student.json, with the files and reports it names",
            "content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}},
        },
        **documented(401, 403, 404, 422),
    },
)
def export(account: Administrator, student: Student, service: Served, request_id: RequestId) -> StreamingResponse:
    now = service.clock()
    packed = tempfile.TemporaryFile()  # noqa: SIM115  # closed when the last piece is sent
    try:
        with reading(service.engine) as connection:
            if not students.is_known(connection, student):
                raise Problem(404, "student_unknown", wording.STUDENT_UNKNOWN)
            students.export(connection, student, packed, now)
        with writing(service.engine) as connection:
            audit.note(
                connection, By(account, now, request_id), action="student.export", object=student, student=student
            )
    except BaseException:
        packed.close()
        raise
    disposition = {"Content-Disposition": 'attachment; filename="student.zip"'}
    return StreamingResponse(_pieces(packed), media_type="application/zip", headers=disposition)


@router.delete(
    "/v1/students/{student:path}",
    summary="Erase a student: submissions, grades, files, extensions, hints, tokens; there is no way back",
    tags=["students"],
    responses=documented(401, 403, 404, 422),
)
def erase(account: Administrator, student: Student, service: Served, request_id: RequestId) -> answers.ErasedAnswer:
    with reading(service.engine) as connection:
        if not students.is_known(connection, student):
            raise Problem(404, "student_unknown", wording.STUDENT_UNKNOWN)
    erased = students.erase(
        service.engine, service.queue, student, who=account, request_id=request_id, clock=service.clock
    )
    return answers.ErasedAnswer(
        pseudonym=erased.pseudonym,
        submissions=erased.submissions,
        runs=erased.runs,
        tokens=erased.tokens,
        blobs=erased.blobs,
    )


def _pieces(packed: IO[bytes]) -> Iterator[bytes]:
    with packed:
        packed.seek(0)
        while piece := packed.read(PIECE_BYTES):
            yield piece
