"""Run ids arrive from the queue; graded reports leave into the database. The one place where grading meets storage.

A failure of ours is tried again, up to the allowed attempts, and then reported as grader_error; a sandbox that is not
there at all (no engine, no image), or an oracle whose packages are not, costs no attempt: the run waits until it is.
A worker that was taken over meanwhile ends at once: what it still does could only be in others' way.
(docs/decisions/0062, 0120)
"""

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar

import sqlalchemy as sa

from grader.conclude import failed
from grader.errors import OracleError, OracleMissing
from grader.grade import Progress
from grader.report import Report
from grader.seen import About
from grader.stop import Stop
from grader.submission import Submission
from grader.unit import Course, Unit
from sandbox.errors import EngineUnavailable, ImageMissing, SandboxError
from service import bells, cache, fleet, logs, runs, submissions, wording
from service.admission import Admission, AlwaysAdmits
from service.answers import moment
from service.classroom import facts
from service.course_files import loads
from service.database import AWAY, reading, writing
from service.queue import Engine, Stopping
from service.regrading import decisions, trials
from service.runs import RunState, Worker
from service.settings import Settings
from service.stats import Stats
from service.submissions import Stored

log = logging.getLogger(__name__)

T = TypeVar("T")

PROGRESS_SECONDS = 0.5  # between two writes of a run's progress: readers look no sooner
FIRST_PAUSE_SECONDS = 0.5  # before another attempt; doubled each time
LAST_PAUSE_SECONDS = 30.0
ADMISSION_POLL_SECONDS = 1.0  # between two looks for free memory
ADMISSION_SECONDS = 60.0  # before a run that waits for memory is left to whoever has some
LOOK_SECONDS = 1.0  # between two looks at the other workers, and at what shall be cancelled
SWEEP_SECONDS = 10.0  # between two looks for runs that the engine has lost
TIDY_SECONDS = 60.0  # between two looks for sandboxes that have lost their owner
FORGET_SECONDS = 86_400.0  # how long the engine keeps what has ended, and between two looks for it


class Fenced(Exception):
    """Another worker took over this one's runs, because it had fallen silent."""


class Cancelled(Exception):
    """The run was stopped because somebody asked for it."""


class Grading(Protocol):
    """What grades. `open` makes it ready or raises SandboxError or OracleError; `close` frees everything. `tidy`
    removes what dead processes of this machine have left. `expect` is told whether more waits than is being graded. A
    `grade` whose `stop` is told ends soon, by an exception; `anew` is one that takes nothing from earlier ones.

    `conditions` is the digest of what its grades depend on beside the submission; '' while that is not known, or if
    what it graded must not be repeated."""

    @property
    def conditions(self) -> str: ...

    def open(self) -> None: ...

    def grade(
        self,
        unit: Unit,
        submission: Submission,
        *,
        about: About,
        progress: Callable[[Progress], None],
        stop: Stop,
        anew: bool = False,
    ) -> Report: ...

    def expect(self, more: bool) -> None: ...

    def tidy(self) -> None: ...

    @property
    def ready(self) -> int:
        """How many sandboxes wait, warm."""
        ...

    def close(self) -> None: ...


class FakeGrading:
    """Answers from a function instead of grading: for tests of what builds on grading."""

    def __init__(
        self, answer: Callable[[Unit, Submission, About, Callable[[Progress], None]], Report], conditions: str = ""
    ) -> None:
        self.answer = answer
        self.conditions = conditions
        self.ready = 0
        self.expected: list[bool] = []
        self.closed = False

    def open(self) -> None:
        pass

    def grade(
        self,
        unit: Unit,
        submission: Submission,
        *,
        about: About,
        progress: Callable[[Progress], None],
        stop: Stop,
        anew: bool = False,
    ) -> Report:
        return self.answer(unit, submission, about, progress)

    def expect(self, more: bool) -> None:
        self.expected.append(more)

    def tidy(self) -> None:
        pass

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
        admission: Admission | None = None,
        stats: Stats | None = None,
        course_load: int | None = None,
    ) -> None:
        self._settings = settings
        self._stats = stats or Stats()
        self._database = database
        self._course = course
        self._grading = grading
        self._name = name
        self._stop = stop
        self._clock = clock
        self._admission = admission or AlwaysAdmits()
        self._waits_for: str | None = None
        self._missing: tuple[str, ...] = (wording.WORKER_STARTING,)
        self._told: tuple[str, ...] = ()  # what it last said of that to the others
        self._look_seconds = min(LOOK_SECONDS, settings.heartbeat_seconds / 2)
        self._ended = bells.ended(settings.data)
        self._lock = threading.Lock()
        self._at: dict[str, Stop] = {}  # the runs it is at
        self._fenced = False
        self._course_load = course_load  # the number of the choice by which the course was read

    def run(self, engine: Engine) -> None:
        """Grade until told to stop; then finish what runs, or hand it back, and leave nothing behind.

        Raises Fenced if another worker took over meanwhile: then nothing of this one's is left to hand back.
        """
        over = threading.Event()
        heart = threading.Thread(target=self._keep_alive, args=(over,), name="heartbeat", daemon=True)
        try:
            self._beat(first=True)
            heart.start()
            self._open_grading()
            if not self._stop.is_set():
                engine.start(self.grade_run)
                try:
                    self._look_after_queue(engine)
                finally:
                    if not self._fenced:
                        engine.stop(self._settings.stop_seconds)
        finally:
            over.set()
            if heart.is_alive():
                heart.join()
            self._leave(engine)
            self._grading.close()
        if self._fenced:
            raise Fenced(self._name)

    def _open_grading(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        while not self._stop.is_set():
            try:
                self._grading.open()
            except (SandboxError, OracleError) as error:
                self._miss(error)
                self._stop.wait(pause)
                pause = min(2 * pause, self._settings.heartbeat_seconds)
            else:
                self._missing = ()
                return

    def _leave(self, engine: Engine) -> None:
        """Give the runs back to the queue, and end what is still at them."""
        self._end_all()
        if self._fenced:
            return
        try:
            with writing(self._database) as connection:
                runs.hand_back(connection, self._name, self._clock())
            self._sweep(engine, leaving=True)
            with writing(self._database) as connection:
                runs.leave(connection, self._name)
        except AWAY:
            log.warning("the database does not answer: another worker will find what this one leaves", exc_info=True)
        finally:
            engine.close()

    def _end_all(self) -> None:
        with self._lock:
            stops = list(self._at.values())
        for stop in stops:
            stop.tell()

    # -- its lease, in a thread of its own ------------------------------------------------------------------------

    def _keep_alive(self, over: threading.Event) -> None:
        """Say every third of the time to live that this worker lives, and stop the runs that are to be cancelled."""
        beat_at = time.monotonic() + self._settings.heartbeat_seconds
        while not over.wait(self._look_seconds):
            try:
                if time.monotonic() >= beat_at or self._told != self._missing:
                    if not self._beat():
                        self._fence()
                        return
                    beat_at = time.monotonic() + self._settings.heartbeat_seconds
                self._heed_cancels()
            except AWAY as error:
                log.warning("the database does not answer: %s", error)

    def _beat(self, *, first: bool = False) -> bool:
        lack = self._missing
        missing = lack if self._waits_for is None else (*lack, self._waits_for)
        self._stats.set("sandboxes", self._grading.ready, state="ready")
        told = self._stats.read().to_json()
        worker = Worker(self._name, self._settings.slots, not missing, missing, self._conditions, told)
        with writing(self._database) as connection:
            heard = runs.beat(connection, worker, self._clock(), first=first)
        self._told = lack
        return heard

    def _fence(self) -> None:
        log.error("worker %s was silent for so long that another took over its runs: it ends", self._name)
        self._fenced = True
        self._stop.set()
        self._end_all()

    def _heed_cancels(self) -> None:
        with self._lock:
            busy = bool(self._at)
        if not busy:
            return
        with reading(self._database) as connection:
            unwanted = runs.asked_to_stop(connection, self._name)
        with self._lock:
            stops = [self._at[run_id] for run_id in unwanted if run_id in self._at]
        for stop in stops:
            stop.tell()

    # -- the queue ------------------------------------------------------------------------------------------------

    def _look_after_queue(self, engine: Engine) -> None:
        """Until told to stop: take over from workers that fell silent, and see that no run is lost."""
        silence = fleet.Silence(self._settings.worker_ttl_seconds)
        sweep_at = forget_at = 0.0
        tidy_at = time.monotonic() + TIDY_SECONDS
        facts_missing = True
        while not self._stop.is_set():
            try:
                now = time.monotonic()
                if facts_missing:  # of reports from before an upgrade; a report that cannot be read ends it
                    facts_missing = False
                    facts_missing = facts.complete(self._database) > 0
                if self._take_over(silence):
                    sweep_at = tidy_at = 0.0
                with reading(self._database) as connection:
                    self._heed_reload(connection)
                self._feed_trials(engine)
                self._carry_on_decisions()
                if now >= sweep_at:
                    self._sweep(engine)
                    sweep_at = now + SWEEP_SECONDS
                if now >= tidy_at:
                    self._grading.tidy()
                    tidy_at = now + TIDY_SECONDS
                if now >= forget_at:
                    engine.forget_ended(self._clock() - FORGET_SECONDS)
                    forget_at = now + FORGET_SECONDS
            except AWAY as error:
                log.warning("the database does not answer: %s", error)
            except SandboxError as error:
                self._miss(error)
            except Exception:
                log.exception("looking after the queue failed; it is tried again")
            self._stop.wait(self._look_seconds)

    def _take_over(self, silence: fleet.Silence) -> bool:
        with reading(self._database) as connection:
            beats = fleet.beats(connection)
        beats.pop(self._name, None)
        taken = False
        for dead in silence.of(beats, time.monotonic()):
            with writing(self._database) as connection:
                if fleet.take_over(connection, dead, beats[dead], self._clock()):
                    log.warning("worker %s fell silent: its runs are taken over", dead)
                    self._stats.count("takeovers")
                    taken = True
        return taken

    def _heed_reload(self, connection: sa.Connection) -> bool:
        """End if somebody has had the course's files read again, since this process holds the ones before; whether
        that is so."""
        last, _ = loads.chosen(connection)
        if self._course_load is None:
            self._course_load = last
        if last == self._course_load:
            return False
        if not self._stop.is_set():
            log.info("the course's files are to be read again: this worker ends, to start anew")
        self._stop.set()
        return True

    def _feed_trials(self, engine: Engine) -> None:
        """Enqueue the next of what waits in batches of regrades; nothing is written while nothing waits."""
        with reading(self._database) as connection:
            if not trials.waits(connection):
                return
        with writing(self._database) as connection:
            fed = trials.feed(connection, self._clock())
        if fed:
            engine.deliver_again(fed)

    def _carry_on_decisions(self) -> None:
        """Go on for a moment with what was decided of batches of regrades and is not done yet."""
        with reading(self._database) as connection:
            waiting = decisions.under_way(connection)
        for batch_id in waiting:
            try:
                decisions.carry_on(self._database, batch_id, self._clock, self._look_seconds / len(waiting))
            except AWAY:
                raise
            except Exception:  # neither other batches nor the queue wait for this one
                log.exception("what was decided of regrade %s could not be carried out; it is tried again", batch_id)

    def _sweep(self, engine: Engine, *, leaving: bool = False) -> None:
        """Have the engine deliver again what it has lost; give back runs that nobody is at."""
        with writing(self._database) as connection:
            fleet.give_back_orphans(connection, self._clock())
            claimed = fleet.claimed(connection, self._name)
            with self._lock:
                lost = [run_id for run_id in claimed if run_id not in self._at]
            for run_id in lost:  # the thread that was at it has failed
                runs.hand_back(connection, self._name, self._clock(), run_id, died=True)
            waiting = runs.waiting(connection)
        if not waiting:
            return
        known = engine.known()
        with reading(self._database) as connection:  # after that, so that what was delivered meanwhile is seen
            workers = set(fleet.beats(connection)) - ({self._name} if leaving else set())
            still = runs.waiting(connection)
        again = {run_id: still[run_id] for run_id in fleet.stranded(waiting, known, workers) if run_id in still}
        for run_id in again:
            log.info("run %s had left the queue ungraded and is enqueued again", run_id)
        engine.deliver_again(again)

    def _miss(self, error: SandboxError | OracleError) -> None:
        match error:
            case OracleError():
                part = "oracle"
            case ImageMissing():
                part = "image"
            case EngineUnavailable():
                part = "docker"
            case _:
                part = "sandbox"
        lack = wording.part_missing(part, str(error))
        if self._missing != (lack,):
            log.error("%s", lack)
        self._missing = (lack,)

    # -- one run -------------------------------------------------------------------------------------------------

    def grade_run(self, run_id: str) -> None:
        """Grade a run and store its report. Raises Stopping if that must be left to another worker, or to later."""
        with self._lock:
            if run_id in self._at:
                return
            stop = self._at[run_id] = Stop()
        self._stats.count("grading", 1)
        try:
            with logs.about(run=run_id):
                self._grade_run(run_id, stop)
        finally:
            self._stats.count("grading", -1)
            with self._lock:
                del self._at[run_id]

    def _grade_run(self, run_id: str, stop: Stop) -> None:
        pause = FIRST_PAUSE_SECONDS
        while True:
            if self._stop.is_set():
                raise Stopping
            self._wait_for_admission(run_id)
            run = self._persist(partial(self._claim, run_id))
            if run is None:
                return
            if self._repeat(run):
                return
            try:
                report = self._attempt(run, stop)
            except Cancelled:
                self._end_cancelled(run)
                return
            if report is not None:
                self._finish(run, report)
                return
            self._stop.wait(pause)
            pause = min(2 * pause, LAST_PAUSE_SECONDS)

    def _claim(self, run_id: str, connection: sa.Connection) -> RunState | None:
        """Raises Stopping if the run may have come after other files were chosen: then it is graded by these."""
        if self._heed_reload(connection):
            raise Stopping
        run = runs.claim(connection, run_id, self._name, self._clock())
        self._grading.expect(runs.any_waits(connection))
        return run

    def more_waits(self) -> None:
        """Be told that a submission was queued just now; from any thread."""
        self._grading.expect(True)

    def _wait_for_admission(self, run_id: str) -> None:
        """Wait until there is memory for the run. Raises Stopping after a while, so that another worker may have it."""
        give_up_at = time.monotonic() + ADMISSION_SECONDS
        try:
            while (lack := self._admission.lacks()) is not None:
                if self._waits_for is None:
                    log.warning("run %s waits: %s", run_id, lack)
                self._waits_for = lack
                if self._stop.wait(ADMISSION_POLL_SECONDS) or time.monotonic() >= give_up_at:
                    raise Stopping
        finally:
            self._waits_for = None

    @property
    def _conditions(self) -> str:
        return self._grading.conditions if self._settings.cache else ""

    def _repeat(self, run: RunState) -> bool:
        """End a run with the report of the same files if they were graded before; regrades are graded every time."""

        def end(connection: sa.Connection) -> bool:
            stored, now = submissions.of_run(connection, run.id), self._clock()
            hit = cache.find(connection, [self._conditions], stored.unit, stored.digest) if stored is not None else None
            if stored is None or hit is None:
                return False
            if runs.finish(connection, run, cache.copy(hit, stored, _queued_seconds(run)), now):
                cache.note_origin(connection, run.id, stored, hit)
            return True

        if not self._conditions or run.kind != runs.FIRST:
            return False
        repeated = self._persist(end)
        if repeated:
            self._ended.ring(run.id)
        self._stats.count("cache", result="hit" if repeated else "miss")
        return repeated

    def _end_cancelled(self, run: RunState) -> None:
        self._persist(lambda connection: runs.stopped(connection, run, self._clock()))
        self._ended.ring(run.id)

    def _finish(self, run: RunState, report: Report) -> None:
        gave_up = run.attempts > self._settings.max_attempts

        def end(connection: sa.Connection) -> bool:
            now = self._clock()
            if not runs.finish(connection, run, report, now, quarantined=gave_up):
                return False
            if (stored := submissions.of_run(connection, run.id)) is not None:
                trials.ended(connection, run.id, stored, self._course.units.get(stored.unit), report, now)
                if run.kind != runs.TRIAL:
                    cache.keep(connection, run, stored, report, self._conditions, now)
            return True

        if self._persist(end):
            self._ended.ring(run.id)
            self._count(report, gave_up)
        else:
            log.warning("run %s is no longer this worker's: the report of attempt %d is dropped", run.id, run.attempts)
            self._stats.count("late_results")

    def _count(self, report: Report, gave_up: bool) -> None:
        self._stats.count("graded", verdict=report.verdict.value)
        if gave_up:
            self._stats.count("quarantined")
        for phase, seconds in {"queued": report.timing.queued, **report.timing.phases}.items():
            self._stats.observe("phase_seconds", seconds, phase=phase)
        log.info("graded: %s in %.1f s", report.verdict.value, report.timing.total - report.timing.queued)

    def _attempt(self, run: RunState, stop: Stop) -> Report | None:
        """The run's report; None if another attempt is due."""
        stored = self._persist(lambda connection: submissions.of_run(connection, run.id))
        if stored is None:
            raise LookupError(f"run {run.id} has no submission")
        about = _about(stored, run, self._course.digest)
        most = self._settings.max_attempts
        if run.attempts > most:
            # The process died in each attempt, or the last one would have been reported.
            failure: Exception = RuntimeError(f"the grader stopped in each of {most} attempts")
            return failed(stored.unit, about, stored.digest, failure)
        submission = self._persist(lambda connection: submissions.load(connection, stored))
        try:
            report = self._grading.grade(
                self._course.units[stored.unit],
                submission,
                about=about,
                progress=self._progress_of(run),
                stop=stop,
                anew=run.kind != runs.FIRST,
            )
        except Exception as error:
            if self._stop.is_set():
                raise Stopping from error
            if stop.told:
                raise Cancelled from error
            self._stats.count("attempts_failed", error=type(error).__name__)
            if isinstance(error, (EngineUnavailable, ImageMissing, OracleMissing)):
                self._miss(error)
                self._persist(lambda connection: runs.hand_back(connection, self._name, self._clock(), run.id))
                return None
            log.exception("run %s, attempt %d of %d: grading failed", run.id, run.attempts, most)
            return failed(stored.unit, about, stored.digest, error) if run.attempts >= most else None
        self._missing = ()
        return report

    def _progress_of(self, run: RunState) -> Callable[[Progress], None]:
        phase, write_at = "", 0.0

        def show(progress: Progress) -> None:
            nonlocal phase, write_at
            now = time.monotonic()
            if progress.phase == phase and now < write_at:
                return
            phase, write_at = progress.phase, now + PROGRESS_SECONDS
            try:
                with writing(self._database) as connection:
                    runs.show_progress(connection, run, progress.phase, progress.done, progress.total)
            except AWAY:
                log.warning("run %s: its progress was not written", run.id, exc_info=True)

        return show

    def _persist(self, work: Callable[[sa.Connection], T]) -> T:
        """Do `work` in a transaction, as often as it takes while the database does not answer."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                with writing(self._database) as connection:
                    return work(connection)
            except AWAY as error:
                if self._stop.is_set():
                    raise Stopping from error
                log.warning("the database does not answer: %s", error)
                self._stop.wait(pause)
                pause = min(2 * pause, LAST_PAUSE_SECONDS)


def _about(stored: Stored, run: RunState, course_digest: str) -> About:
    return About(
        id=stored.id,
        course=stored.course,
        student=stored.student,
        received_at=moment(stored.received_at),
        queued_seconds=_queued_seconds(run),
        course_digest=course_digest,
    )


def _queued_seconds(run: RunState) -> float:
    return max(0.0, (run.started_at or run.queued_at) - run.queued_at)
