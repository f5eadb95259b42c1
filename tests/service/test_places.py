import heapq
import random
import statistics
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.submission import Submission
from sandbox.records import File
from service import places, runs, submissions, tables
from service.database import reading, writing
from service.dbos_queue import DbosEngine, DbosQueue
from service.places import ENOUGH_RUNS, RECENT_RUNS, Finished
from service.runs import Worker
from service.worker import FakeGrading
from tests.service import samples

SECONDS = {"quick": 2.0, "slow": 9.0}
GAP = 0.2
SUBMISSION = Submission("L0.0", {samples.PATH: samples.SOURCE}, (File("test_a.py", samples.TESTS),))


def steady(seconds, count=20, unit="quick", gap=GAP):
    """Runs of one worker, one after the other, each waiting from the beginning; the last one first."""
    return [
        Finished(unit, "w", 0.0, n * (seconds + gap), n * (seconds + gap) + seconds) for n in reversed(range(count))
    ]


def pace(seconds=10.0, gap=0.0):
    return places.measured(steady(seconds, gap=gap))


# -- the pace --------------------------------------------------------------------------------------------------------


def test_without_runs_there_is_no_pace():
    assert places.measured([]) is None


def test_the_pause_between_two_runs_is_seen_only_where_the_second_waited():
    assert places.measured(steady(2)).gap == pytest.approx(GAP)
    idle = [Finished("quick", "w", 10.0 * n, 10.0 * n, 10.0 * n + 2) for n in reversed(range(9))]
    assert places.measured(idle).gap == 0


def test_a_unit_with_few_runs_of_its_own_is_taken_to_be_like_the_others():
    few = steady(100, ENOUGH_RUNS - 1, "slow") + steady(2)
    assert places.measured(few).of("slow").typical < 50
    assert places.measured(few).of("unheard of") == places.measured(few).any
    enough = steady(100, ENOUGH_RUNS, "slow") + steady(2)
    assert places.measured(enough).of("slow").typical == pytest.approx(100)
    assert places.measured(enough).of("quick").typical == pytest.approx(2)


def test_what_ended_lately_counts_for_more():
    before, lately = steady(2, RECENT_RUNS - 30), steady(5, 30)
    assert places.measured(lately + before).of("quick").typical == pytest.approx(5)
    assert places.measured(before + lately).of("quick").typical == pytest.approx(2)


def test_one_run_that_hung_changes_what_is_typical_little():
    hung = [Finished("quick", "w", 0, 0, 600), *steady(2)]
    assert places.measured(hung).of("quick").typical == pytest.approx(2)


def test_what_a_run_still_takes_comes_from_those_that_took_longer():
    lengths = places.measured([*steady(2, 8), *steady(9, 2)]).of("quick")
    assert lengths.left(0) == pytest.approx(statistics.fmean([2] * 8 + [9] * 2))
    assert lengths.left(3) == pytest.approx(6)
    assert 0 < lengths.left(20) <= lengths.typical


# -- the wait --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("slots", "busy", "ahead", "wanted"),
    [
        (1, [], 0, 0),
        (2, [4], 0, 0),
        (1, [4], 0, 6),
        (1, [4], 3, 36),
        (2, [4, 8], 0, 2),
        (2, [4, 8], 2, 12),
        (2, [4, 8], 3, 16),
        (2, [], 4, 20),
        (4, [0, 0, 0, 0], 4000, 10_010),
    ],
)
def test_runs_of_one_length_are_foretold_exactly(slots, busy, ahead, wanted):
    found = places.wait_seconds(pace(10), slots, [("quick", age) for age in busy], {"quick": ahead} if ahead else {})
    assert found == pytest.approx(wanted)


def test_what_waits_is_weighed_by_its_unit():
    mixed = places.measured(steady(2, 20, "quick", 0) + steady(9, 20, "slow", 0))
    assert places.wait_seconds(mixed, 1, [], {"quick": 3, "slow": 2}) == pytest.approx(3 * 2 + 2 * 9)


@given(
    st.integers(1, 8),
    st.lists(st.floats(0, 30), max_size=8),
    st.integers(0, 600),
    st.integers(1, 50),
)
def test_one_place_further_back_never_comes_sooner(slots, ages, ahead, more):
    busy = [("quick", age) for age in ages]
    near, far = (places.wait_seconds(pace(10), slots, busy, {"quick": n}) for n in (ahead, ahead + more))
    assert 0 <= near <= far


class Simulation:
    """What a queue really does: slots take the next run by priority and time, and each takes its own time."""

    def __init__(self, seed, slots, count):
        self.random = random.Random(seed)
        self.slots = slots
        self.past = self._play([(0, n, self._run()) for n in range(150)])
        self.queue = sorted((self.random.choice([0, 0, 0, 1, 2]), n, self._run()) for n in range(count))

    def _run(self):
        unit = self.random.choice(["quick", "quick", "slow"])
        return unit, SECONDS[unit] * self.random.lognormvariate(0, 0.35)

    def _play(self, queue):
        free = [(self.random.random(), slot) for slot in range(self.slots)]
        heapq.heapify(free)
        done = []
        for _, _, (unit, seconds) in queue:
            at, slot = heapq.heappop(free)
            start = at + GAP * self.random.uniform(0.5, 1.5) if done else at
            done.append(Finished(unit, f"w{slot}", 0.0, start, start + seconds))
            heapq.heappush(free, (start + seconds, slot))
        return done

    def errors(self):
        """By what share the estimate is off, for every fifth run, asked for at a moment after all are queued."""
        played = self._play(self.queue)
        now = statistics.median(run.started_at for run in played) * self.random.random()
        before = sorted(self.past, key=lambda run: -run.finished_at)[:RECENT_RUNS]
        found = places.measured(before)
        busy = [(run.unit, now - run.started_at) for run in played if run.started_at <= now < run.finished_at]
        waiting = [run for run in played if run.started_at > now]
        for n in range(0, len(waiting), 5):
            run = waiting[n]
            ahead = Counter(each.unit for each in waiting[:n])
            said = places.wait_seconds(found, self.slots, busy, ahead) + found.of(run.unit).typical
            yield abs(said - (run.finished_at - now)) / (run.finished_at - now)


@pytest.mark.parametrize("slots", [1, 2, 6])
@pytest.mark.parametrize(("count", "share"), [(40, 0.75), (400, 0.9)])
def test_most_estimates_are_within_three_tenths_of_what_a_simulated_queue_does(slots, count, share):
    errors = [error for seed in range(12) for error in Simulation(seed, slots, count).errors()]
    within = sum(error <= 0.3 for error in errors) / len(errors)
    assert within > share, f"{within:.0%} of {len(errors)}, median {statistics.median(errors):.0%}"


# -- from the database -----------------------------------------------------------------------------------------------


def answer(bench, submission):
    return bench.get(f"/v1/submissions/{submission}").json()


def begin(bench, run, worker="worker-1"):
    with writing(bench.engine) as connection:
        return runs.claim(connection, run, worker, bench.clock())


def ready(bench, slots=1, worker="worker-1", lacks=()):
    with writing(bench.engine) as connection:
        runs.beat(connection, Worker(worker, slots, not lacks, lacks), bench.clock())


def graded(bench, seconds):
    """A submission that took so long."""

    def answer(unit, submission, about, progress):
        bench.clock.now += seconds
        return samples.report(about, unit.id)

    bench.submitted("zoe")
    waiting, bench.queue.submitted = bench.queue.submitted[:-1], bench.queue.submitted[-1:]
    bench.graded(bench.worker(FakeGrading(answer)))
    bench.queue.submitted = waiting


@pytest.mark.both_databases
def test_places_in_the_queue_count_those_that_wait(bench):
    ids = []
    for student in ("ada", "bob", "cy"):
        ids.append(bench.submitted(student))
        bench.clock.now += 1
    assert [answer(bench, each)["position"] for each in ids] == [1, 2, 3]
    begin(bench, bench.queue.submitted[0])
    assert [answer(bench, each)["position"] for each in ids] == [None, 1, 2]


@pytest.mark.both_databases
def test_who_has_work_waiting_stands_behind_who_has_none(bench):
    first, second = bench.submitted("ada"), bench.submitted("ada")
    bench.clock.now += 1
    other = bench.submitted("bob")
    assert [answer(bench, each)["position"] for each in (first, other, second)] == [1, 2, 3]


@pytest.mark.both_databases
def test_an_estimate_needs_recent_runs_and_a_worker_that_is_ready(bench):
    waiting = bench.submitted("ada")
    run = bench.queue.submitted.pop()
    ready(bench)
    assert answer(bench, waiting)["estimate_seconds"] is None
    graded(bench, 10)
    assert answer(bench, waiting)["estimate_seconds"] == 10
    ready(bench, lacks=("sandbox",))
    assert answer(bench, waiting)["estimate_seconds"] is None
    ready(bench)
    begin(bench, run)
    assert answer(bench, waiting)["estimate_seconds"] == 10
    bench.clock.now += 4
    assert answer(bench, waiting)["estimate_seconds"] == 6


@pytest.mark.both_databases
def test_slots_of_all_ready_workers_share_the_wait(bench):
    graded(bench, 10)
    ready(bench, 1, "worker-1")
    ready(bench, 1, "worker-2")
    ready(bench, 8, "worker-3", lacks=("sandbox",))
    waiting = []
    for student in "abcde":
        waiting.append(bench.submitted(student))
        bench.clock.now += 0.01
    begin(bench, bench.queue.submitted[0], "worker-1")
    begin(bench, bench.queue.submitted[1], "worker-2")
    assert [answer(bench, each)["estimate_seconds"] for each in waiting[2:]] == [20, 20, 30]


@pytest.mark.both_databases
def test_what_a_silent_worker_was_at_is_counted_once_more(bench):
    graded(bench, 10)
    ready(bench, 1, "silent")
    bench.submitted("ada")
    begin(bench, bench.queue.submitted[0], "silent")
    bench.clock.now += runs.ALIVE_SECONDS + 1
    ready(bench, 1, "worker-1")
    assert answer(bench, bench.submitted("bob"))["estimate_seconds"] == 20


@pytest.mark.both_databases
def test_the_pace_is_worked_out_anew_when_another_run_has_ended(bench):
    paces = places.Paces()

    def pace():
        with reading(bench.engine) as connection:
            return paces.of(connection, bench.clock())

    assert pace() is None
    graded(bench, 10)
    first = pace()
    assert first.any.typical == 10 and pace() is first
    graded(bench, 30)
    graded(bench, 30)
    graded(bench, 30)
    assert pace().any.typical == 30


def test_a_pace_of_many_runs_is_good_for_a_while(bench, monkeypatch):
    monkeypatch.setattr(places, "RECENT_RUNS", 2)
    paces = places.Paces()

    def typical():
        with reading(bench.engine) as connection:
            return paces.of(connection, bench.clock()).any.typical

    graded(bench, 10)
    graded(bench, 10)
    assert typical() == 10
    known_at = bench.clock.now
    graded(bench, 1)
    graded(bench, 1)
    assert typical() == 10
    bench.clock.now = known_at + places.PACE_SECONDS
    assert typical() == 1


@pytest.mark.both_databases
def test_the_engine_takes_runs_in_the_order_of_their_places(bench):
    """And so nobody's second unfinished submission begins before anybody's first."""
    queue = DbosQueue(bench.engine)
    mixed = random.Random(7)
    token = bench.token("lms") and bench.rows(tables.tokens)[0].id
    posts = [student for student in "abcdef" for _ in range(mixed.randint(1, 4))]
    mixed.shuffle(posts)
    stored = []
    for student in posts:
        bench.clock.now += 1
        with writing(bench.engine) as connection:
            added = submissions.add(
                connection, queue, SUBMISSION, course="default", student=student, token=token, now=bench.clock()
            )
        stored.append(added)
    with reading(bench.engine) as connection:
        found = {
            each.run: places.of(connection, runs.find(connection, each.run), "L0.0", 0, places.Paces())
            for each in stored
        }
    expected = sorted(found, key=lambda run: found[run].position)
    assert [found[run].position for run in expected] == list(range(1, len(posts) + 1))
    taken = []
    engine = DbosEngine(bench.settings.url, "worker-1", 1, 0.02)
    engine.start(taken.append)
    try:
        waited = 0
        while len(taken) < len(posts) and waited < 3000:
            bench.stop.wait(0.02)
            waited += 1
    finally:
        engine.stop(0)
        queue.close()
    assert taken == expected
    students = {each.run: each.student for each in stored}
    assert {students[run] for run in taken[:6]} == set("abcdef")
