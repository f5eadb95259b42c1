"""Event streams over a real server: what a client sees, and what a crowd of them costs."""

import asyncio
import json
import subprocess
import threading
import time
from dataclasses import dataclass

import httpx
import pytest
import sqlalchemy as sa

from service import accounts, database
from service.answers import SubmissionAnswer
from service.audit import By
from service.events import Follower, State
from service.people import mint, users
from service.runs import Status
from service.tables import runs, submissions
from tests.service.live import PATIENCE_SECONDS, live

pytestmark = pytest.mark.both_databases


@dataclass(frozen=True)
class Event:
    name: str
    id: str
    status: str
    data: dict


def parsed(block):
    fields = dict(line.partition(": ")[::2] for line in block.splitlines() if not line.startswith(":"))
    if "data" not in fields:
        return None
    data = json.loads(fields["data"])
    return Event(fields["event"], fields["id"], data["status"], data)


def move(bench, submission, **values):
    """Change the submission's run as a worker does."""
    run = sa.select(submissions.c.run).where(submissions.c.id == submission).scalar_subquery()
    with database.writing(bench.engine) as connection:
        connection.execute(runs.update().where(runs.c.id == run).values(version=runs.c.version + 1, **values))


class Reader:
    """Follows a submission in a thread; `events` grows, `ended` is set at the stream's end."""

    def __init__(self, url, headers):
        self.events, self.texts, self.ended = [], [], threading.Event()
        self.grown = threading.Condition()
        self.answer = None
        self._thread = threading.Thread(target=self._read, args=(url, headers))
        self._thread.start()

    def _read(self, url, headers):
        with httpx.stream("GET", url, headers=headers, timeout=PATIENCE_SECONDS) as answer:
            self.answer = answer
            text = ""
            for chunk in answer.iter_text():
                text += chunk
                *whole, text = text.split("\n\n")
                with self.grown:
                    self.texts += whole
                    self.events += filter(None, map(parsed, whole))
                    self.grown.notify_all()
        self.ended.set()

    def saw(self, count):
        """Wait for so many events."""
        with self.grown:
            assert self.grown.wait_for(lambda: len(self.events) >= count, PATIENCE_SECONDS), self.texts
        return self.events[count - 1]

    def join(self):
        self._thread.join(PATIENCE_SECONDS)
        assert self.ended.is_set()
        return self.events


@pytest.fixture
def served(bench):
    with live(bench.app, bench.settings) as running:
        bench.url = running.url
        bench.live = running
        yield bench


def follow(bench, submission, who="ada", last=None):
    headers = bench.auth(who) | ({"Last-Event-ID": last} if last else {})
    return Reader(f"{bench.url}/v1/submissions/{submission}/events", headers)


def test_a_stream_tells_status_progress_and_the_end_and_then_ends(served):
    submission = served.submitted("ada")
    reader = follow(served, submission)
    first = reader.saw(1)
    assert (first.name, first.status, first.data["position"]) == ("status", "queued", 1)
    move(served, submission, status="running", phase="mutants", done=1, total=9)
    assert (reader.saw(2).name, reader.saw(2).status) == ("status", "running")
    move(served, submission, done=2)
    assert (reader.saw(3).name, reader.saw(3).data["progress"]["done"]) == ("progress", 2)
    move(served, submission, status="done", finished_at=served.clock())
    events = reader.join()
    assert (events[-1].name, events[-1].status) == ("done", "done")
    assert len({event.id for event in events}) == len(events) == 4
    assert events[-1].data == served.get(f"/v1/submissions/{submission}", "ada").json()
    assert reader.texts[0].startswith("retry: ")


def test_a_stream_says_what_proxies_must_not_do(served):
    submission = served.submitted("ada")
    move(served, submission, status="done", finished_at=served.clock())
    reader = follow(served, submission)
    reader.join()
    headers = reader.answer.headers
    assert headers["Content-Type"].startswith("text/event-stream")
    assert headers["X-Accel-Buffering"] == "no"
    assert "no-transform" in headers["Cache-Control"] and "Content-Encoding" not in headers


def test_who_reconnects_is_told_nothing_twice_and_misses_no_end(served):
    submission = served.submitted("ada")
    first = follow(served, submission)
    seen = first.saw(1)
    again = follow(served, submission, last=seen.id)
    move(served, submission, status="running")
    event = again.saw(1)
    assert event.status == "running" and event.id != seen.id
    move(served, submission, done=1, total=2)
    move(served, submission, status="done", finished_at=served.clock())
    assert [event.status for event in again.join()][-1] == "done"
    late = follow(served, submission, last=seen.id).join()
    assert [event.name for event in late] == ["done"]
    first.join()


def test_who_has_seen_the_end_is_told_so_without_a_stream(served):
    submission = served.submitted("ada")
    move(served, submission, status="done", finished_at=served.clock())
    [end] = follow(served, submission).join()
    headers = served.auth("ada") | {"Last-Event-ID": end.id}
    assert httpx.get(f"{served.url}/v1/submissions/{submission}/events", headers=headers).status_code == 204


def test_a_regrade_is_seen_as_another_run(served):
    submission = served.submitted("ada")
    move(served, submission, status="done", finished_at=served.clock())
    [end] = follow(served, submission).join()
    with database.writing(served.engine) as connection:
        row = connection.execute(sa.select(runs).where(runs.c.submission == submission)).mappings().one()
        connection.execute(runs.insert().values(**{**row, "id": "0" * 32, "kind": "regrade", "version": 0}))
        connection.execute(submissions.update().where(submissions.c.id == submission).values(run="0" * 32))
    [other] = follow(served, submission, last=end.id).join()
    assert other.id == f"{'0' * 32}-0"


def test_curl_reads_a_stream_and_ends_with_it(served):
    submission = served.submitted("ada")
    url, token = f"{served.url}/v1/submissions/{submission}/events", served.auth("ada")["Authorization"]
    curl = subprocess.Popen(["curl", "-sSN", "-H", f"Authorization: {token}", url], stdout=subprocess.PIPE, text=True)
    lines = iter(curl.stdout.readline, "")
    assert "event: status\n" in [next(lines) for _ in range(4)]
    move(served, submission, status="cancelled", finished_at=served.clock())
    assert "event: done\n" in list(lines)
    assert curl.wait(PATIENCE_SECONDS) == 0
    curl.stdout.close()


def test_a_place_in_the_queue_that_moves_is_told(served):
    first = served.submitted("ada")
    served.clock.now += 1
    second = served.submitted("bob")
    reader = follow(served, second, "bob")
    before = reader.saw(1)
    move(served, first, status="running")
    after = reader.saw(2)
    assert (before.data["position"], after.data["position"]) == (2, 1)
    assert (after.name, after.id) == ("progress", before.id)
    move(served, second, status="cancelled", finished_at=served.clock())
    reader.join()


def test_a_token_follows_only_so_many_at_a_time(make_bench):
    bench = make_bench(max_streams_per_student=2)
    submission = bench.submitted("ada")
    with live(bench.app, bench.settings) as running:
        bench.url = running.url
        readers = [follow(bench, submission) for _ in range(2)]
        for reader in readers:
            reader.saw(1)
        answer = httpx.get(f"{bench.url}/v1/submissions/{submission}/events", headers=bench.auth("ada"))
        assert (answer.status_code, answer.json()["code"]) == (429, "too_many_streams")
        assert int(answer.headers["Retry-After"]) > 0
        move(bench, submission, status="done", finished_at=bench.clock())
        for reader in readers:
            reader.join()
        assert follow(bench, submission).join()


def test_a_person_follows_no_more_with_many_tokens(make_bench):
    bench = make_bench(max_streams_per_student=1)
    bench.person("ada", default="student")
    with database.writing(bench.engine) as connection:
        user = users.find_by_login(connection, "ada")
        account = accounts.find(connection, user.account, bench.clock())
        by = By(account, bench.clock())
        made = [mint.for_person(connection, account, "ada", by, label="").secret for _ in range(2)]
    submission = bench.submitted("ada")
    with live(bench.app, bench.settings) as running:
        address = f"{running.url}/v1/submissions/{submission}/events"
        first, second = ({"Authorization": f"Bearer {secret}"} for secret in made)
        with httpx.stream("GET", address, headers=first) as opened:
            assert opened.status_code == 200
            assert httpx.get(address, headers=second).status_code == 429


def test_each_client_is_given_the_links_that_lead_back_to_it(served):
    submission = served.submitted("ada")
    url = f"{served.url}/v1/submissions/{submission}/events"
    readers = {prefix: Reader(url, {**served.auth("ada"), "X-Forwarded-Prefix": prefix}) for prefix in ("/a", "/b", "")}
    for reader in readers.values():
        reader.saw(1)
    move(served, submission, status="done", finished_at=served.clock())
    for prefix, reader in readers.items():
        links = [event.data["links"]["self"] for event in reader.join()]
        assert links == [f"{prefix}/v1/submissions/{submission}"] * 2


def test_head_opens_no_stream(served):
    submission = served.submitted("ada")
    url = f"{served.url}/v1/submissions/{submission}/events"
    answer = httpx.head(url, headers=served.auth("ada"), timeout=PATIENCE_SECONDS)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/event-stream")


def test_a_stopping_service_ends_its_streams(served):
    submission = served.submitted("ada")
    reader = follow(served, submission)
    reader.saw(1)
    served.live.server.stop()
    assert [event.name for event in reader.join()] == ["status"]


def test_a_client_that_is_gone_is_forgotten(served):
    submission = served.submitted("ada")
    url = f"{served.url}/v1/submissions/{submission}/events"
    with httpx.stream("GET", url, headers=served.auth("ada"), timeout=PATIENCE_SECONDS) as answer:
        texts = answer.iter_text()
        next(texts)
        assert followers(served) == 1
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while followers(served):
        assert time.monotonic() < give_up_at
        time.sleep(0.02)


def followers(bench):
    return bench.service.stats.read().numbers["followers"][()]


def test_two_hundred_followers_share_one_look_and_hold_no_thread(served):
    waiting = [served.submitted("lms", student=f"s{number}") for number in range(20)]
    threads = threading.active_count()
    statements = []
    told = asyncio.run(crowd(served, waiting, statements))
    assert told == 200
    # One look is one statement for all; the first one of a stream, and each end, are read for themselves.
    assert statements.count("look") < 60
    assert max(threads_seen(statements)) < threads + 60


async def crowd(bench, waiting, statements):
    """Follow with 200 clients, count what the database is asked meanwhile, end all, and count who saw the end."""
    headers = bench.auth("lms")
    begun = asyncio.Semaphore(0)

    async def one(client, submission):
        async with client.stream("GET", f"{bench.url}/v1/submissions/{submission}/events", headers=headers) as answer:
            text = ""
            async for chunk in answer.aiter_text():
                if not text:
                    begun.release()
                text += chunk
        return "event: done" in text

    def count(connection, cursor, statement, parameters, context, many):
        statements.append(threading.active_count())
        if "ag_runs.version" in statement and "IN (" in statement:
            statements.append("look")

    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(limits=limits, timeout=PATIENCE_SECONDS) as client:
        tasks = [asyncio.create_task(one(client, waiting[number % len(waiting)])) for number in range(200)]
        for _ in tasks:
            await asyncio.wait_for(begun.acquire(), PATIENCE_SECONDS)
        sa.event.listen(bench.engine, "before_cursor_execute", count)
        await asyncio.sleep(3)
        for submission in waiting:
            await asyncio.to_thread(move, bench, submission, status="done", finished_at=bench.clock())
        ended = sum(await asyncio.gather(*tasks))
        sa.event.remove(bench.engine, "before_cursor_execute", count)
        return ended


def threads_seen(statements):
    return [each for each in statements if isinstance(each, int)]


def test_a_follower_keeps_only_the_newest_state():
    first = state("a-0", Status.QUEUED)
    follower = Follower("1", "t", first)
    follower.tell(first)
    assert not follower.moved.is_set()
    for number in range(1, 4):
        follower.tell(state(f"a-{number}", Status.RUNNING))
    assert follower.state.mark == "a-3"


def state(mark, status):
    answer = SubmissionAnswer.model_construct(id="1", status=status, position=None)
    return State(mark, answer)
