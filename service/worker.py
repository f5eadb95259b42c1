"""Run ids arrive from the queue; graded reports leave into the database. The one place where grading meets storage.

A failure of ours is tried again, up to the allowed attempts, and then reported as grader_error; a sandbox that is not
there at all (no engine, no image), or an oracle whose packages are not, costs no attempt: the run waits until it is.
(docs/decisions/0062)
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

import sqlalchemy as sa

from grader.conclude import failed
from grader.errors import OracleError, OracleMissing
from grader.grade import Progress, fresh_seed
from grader.report import Report
from grader.seen import About
from grader.submission import Submission
from grader.unit import Course, Unit
from sandbox.errors import EngineUnavailable, ImageMissing, SandboxError
from service import runs, submissions, wording
from service.answers import moment
from service.database import reading, writing
from service.queue import Engine, Stopping
from service.runs import RunState, Worker
from service.settings import Settings
from service.submissions import Stored

log = logging.getLogger(__name__)

T = TypeVar("T")

PROGRESS_SECONDS = 0.25  # between two writes of a run's progress
FIRST_PAUSE_SECONDS = 0.5  # before another attempt; doubled each time
LAST_PAUSE_SECONDS = 30.0
ADOPT_SECONDS = 30.0  # between two looks for runs that the engine has lost


class Grading(Protocol):
    """What grades. `open` makes it ready or raises SandboxError or OracleError; `close` frees everything and ends what
    runs."""

    def open(self) -> None: ...

    def grade(
        self,
        unit: Unit,
        submission: Submission,
        *,
        seed: int,
        about: About,
        progress: Callable[[Progress], None],
    ) -> Report: ...

    def close(self) -> None: ...


class FakeGrading:
    """Answers from a function instead of grading: for tests of what builds on grading."""

    def __init__(self, answer: Callable[[Unit, Submission, About, Callable[[Progress], None]], Report]) -> None:
        self.answer = answer
        self.closed = False

    def open(self) -> None:
        pass

    def grade(
        self,
        unit: Unit,
        submission: Submission,
        *,
        seed: int,
        about: About,
        progress: Callable[[Progress], None],
    ) -> Report:
        return self.answer(unit, submission, about, progress)

    def close(self) -> None:
        self.closed = True


class GradingWorker:
    """Grades the runs of a queue one after the other (per slot) until `stop` is set."""

    def __init__(
        self,
        settings: Settings,
        database: sa.Engine,
        course: Course,
        grading: Grading,
        *,
        name: str,
        stop: threading.Event,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._database = database
        self._course = course
        self._grading = grading
        self._name = name
        self._stop = stop
        self._clock = clock
        self._missing: tuple[str, ...] = (wording.WORKER_STARTING,)

    def run(self, engine: Engine) -> None:
        """Grade until told to stop; then finish what runs, or hand it back, and leave nothing behind."""
        try:
            self._open_grading()
            if not self._stop.is_set():
                engine.start(self.grade_run)
                try:
                    self._watch(engine)
                finally:
                    engine.stop(self._settings.stop_seconds)
        finally:
            with writing(self._database) as connection:
                runs.hand_back(connection, self._name)
                runs.leave(connection, self._name)
            self._grading.close()

    def _open_grading(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        while not self._stop.is_set():
            self._beat()
            try:
                self._grading.open()
            except (SandboxError, OracleError) as error:
                self._miss(error)
                self._stop.wait(pause)
                pause = min(2 * pause, self._settings.heartbeat_seconds)
            else:
                self._missing = ()
                return

    def _watch(self, engine: Engine) -> None:
        adopt_at = 0.0
        while not self._stop.is_set():
            try:
                self._beat()
                if time.monotonic() >= adopt_at:
                    with reading(self._database) as connection:
                        left = runs.unfinished(connection)
                    for run_id in engine.adopt(left):
                        log.info("run %s had left the queue ungraded and is enqueued again", run_id)
                    adopt_at = time.monotonic() + ADOPT_SECONDS
            except sa.exc.OperationalError:
                log.exception("the database does not answer")
            self._stop.wait(self._settings.heartbeat_seconds)

    def _beat(self) -> None:
        worker = Worker(self._name, self._settings.slots, not self._missing, self._missing)
        with writing(self._database) as connection:
            runs.beat(connection, worker, self._clock())

    def _miss(self, error: SandboxError | OracleError) -> None:
        lack = (
            wording.oracle_missing(str(error))
            if isinstance(error, OracleError)
            else wording.sandbox_missing(str(error))
        )
        if self._missing != (lack,):
            log.error("%s", lack)
        self._missing = (lack,)

    # -- one run -------------------------------------------------------------------------------------------------

    def grade_run(self, run_id: str) -> None:
        """Grade a run and store its report. Raises Stopping if that must wait for another start."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            if self._stop.is_set():
                raise Stopping
            run = self._persist(lambda connection: runs.claim(connection, run_id, self._name, self._clock()))
            if run is None:
                return
            report = self._attempt(run)
            if report is not None:
                self._finish(run_id, report)
                return
            self._stop.wait(pause)
            pause = min(2 * pause, LAST_PAUSE_SECONDS)

    def _finish(self, run_id: str, report: Report) -> None:
        if not self._persist(lambda connection: runs.finish(connection, run_id, report, self._clock())):
            log.warning("run %s had ended before: its second report is dropped", run_id)

    def _attempt(self, run: RunState) -> Report | None:
        """The run's report; None if another attempt is due."""
        stored = self._persist(lambda connection: submissions.of_run(connection, run.id))
        if stored is None:
            raise LookupError(f"run {run.id} has no submission")
        about = _about(stored, run, self._course.digest)
        most = self._settings.max_attempts
        if run.attempts > most:
            # The process died in each attempt, or the last one would have been reported.
            error: Exception = RuntimeError(f"the grader stopped in each of {most} attempts")
            return failed(stored.unit, about, stored.digest, error)
        try:
            report = self._grade(stored, run, about)
        except (EngineUnavailable, ImageMissing, OracleMissing) as error:
            self._miss(error)
            self._persist(lambda connection: runs.hand_back(connection, self._name, run.id))
            return None
        except Exception as error:
            if self._stop.is_set():
                raise Stopping from error
            log.exception("run %s, attempt %d of %d: grading failed", run.id, run.attempts, most)
            return failed(stored.unit, about, stored.digest, error) if run.attempts >= most else None
        self._missing = ()
        return report

    def _grade(self, stored: Stored, run: RunState, about: About) -> Report:
        with reading(self._database) as connection:
            submission = submissions.load(connection, stored)
        return self._grading.grade(
            self._course.units[stored.unit],
            submission,
            seed=fresh_seed(),
            about=about,
            progress=self._progress_of(run.id),
        )

    def _progress_of(self, run_id: str) -> Callable[[Progress], None]:
        phase, write_at = "", 0.0

        def show(progress: Progress) -> None:
            nonlocal phase, write_at
            now = time.monotonic()
            if progress.phase == phase and now < write_at:
                return
            phase, write_at = progress.phase, now + PROGRESS_SECONDS
            try:
                with writing(self._database) as connection:
                    runs.show_progress(connection, run_id, progress.phase, progress.done, progress.total)
            except sa.exc.OperationalError:
                log.warning("run %s: its progress was not written", run_id, exc_info=True)

        return show

    def _persist(self, work: Callable[[sa.Connection], T]) -> T:
        """Do `work` in a transaction, as often as it takes while the database does not answer."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                with writing(self._database) as connection:
                    return work(connection)
            except sa.exc.OperationalError as error:
                if self._stop.is_set():
                    raise Stopping from error
                log.exception("the database does not answer")
                self._stop.wait(pause)
                pause = min(2 * pause, LAST_PAUSE_SECONDS)


def _about(stored: Stored, run: RunState, course_digest: str) -> About:
    return About(
        id=stored.id,
        course=stored.course,
        student=stored.student,
        received_at=moment(stored.received_at),
        queued_seconds=max(0.0, (run.started_at or run.queued_at) - run.queued_at),
        course_digest=course_digest,
    )
