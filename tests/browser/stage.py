"""A course and a grading go in; a service comes out that answers on a real socket and grades what it is sent.

Web and worker are the product's own, on an SQLite file; between them, instead of the job engine, stands a belt.
"""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import sqlalchemy as sa
from playwright.sync_api import StorageState

from grader.unit import Course
from service import accounts, database, dbos_queue, offerings
from service.accounts import Role
from service.app import create_app
from service.audit import By
from service.course_files import trees
from service.course_files.loads import Difference
from service.database import reading, writing
from service.dependencies import Service
from service.lti import platforms, tickets
from service.lti.messages import Kind, Launch
from service.lti.platforms import Platform
from service.offerings import Offering
from service.people import invitations, members, sessions, users
from service.people.users import User
from service.queue import FakeQueue, Handler, Stopping
from service.regrading import decisions, trials
from service.regrading.versions import Change
from service.settings import Settings
from service.tables import runs
from service.worker import Grading, GradingWorker
from tests.service.live import PATIENCE_SECONDS, live

EVENING_BEGINS_AT = 1_800_032_400.0  # a Friday, 17:00 UTC
LOOK_SECONDS = 0.02
LMS = Platform(
    id="",
    name="Campus",
    issuer="https://lms.example",
    client_id="autograder",
    auth_login_url="https://lms.example/auth",
    auth_token_url="https://lms.example/token",
    key_set_url="https://lms.example/keys",
    frame_origin="https://lms.example",
)


class Clock:
    """UTC seconds that move when told to, or by themselves once it `runs`."""

    def __init__(self, now: float) -> None:
        self.now = now
        self._ran_from: float | None = None

    def __call__(self) -> float:
        return self.now if self._ran_from is None else self.now + time.monotonic() - self._ran_from

    def runs(self) -> None:
        self._ran_from = time.monotonic()


class Belt(FakeQueue):
    """Queue and engine in one: a thread hands over what was enqueued, in that order."""

    def __init__(self) -> None:
        super().__init__()
        self._over = threading.Event()
        self._thread = threading.Thread(name="belt")

    def start(self, handler: Handler) -> None:
        self._over.clear()

        def hand_over() -> None:
            while not self._over.wait(LOOK_SECONDS):
                while self.submitted and not self._over.is_set():
                    with suppress(Stopping):  # the worker that starts anew finds it
                        handler(self.submitted.pop(0))

        self._thread = threading.Thread(target=hand_over, name="belt")
        self._thread.start()

    def known(self) -> Mapping[str, str | None]:
        return dict.fromkeys(self.submitted)

    def deliver_again(self, runs: Mapping[str, int]) -> None:
        self.submitted += [run_id for run_id in runs if run_id not in self.submitted]

    def forget_ended(self, before: float) -> int:
        return 0

    def stop(self, grace_seconds: float) -> None:
        self._over.set()
        self._thread.join(grace_seconds)


class Stage:
    """`url` is where it answers; `settled` waits until everything sent is graded."""

    def __init__(
        self,
        folder: Path,
        course: Course,
        grading: Grading,
        begins_at: float = EVENING_BEGINS_AT,
        **settings: object,
    ) -> None:
        self.begins_at = begins_at
        settings = {"platform_hosts": "127.0.0.1", "slots": 1, **settings}
        self.settings = Settings(data=folder, course=folder / "course", **settings)  # type: ignore[arg-type]
        database.migrate(self.settings)
        dbos_queue.migrate(self.settings.url)
        self.engine = database.open_engine(self.settings.url)
        self.course = course
        self.clock = Clock(begins_at)
        self.queue = Belt()
        self.service = Service(self.settings, self.engine, self.queue, course, self.clock)
        self.app = create_app(self.service)
        self.url = ""
        self.trial = ""  # the id of a regrade that nobody has decided on
        self.sent: dict[str, str] = {}  # by student: what they sent last
        self._over = threading.Event()
        self._stop = threading.Event()
        self._grading = grading
        self._tokens: dict[tuple[Role, str | None], str] = {}

    def token(self, role: Role, student: str | None = None) -> str:
        """The secret of an account, the same one for the same role and student."""
        if (role, student) not in self._tokens:
            self._tokens[role, student] = secret = accounts.new_secret()
            with writing(self.engine) as connection:
                accounts.create(connection, secret=secret, role=role, now=self.clock(), student=student)
        return self._tokens[role, student]

    def client(self, role: Role = Role.ADMIN, student: str | None = None) -> httpx.Client:
        """Asks the service as a script would."""
        headers = {"Authorization": f"Bearer {self.token(role, student)}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=PATIENCE_SECONDS)

    def course_begins(self, course: str, title: str) -> None:
        with writing(self.engine) as connection:
            by = By(None, self.clock())
            offerings.put(connection, Offering(course, title, "Europe/Berlin", by.now), by)

    def person(
        self,
        login: str,
        name: str = "",
        *,
        admin: bool = False,
        course: str = "",
        role: Role = Role.STUDENT,
        section: str = "",
    ) -> User:
        """Somebody with an account, the same one for the same login, and this part in the course if one is named."""
        by = By(None, self.clock())
        with writing(self.engine) as connection:
            user = users.find_by_login(connection, login)
            user = user or users.add(connection, login=login, name=name or login.title(), now=by.now, admin=admin)
            if course:
                members.put(connection, course, user, role, section, members.Source.CSV, by)
        return user

    def signed_in(self, login: str) -> StorageState:
        """What the browser of this person holds, who is signed in."""
        with writing(self.engine) as connection:
            user = users.find_by_login(connection, login)
            assert user is not None, f"{login} has no account"
            secret = sessions.begin(connection, user.id, self.clock(), "Chromium", "127.0.0.1")
        cookie = {"name": sessions.NAME, "value": secret, "domain": "127.0.0.1", "path": "/"}
        return {
            "cookies": [{**cookie, "expires": -1, "httpOnly": True, "secure": False, "sameSite": "Lax"}],
            "origins": [],
        }  # type: ignore[typeddict-item]

    def invitation(self, login: str) -> str:
        """The path of a link with which this person sets a password."""
        with writing(self.engine) as connection:
            user = users.find_by_login(connection, login)
            assert user is not None, f"{login} has no account"
            return invitations.link("", invitations.invite(connection, user.id, self.clock()))

    def platform(self) -> Platform:
        """A learning platform that nobody runs, registered here."""
        with writing(self.engine) as connection:
            by = By(None, self.clock())
            found = platforms.find_by_client(connection, LMS.issuer, LMS.client_id)
            found = found or platforms.register(connection, LMS, by)
        assert found is not None
        return found

    def waiting_launch(self, login: str) -> str:
        """The ticket of a launch that waits for this person to choose a course."""
        launch = Launch(
            self.platform(), "1", Kind.RESOURCE, "subject", Role.TEACHER, self.url, context="c1", resource_link="r1"
        )
        with writing(self.engine) as connection:
            user = users.find_by_login(connection, login)
            assert user is not None, f"{login} has no account"
            return tickets.keep(connection, user.id, launch, self.clock())

    def version(self) -> str:
        """A version of the course's files that nobody has published."""
        self.settings.course.mkdir(exist_ok=True)
        (self.settings.course / "notes.md").write_text("One line.\n")
        with writing(self.engine) as connection:
            account = accounts.create(
                connection, secret=accounts.new_secret(), role=Role.ADMIN, now=self.clock(), label="Ken Thompson"
            )
            files = {"course/notes.md": b"Another line.\n"}
            found = trees.Found(
                (Difference("L5.3", "changed", (Change("mutants", "m01", "changed"),)),), (), usable=True
            )
            return trees.add(connection, files, found, "Another line", By(account, self.clock())).id

    def settled(self) -> None:
        """Wait until every run has ended, nothing waits for one, and what was decided on regrades is carried out."""
        waiting = sa.select(runs.c.id).where(runs.c.status.in_(["queued", "running"]))
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < give_up_at:
            with reading(self.engine) as connection:
                under_way = trials.waits(connection) or decisions.under_way(connection)
                if not under_way and connection.execute(waiting.limit(1)).first() is None:
                    return
            time.sleep(LOOK_SECONDS)
        raise TimeoutError("runs did not end")

    def grade(self) -> None:
        """Grade until the stage closes; by the course as it is then when its files are read again, as a worker does
        that starts anew."""
        while not self._over.is_set():
            stop = self._stop = threading.Event()
            service = self.app.state.service
            GradingWorker(
                self.settings,
                self.engine,
                service.course,
                self._grading,
                name="worker-1",
                stop=stop,
                clock=self.clock,
                course_load=service.course_load,
            ).run(self.queue)

    def close(self) -> None:
        self._over.set()
        self._stop.set()


@contextmanager
def staged(
    folder: Path, course: Course, grading: Grading, begins_at: float = EVENING_BEGINS_AT, **settings: object
) -> Iterator[Stage]:
    stage = Stage(folder, course, grading, begins_at, **settings)
    thread = threading.Thread(target=stage.grade, name="grading")
    with live(stage.app, stage.settings) as running:
        stage.url = running.url
        thread.start()
        try:
            yield stage
        finally:
            stage.close()
            thread.join(PATIENCE_SECONDS)
            stage.engine.dispose()
