"""A learning platform on a socket of this machine: logins, launches, tokens, line items and members by lti1p3platform,
an implementation that has nothing to do with ours. What it is told of scores it keeps as a platform does: the latest of
each student, and nothing that is older.

`Platform` is the platform; `Browser` a person's browser, which goes through both sides over HTTP.
"""

import functools
import html
import itertools
import re
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import uvicorn
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from lti1p3platform.ltiplatform import LTI1P3PlatformConfAbstract
from lti1p3platform.membership import Context
from lti1p3platform.message_launch import LTIAdvantageMessageLaunchAbstract
from lti1p3platform.oidc_login import OIDCLoginAbstract
from lti1p3platform.registration import Registration
from lti1p3platform.request import Request as PlatformRequest
from lti1p3platform.score import UpdateScoreStatus
from lti1p3platform.service_connector import AssignmentsGradesService, NamesRoleProvisioningService

MEMBERSHIP = "http://purl.imsglobal.org/vocab/lis/v2/membership#"
PATIENCE_SECONDS = 60.0
PAGE_MEMBERS = 50


@dataclass
class Person:
    """Somebody the platform knows. `status` as its list of members says it."""

    id: str
    role: str = "Learner"
    name: str = ""
    email: str = ""
    status: str = "Active"

    @property
    def roles(self) -> list[str]:
        return [MEMBERSHIP + self.role]


@dataclass
class Activity:
    """One link in a course of the platform, with its grade column."""

    id: str
    custom: dict[str, str] = field(default_factory=dict)
    scores: dict[str, dict[str, Any]] = field(default_factory=dict)  # by student, the latest
    received: list[dict[str, Any]] = field(default_factory=list)  # every one, in order


_numbers = itertools.count()


@functools.cache
def _key_pair(number: int) -> tuple[str, str]:
    """Made once: it takes long."""
    made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private_pem = made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return private_pem, made.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


class Config(LTI1P3PlatformConfAbstract):
    def init_platform_config(self, **kwargs: Any) -> None:
        self._registration = kwargs["registration"]

    def get_registration_by_params(self, **kwargs: Any) -> Registration:
        return self._registration


class Login(OIDCLoginAbstract):
    def set_lti_message_hint(self, **kwargs: Any) -> None:
        self._lti_message_hint = kwargs["hint"]

    def get_redirect(self, url: str) -> str:
        return url


class Message(LTIAdvantageMessageLaunchAbstract):
    def render_launch_form(self, launch_data: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return launch_data


class Scores(AssignmentsGradesService):
    platform: "Platform"

    def find_lineitems(self, **asked: Any) -> Any:
        return {"content": [self.platform.line_item(each) for each in self.platform.activities], "has_next": False}

    def find_lineitem(self, line_item_id: str) -> Any:
        return self.platform.line_item(line_item_id)

    def create_lineitem(self, creation_data: Any) -> Any:
        self.platform.columns.append(creation_data)
        return {**creation_data, "id": self.platform.line_item_url(creation_data["resourceLinkId"])}

    def update_lineitem(self, update_data: Any) -> Any:
        raise NotImplementedError

    def delete_lineitem(self, line_item_id: str) -> None:
        raise NotImplementedError

    def get_results(self, line_item_id: str, **asked: Any) -> Any:
        return {"content": list(self.platform.activities[line_item_id].scores.values()), "has_next": False}

    def update_score(self, line_item_id: str, score: Any) -> UpdateScoreStatus:
        activity = self.platform.activities[line_item_id]
        activity.received.append(score)
        before = activity.scores.get(score["userId"])
        if before is not None and before["timestamp"] >= score["timestamp"]:
            return UpdateScoreStatus.OLD_TIMESTAMP
        activity.scores[score["userId"]] = score
        return UpdateScoreStatus.SUCCESS


class Members(NamesRoleProvisioningService):
    platform: "Platform"

    def get_context_by_id(self) -> Context:
        return Context(self.platform.context, "ML", "Machine learning")

    def get_member_data_page(self, page: Any = 1, limit: Any = None, **asked: Any) -> Any:
        people, page = list(self.platform.people.values()), int(page)
        shown = people[(page - 1) * PAGE_MEMBERS : page * PAGE_MEMBERS]
        content = [
            {"user_id": each.id, "roles": each.roles, "status": each.status, "name": each.name, "email": each.email}
            for each in shown
        ]
        return {"content": content, "has_next": page * PAGE_MEMBERS < len(people)}


class Asked(PlatformRequest):
    """The library's form of a request that FastAPI has read."""

    def build_metadata(self, request: Any) -> Any:
        return request


class Platform:
    """`tool` is where we are; `answer_scores` lets the platform answer to scores with something else than it should."""

    def __init__(self, tool: str = "") -> None:
        self.tool = tool
        self.people: dict[str, Person] = {}
        self.activities: dict[str, Activity] = {}
        self.context = "course-1"
        self.deployment = "deployment-1"
        self.client_id = "client-1"
        self.change: Mapping[str, Any] = {}  # claims of the next messages that differ
        self.target = "window"
        self.deep_linking = False
        self.picked: list[dict[str, Any]] = []
        self.answer_scores: tuple[int, dict[str, str]] | None = None
        self.tokens_given = 0
        self.columns: list[dict[str, Any]] = []  # that a tool had made
        self.without_column = False  # launches say of no line item
        self.registered: dict[str, Any] = {}  # what a tool that registered itself said
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._keys = itertools.count(next(_numbers) % 3 * 10)  # platforms of one test have different ones
        self.new_key()
        self._server = uvicorn.Server(uvicorn.Config(self._app(), log_config=None, lifespan="off", ws="none"))
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name="platform")
        self._thread.start()
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while not self._server.started:
            assert time.monotonic() < give_up_at
            time.sleep(0.01)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(PATIENCE_SECONDS)
        self._socket.close()

    def new_key(self) -> None:
        """Sign with another key from now on, and publish no other."""
        self.private_pem, self.public_pem = _key_pair(next(self._keys))

    @property
    def registration(self) -> Registration:
        return (
            Registration()
            .set_iss(self.url)
            .set_client_id(self.client_id)
            .set_deployment_id(self.deployment)
            .set_oidc_login_url(f"{self.tool}/lti/login")
            .set_launch_url(f"{self.tool}/lti/launch")
            .set_deeplink_launch_url(f"{self.tool}/lti/launch")
            .set_tool_key_set_url(f"{self.tool}/lti/jwks")
            .set_platform_private_key(self.private_pem)
            .set_platform_public_key(self.public_pem)
        )

    @property
    def config(self) -> Config:
        return Config(registration=self.registration)

    def said(self) -> dict[str, str]:
        """What an administrator types into us."""
        return {
            "name": "Loopback",
            "issuer": self.url,
            "client_id": self.client_id,
            "auth_login_url": f"{self.url}/auth",
            "auth_token_url": f"{self.url}/token",
            "key_set_url": f"{self.url}/jwks",
            "frame_origin": self.url,
        }

    def add(self, *people: Person) -> None:
        self.people |= {person.id: person for person in people}

    def activity(self, name: str, unit: str | None = None) -> Activity:
        self.activities[name] = Activity(name, {"unit": unit} if unit is not None else {})
        return self.activities[name]

    def line_item_url(self, name: str) -> str:
        return f"{self.url}/items/{name}?type_id=7"

    def line_item(self, name: str) -> dict[str, Any]:
        return {"id": self.line_item_url(name), "scoreMaximum": 100, "label": name, "resourceLinkId": name}

    def login_url(self, person: str, activity: str) -> str:
        """Where a browser is sent that opens the activity."""
        begun = Login(None, self.config)
        begun.set_lti_message_hint(hint=activity)
        return str(begun.initiate_login(person))

    def message(self, asked: Mapping[str, str], person: Person, activity: str) -> dict[str, Any]:
        """The signed message and where it is to be posted."""
        message = Message(Asked({"get_data": dict(asked), "form_data": {}}), self.config)
        message.set_user_data(person.id, person.roles, person.name or None, person.email or None)
        message.set_launch_context_claim(self.context, context_title="Machine learning", context_label="ML")
        message.set_launch_presentation_claim(self.target)
        message.set_nrps(f"{self.url}/members")
        if self.deep_linking:
            message.set_dl(f"{self.url}/picked", accept_types={"ltiResourceLink"}, extra_data={"data": "what-for"})
        else:
            message.set_resource_link_claim(activity, title=activity)
            message.set_ags(f"{self.url}/items", None if self.without_column else self.line_item_url(activity))
            message.set_custom_parameters_claim(self.activities[activity].custom)
        message.set_extra_claims(dict(self.change))
        return dict(message.lti_launch())

    def _app(self) -> FastAPI:
        app = FastAPI()

        @app.get("/auth")
        def auth(request: Request) -> HTMLResponse:
            asked = dict(request.query_params)
            form = self.message(asked, self.people[asked["login_hint"]], asked["lti_message_hint"])
            fields = "".join(
                f'<input type="hidden" name="{name}" value="{html.escape(form[name])}">'
                for name in ("state", "id_token")
            )
            sends = "<script>document.forms[0].submit()</script>"
            return HTMLResponse(
                f'<form method="post" action="{html.escape(form["launch_url"])}">{fields}</form>{sends}'
            )

        @app.get("/course/{activity}")
        def course(activity: str, person: str) -> HTMLResponse:
            """The platform's page of an activity, which shows the tool in a frame."""
            shown = html.escape(self.login_url(person, activity))
            return HTMLResponse(
                '<!doctype html><html lang="en"><title>Course</title><h1>Course</h1>'
                f'<iframe title="tool" width="900" height="700" src="{shown}"></iframe></html>'
            )

        @app.get("/jwks")
        def jwks() -> Any:
            return self.config.get_jwks()

        @app.post("/token")
        async def token(request: Request) -> Any:
            form = dict(parse_qsl((await request.body()).decode()))
            self.tokens_given += 1
            return await _in_thread(lambda: self.config.get_access_token(form))

        @app.post("/items/{name}/scores")
        async def scores(request: Request, name: str) -> Response:
            if self.answer_scores is not None:
                status, headers = self.answer_scores
                return Response("not now", status, headers)
            service = self._service(Scores, await _asked(request), lineitems_url=f"{self.url}/items")
            return _answered(service.handle_resp(service.handle_update_score, line_item_id=name))

        @app.post("/items")
        async def new_item(request: Request) -> Response:
            service = self._service(Scores, await _asked(request), lineitems_url=f"{self.url}/items")
            return _answered(service.handle_resp(service.handle_create_lineitem))

        @app.get("/members")
        async def members(request: Request) -> Response:
            service = self._service(Members, await _asked(request), context_memberships_url=f"{self.url}/members")
            answer = service.handle_resp(service.handle_get_members)
            headers = {}
            page = int(request.query_params.get("page", 1))
            if page * PAGE_MEMBERS < len(self.people):
                headers["Link"] = f'<{self.url}/members?page={page + 1}>; rel="next"'
            return _answered(answer, headers)

        @app.get("/configuration")
        def configuration() -> Any:
            """As LTI Dynamic Registration 1.0 has it."""
            return {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/auth",
                "token_endpoint": f"{self.url}/token",
                "jwks_uri": f"{self.url}/jwks",
                "registration_endpoint": f"{self.url}/registrations",
                "https://purl.imsglobal.org/spec/lti-platform-configuration": {"product_family_code": "loopback"},
            } | dict(self.change)

        @app.post("/registrations")
        async def registrations(request: Request) -> Any:
            if request.headers.get("Authorization") != "Bearer let-me-in":
                return Response(status_code=401)
            self.registered = await request.json()
            tool = self.registered["https://purl.imsglobal.org/spec/lti-tool-configuration"]
            tool["deployment_id"] = self.deployment
            return {**self.registered, "client_id": self.client_id}

        @app.post("/picked")
        async def picked(request: Request) -> Any:
            form = dict(parse_qsl((await request.body()).decode()))
            self.picked = await _in_thread(lambda: self.config.validate_deeplinking_resp(form))
            return {"picked": len(self.picked)}

        return app

    def _service(self, kind: Any, asked: Any, **more: str) -> Any:
        service = kind(Asked(asked), self.config, **more)
        service.platform = self
        return service


async def _in_thread(call: Any) -> Any:
    """The library fetches our key set itself, and would wait for this very thread."""
    import anyio.to_thread

    return await anyio.to_thread.run_sync(call)


async def _asked(request: Request) -> Any:
    return {
        "method": request.method,
        "get_data": dict(request.query_params),
        "form_data": {},
        "headers": {"Authorization": request.headers.get("Authorization", "")},
        "content_type": request.headers.get("Content-Type"),
        "path": request.url.path,
        "json": await request.json() if request.method == "POST" else None,
    }


def _answered(answer: Any, headers: Mapping[str, str] | None = None) -> Response:
    if answer.result is None:
        return Response(status_code=answer.code, headers=dict(headers or {}))
    return JSONResponse(answer.result, answer.code, dict(headers or {}), media_type=answer.media_type)


@contextmanager
def loopback(tool: str = "") -> Iterator[Platform]:
    platform = Platform(tool)
    try:
        yield platform
    finally:
        platform.stop()


class Browser:
    """A person's browser. `cookies` False: one that keeps none."""

    def __init__(self, *, cookies: bool = True) -> None:
        self._cookies = cookies
        self.client = httpx.Client(follow_redirects=False, timeout=PATIENCE_SECONDS)

    def get(self, url: str, **options: Any) -> httpx.Response:
        """What is shown in the end, after all redirects."""
        return self._follow(self._send("GET", url, **options))

    def post(self, url: str, data: Mapping[str, Any], **options: Any) -> httpx.Response:
        return self._follow(self._send("POST", url, data=dict(data), **options))

    def open(self, platform: Platform, person: str, activity: str) -> httpx.Response:
        """Open an activity, as a person who clicks on it does; what is shown in the end."""
        return self.submit(self.get(platform.login_url(person, activity)))

    def submit(self, page: httpx.Response, **more: Any) -> httpx.Response:
        """Send the form on a page, with these fields filled in."""
        action, fields = form(page)
        return self.post(str(page.url.join(action)), fields | more)

    def close(self) -> None:
        self.client.close()

    def _send(self, method: str, url: str, **options: Any) -> httpx.Response:
        answer = self.client.request(method, url, **options)
        if not self._cookies:
            self.client.cookies.clear()
        return answer

    def _follow(self, answer: httpx.Response) -> httpx.Response:
        for _ in range(10):
            if answer.next_request is None:
                return answer
            answer = self._send("GET", str(answer.next_request.url))
        raise AssertionError("too many redirects")


def form(page: httpx.Response) -> tuple[str, dict[str, str]]:
    """The address and the hidden fields of a page's form; its frame has others, to sign out and for colours."""
    main = re.search(r"<main.*</main>", page.text, re.DOTALL)
    found = re.search(r"<form[^>]*>.*?</form>", main[0] if main is not None else page.text, re.DOTALL)
    assert found is not None, page.text
    action = re.search(r'action="([^"]*)"', found[0])
    fields = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', found[0])
    assert action is not None
    return html.unescape(action[1]), {html.unescape(name): html.unescape(value) for name, value in fields}


def path_of(answer: httpx.Response) -> str:
    return urlsplit(str(answer.url)).path
