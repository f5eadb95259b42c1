"""Whatever a request cannot be given goes in as a `Problem`; the RFC 9457 answer (or a plain page) comes out.

Problem                      what a handler raises; `code` becomes the type /problems/<code>
"""

import html
import http
import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Match

from service import links, wording

log = logging.getLogger(__name__)

OF_BODIES = (408, 413)  # what a body can be answered with, whatever it is for
OF_ALL = (400, 500, 503)  # no HTTP; a mistake of ours; the database does not answer, or too many ask
MEDIA_TYPE = "application/problem+json"


EXAMPLE: dict[str, Any] = {
    "type": "/problems/submission_unknown",
    "title": "Not Found",
    "status": 404,
    "detail": wording.SUBMISSION_UNKNOWN,
    "code": "submission_unknown",
    "message": wording.SUBMISSION_UNKNOWN,
    "path": "",
    "request_id": "9b1deb4d3b7d4bad",
}


class ProblemDetails(BaseModel):
    """RFC 9457. `code` is stable and ends `type`; `detail` says what to do."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"examples": [EXAMPLE]})

    type: str = Field(examples=["/problems/not_found"])
    title: str
    status: int
    detail: str
    code: str
    message: str = Field(description="the same text as detail")
    path: str = Field("", description="of the file concerned, as sent, where there is one")
    request_id: str


class Problem(Exception):
    """An answer that is an error. `headers` and `more` go into the response as they are."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        path: str = "",
        headers: Mapping[str, str] | None = None,
        **more: object,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.path = path
        self.headers = dict(headers or {})
        self.more = more


def response(request: Request, problem: Problem) -> Response:
    """The problem as this client can read it: JSON, or a page for a browser that asked for one."""
    request.state.problem = problem.code  # for the figures
    title = http.HTTPStatus(problem.status).phrase
    if _wants_page(request):
        page = (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
            f'<link rel="icon" type="image/svg+xml" href="{links.to("/static/icon.svg")}">'
            f'<link rel="stylesheet" href="{links.to("/static/style.css")}"><main><h1>{title}</h1>'
            f'<p>{html.escape(problem.message)}</p><p><a href="{links.to("/")}">Start page</a></p></main></html>'
        )
        return HTMLResponse(page, problem.status, headers=problem.headers)
    details = ProblemDetails(
        type=links.to(f"/problems/{problem.code}"),
        title=title,
        status=problem.status,
        detail=problem.message,
        code=problem.code,
        message=problem.message,
        path=problem.path,
        request_id=getattr(request.state, "request_id", ""),
        **problem.more,
    )
    return JSONResponse(details.model_dump(), problem.status, headers=problem.headers, media_type=MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Turn every error of the application into a problem."""

    @app.exception_handler(Problem)
    def on_problem(request: Request, error: Problem) -> Response:
        return response(request, error)

    @app.exception_handler(RequestValidationError)
    def on_invalid(request: Request, error: RequestValidationError) -> Response:
        wrong = [
            {"where": ".".join(str(part) for part in item["loc"]), "message": item["msg"]} for item in error.errors()
        ]
        return response(request, Problem(422, "invalid_request", wording.request_invalid(wrong), errors=wrong))

    @app.exception_handler(HTTPException)
    def on_http(request: Request, error: HTTPException) -> Response:
        path, headers = request.url.path, error.headers
        match error.status_code:
            case 404:
                code, message = "not_found", wording.not_found(path)
            case 405:
                headers = {"Allow": ", ".join(_methods_at(request))}
                if request.method == "OPTIONS":
                    return Response(status_code=204, headers=headers)
                code, message = "method_not_allowed", wording.method_not_allowed(request.method, path)
            case 400:
                code, message = "bad_request", wording.BODY_UNREADABLE
            case 408:
                code, message = "upload_too_slow", str(error.detail)
            case 413:
                code, message = "too_large", wording.BODY_TOO_LARGE
            case _:
                code, message = "http_error", str(error.detail)
        return response(request, Problem(error.status_code, code, message, headers=headers))

    _document_as_problems(app)


def of_bug(request: Request, error: Exception) -> Response:
    """The answer to a request that met a mistake of ours: the log has the traceback, the client its id."""
    request_id = getattr(request.state, "request_id", "")
    log.error("request %s failed", request_id, exc_info=error)
    return response(request, Problem(500, "internal_error", wording.failed_on_our_side(request_id)))


def _methods_at(request: Request) -> list[str]:
    """Every method that the path answers to, in all routers."""
    routes = request.app.router.routes
    found = [
        method
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE")
        if any(route.matches({**request.scope, "method": method})[0] is Match.FULL for route in routes)
    ]
    return [*found, *(["HEAD"] if "GET" in found else []), "OPTIONS"]


def _wants_page(request: Request) -> bool:
    path = links.inside(request.url.path)
    return path != "/v1" and not path.startswith("/v1/") and "text/html" in request.headers.get("accept", "")


def documented(*statuses: int) -> dict[int | str, dict[str, object]]:
    """The problem responses of a route, for OpenAPI."""
    return {status: {"description": http.HTTPStatus(status).phrase, "model": ProblemDetails} for status in statuses}


def _answers_problem(answer: Mapping[str, Any]) -> bool:
    schemas = [content.get("schema", {}) for content in answer.get("content", {}).values()]
    return {"$ref": "#/components/schemas/ProblemDetails"} in schemas


def _document_as_problems(app: FastAPI) -> None:
    """Make OpenAPI say what is answered: problems have their own media type, also where FastAPI adds a 422 itself."""
    made = app.openapi
    problem = {"$ref": "#/components/schemas/ProblemDetails"}

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = made()
            for operations in document["paths"].values():
                for operation in operations.values():
                    responses = operation["responses"]
                    for more in (*(OF_BODIES if "requestBody" in operation else ()), *OF_ALL):
                        description = http.HTTPStatus(more).phrase
                        responses.setdefault(
                            str(more), {"description": description, "content": {"": {"schema": problem}}}
                        )
                    for status, answer in responses.items():
                        if status.startswith("4") or _answers_problem(answer):
                            answer["content"] = {MEDIA_TYPE: {"schema": problem}}
            for unused in ("HTTPValidationError", "ValidationError"):
                document["components"]["schemas"].pop(unused, None)
        return app.openapi_schema or made()

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way to change the document
