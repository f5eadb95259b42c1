"""A submission's id goes in; a stream of events comes out that tells how it fares, until it has ended."""

from typing import Annotated

import sqlalchemy as sa
from fastapi import APIRouter, Header, Request
from fastapi.responses import Response

from service import runs, submissions
from service.database import reading
from service.dependencies import Served, Service, Viewer, Visible
from service.events import STREAM, EventStream, Hub, Show, State, mark
from service.problems import documented
from service.routes.submissions import standing

router = APIRouter()

EVENT = {
    "type": "object",
    "description": "one event",
    "required": ["event", "id", "data"],
    "properties": {
        "event": {"enum": ["status", "progress", "done"]},
        "id": {"type": "string", "description": "what to send as Last-Event-ID"},
        "data": {
            "type": "string",
            "contentMediaType": "application/json",
            "contentSchema": {"$ref": "#/components/schemas/SubmissionAnswer"},
        },
    },
}
EXAMPLE = """\
retry: 2000

event: progress
id: 6f1c2b9d0c6c4c6f8f6e0c1f6d1b2a3c-7
data: {"id": "...", "status": "running", "progress": {"phase": "mutants", "done": 9, "total": 80}, ...}

"""


@router.get(
    "/v1/submissions/{submission_id}/events",
    summary="What happens to a submission, as Server-Sent Events",
    tags=["submissions"],
    response_class=Response,
    responses={
        200: {
            "description": "Events `status`, `progress` and at the end `done`; their data is a SubmissionAnswer. "
            "The stream is cut now and then: connect again with the last event's id.",
            "content": {STREAM: {"schema": EVENT, "example": EXAMPLE}},
        },
        204: {"description": "It has ended, and the client has seen that"},
        **documented(401, 404, 429, 503),
    },
)
def events(
    request: Request,
    account: Viewer,
    stored: Visible,
    service: Served,
    last_event_id: Annotated[str, Header(description="the `id` of the last event seen")] = "",
) -> Response:
    hub: Hub = request.app.state.hub
    with reading(service.engine) as connection:
        state = show(service)(connection, stored.id)
    if state is None or (state.ended and state.mark == last_event_id):
        return Response(status_code=204)
    settings = service.settings
    most = settings.max_streams_per_token if account.reads_all else settings.max_streams_per_student
    # A person makes as many tokens as they like: together they follow no more than one does.
    return EventStream(hub, state, account.user or account.student or account.id, most, last_event_id)


def show(service: Service) -> Show:
    """How the state of a submission is read."""

    def state(connection: sa.Connection, submission_id: str) -> State | None:
        stored = submissions.find(connection, submission_id)
        run = runs.find(connection, stored.run) if stored is not None else None
        if stored is None or run is None:
            return None
        return State(mark(run.id, run.version), standing(service, connection, stored, run))

    return state
