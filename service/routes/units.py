"""A unit's id goes in; what to build, how it is judged, and its public course tests come out."""

import io
import zipfile

from fastapi import APIRouter
from fastapi.responses import Response

from service import answers
from service.dependencies import Served, Wanted
from service.problems import documented

router = APIRouter()


@router.get("/v1/units", summary="The units of the course", tags=["units"])
def units(service: Served) -> answers.UnitList:
    course = service.course
    return answers.UnitList(
        units=tuple(answers.unit_summary(unit) for unit in course.units.values()),
        problems=tuple(
            answers.UnitProblemAnswer(unit=p.unit, file=p.file, line=p.line, reason=p.reason) for p in course.problems
        ),
    )


@router.get(
    "/v1/units/{unit}",
    summary="What to build for a unit, and how it is judged",
    tags=["units"],
    responses=documented(404),
)
def unit(unit: Wanted, service: Served) -> answers.UnitAnswer:
    return answers.unit_answer(unit, service.settings.max_body_bytes)


@router.get(
    "/v1/units/{unit}/course-tests",
    summary="The unit's course tests and fixtures, as a zip",
    tags=["units"],
    response_class=Response,
    responses={
        200: {
            "description": "A zip archive",
            "content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}},
        },
        **documented(404),
    },
)
def course_tests(unit: Wanted) -> Response:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for folder, found in (("tests", unit.test_files), ("fixtures", unit.fixtures)):
            for file in found:
                archive.writestr(zipfile.ZipInfo(f"{folder}/{file.path}"), file.data, zipfile.ZIP_DEFLATED)
    disposition = f'attachment; filename="{unit.id}-course-tests.zip"'
    return Response(packed.getvalue(), media_type="application/zip", headers={"Content-Disposition": disposition})
