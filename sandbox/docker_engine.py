"""Runs in Docker containers: a session comes in, a container of its own serves it and is removed.

Containers come from a pool, warm, or are made when asked for. Each serves one session. What a container may do is in
`options`, all of it; why is in decision 0032. Containers whose owner died are removed by `reap`.
"""

import atexit
import contextlib
import os
import struct
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import docker  # type: ignore[import-untyped]
import docker.errors  # type: ignore[import-untyped]
from docker.types import LogConfig, Ulimit  # type: ignore[import-untyped]

from sandbox.errors import EngineFailed, EngineUnavailable, ImageMissing
from sandbox.images import ENGINE_ERRORS, remove_old_images
from sandbox.owner import boot_id, owner_lives, owner_of
from sandbox.records import Environment, Limits, Module, SuiteFolder
from sandbox.runtimes import PLAIN, image_of
from sandbox.session import StationSession
from sandbox.station import SOURCES, Loss, Lost, SocketLine, Station
from sandbox.wire import WireError

SECCOMP = Path(__file__).parent / "seccomp.json"
IMAGE = f"autograder-sandbox:{SOURCES}"  # by the sources in it, so that two versions can share an engine
LABEL = "autograder.sandbox"
BOOT_LABEL = "autograder.boot"
OWNER_LABEL = "autograder.owner"
STREAM_PREFIX = struct.Struct(">BxxxI")
STDOUT = 1
LOG_BYTES = 4000
EXIT_SECONDS = 3.0
RETRY_SECONDS = 5.0
SETTLE_SECONDS = 0.5  # by which a session follows another whose submission waited for it
ALIKE = 5  # sessions, after which the next is taken to be of the same sort
FULL_SHARES = 1024
WARMING_SHARES = 32  # what is graded now goes before what is made ready for later
FOREIGN_SECONDS = 300.0


class DockerSandbox:
    """Opens sessions in containers. `close` it, or use it in a `with`, to remove what its pool holds.

    client_or_url: a docker.DockerClient, the URL of an engine, or None for the one the environment names.
    image: of the plain runtime; those of others are named after it. jobs: runs at a time in one session.
    pool_size: warm containers kept ready of the plain runtime; of another one, once it was used, one.
    oci_runtime: "runsc" for gVisor.
    ceiling: the highest limits a run may ask for; processes and disk hold for the container from its start.
    """

    def __init__(
        self,
        client_or_url: docker.DockerClient | str | None = None,
        image: str = IMAGE,
        jobs: int = 2,
        pool_size: int = 0,
        oci_runtime: str | None = None,
        memory_bytes: int = 2 * 2**30,
        ceiling: Limits = Limits(),  # noqa: B008 (frozen)
    ) -> None:
        """Raises EngineUnavailable (also for a runtime it lacks) or ImageMissing, each saying what to do."""
        self._client = connect(client_or_url)
        self._client_is_ours = self._client is not client_or_url
        self._jobs = jobs
        self._image = image
        if oci_runtime:
            refuse_unknown_runtime(self._client, oci_runtime)
        self._options = partial(options, jobs=jobs, memory_bytes=memory_bytes, ceiling=ceiling, oci_runtime=oci_runtime)
        self._pool_size = pool_size
        self._lock = threading.Lock()
        self._fleets: dict[str, Fleet] = {}
        self._crowd = Crowd(max(1, len(os.sched_getaffinity(0)) // jobs))
        self._ending = ThreadPoolExecutor(1, "sandbox-ending")
        reap(self._client)
        self._events = MemoryEvents(self._client)
        try:
            self._fleet(PLAIN)
        except BaseException:
            self._events.close()
            raise
        atexit.register(self.close)

    @contextmanager
    def session(
        self,
        preload: Sequence[Module] = (),
        deadline_seconds: float = 600.0,
        runtime: str = PLAIN,
        likely: Sequence[SuiteFolder] = (),
    ) -> Iterator[StationSession]:
        try:
            fleet = self._fleet(runtime)
            take = fleet.pool.taker(Stock(tuple(preload), tuple(likely)))
            self.wait_for_endings()
            with self._crowd.joined():
                session = StationSession(take, fleet.environment, preload, self._jobs, deadline_seconds)
                try:
                    yield session
                finally:
                    self._end(session)
        except EngineFailed as error:
            refuse_absent(self._client, error)
            raise

    def reap(self) -> None:
        """Remove the containers of owners that are dead, and old images. Raises EngineUnavailable."""
        reap(self._client)
        remove_old_images(self._client, {fleet.image_id for fleet in tuple(self._fleets.values())})

    @property
    def ready(self) -> int:
        """How many warm containers wait in the pools."""
        return sum(fleet.pool.ready() for fleet in tuple(self._fleets.values()))

    def expect(self, more: bool) -> None:
        """Say whether another session is known to follow those that are open: a container is made ready for it then,
        whatever that costs them. From any thread."""
        self._crowd.expect(more)

    def close(self) -> None:
        """Remove the pools' containers. Sessions that are open keep theirs until they end."""
        for fleet in self._fleets.values():
            fleet.pool.close()
        self.wait_for_endings()
        self._events.close()
        atexit.unregister(self.close)
        if self._client_is_ours:
            self._client.close()

    def __enter__(self) -> "DockerSandbox":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _end(self, session: StationSession) -> None:
        """A report does not wait for it, the next session does."""
        try:
            self._ending.submit(session.close)
        except RuntimeError:  # this process is leaving, and takes no more work for its threads
            session.close()

    def wait_for_endings(self) -> None:
        """Until the containers of sessions that are over are gone: no more memory was set aside for them."""
        with contextlib.suppress(RuntimeError):  # a process that is leaving has waited for its threads already
            self._ending.submit(int).result()

    def _fleet(self, runtime: str) -> "Fleet":
        """The containers of a runtime, which are made from its first use on. Raises ImageMissing."""
        with self._lock:
            if runtime not in self._fleets:
                image_id = image_id_of(self._client, image_of(self._image, runtime))
                container = self._options(image_id)
                open_now = partial(self._open, container, FULL_SHARES)
                open_ahead = partial(self._open, container, WARMING_SHARES)
                size = self._pool_size if runtime == PLAIN else min(1, self._pool_size)
                self._fleets[runtime] = Fleet(image_id, container, Pool(open_now, open_ahead, size, self._crowd))
            return self._fleets[runtime]

    def _open(self, container: dict[str, Any], shares: int) -> Station:
        line = start_container(self._client, with_shares(container, shares), self._events.of)
        try:
            return Station(line)
        except WireError as error:
            line.close()
            raise ImageMissing(f"{error}: run `make setup` to build the image anew") from error
        except Lost as error:
            raise EngineFailed(f"the container did not start: {error}; {line.close().text}") from error
        except BaseException:
            line.close()
            raise


@dataclass(frozen=True)
class Fleet:
    """The containers of one runtime: their image, what each is and may do, and those that are warm."""

    image_id: str
    container: dict[str, Any]
    pool: "Pool"

    def environment(self, station: Station) -> Environment:
        return Environment("docker", self.image_id, **asdict(station.versions))


class MemoryEvents:
    """Counts what the engine says of memory that ran out, by container of this process; a thread listens.

    The engine says so whatever its cgroup version. It is evidence where the supervisor has no file to read, and when
    a container is lost.
    """

    def __init__(self, client: docker.DockerClient) -> None:
        self._client = client
        self._counts: Counter[str] = Counter()
        self._stream: Any = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="sandbox-memory-events", daemon=True)
        self._thread.start()

    def of(self, container_id: str) -> int:
        return self._counts[container_id]

    def close(self) -> None:
        self._closing.set()
        if self._stream is not None:
            with contextlib.suppress(*ENGINE_ERRORS):
                self._stream.close()
        self._thread.join(EXIT_SECONDS)  # over ssh a stream cannot be closed; then it ends with this process

    def _listen(self) -> None:
        wanted = {"event": "oom", "label": f"{OWNER_LABEL}={owner_of(os.getpid())}"}
        while not self._closing.is_set():
            with contextlib.suppress(*ENGINE_ERRORS):
                self._stream = self._client.api.events(filters=wanted, decode=True)
                if self._closing.is_set():
                    self._stream.close()
                for event in self._stream:
                    self._counts[event["Actor"]["ID"]] += 1
            self._closing.wait(RETRY_SECONDS)


class Crowd:
    """How many sessions are open, of as many as the machine's cores are enough for, and whether more follow."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open = 0
        self._more = False
        self._changed = threading.Condition()

    @contextmanager
    def joined(self) -> Iterator[None]:
        self._add(1)
        try:
            yield
        finally:
            self._add(-1)

    def wait_for_room(self, closing: threading.Event) -> None:
        """Until there has been room for one more for a moment, or more follow, or `closing` is set."""
        with self._changed:
            while not (self._more or closing.is_set()):
                if self._open >= self._most:
                    self._changed.wait(RETRY_SECONDS)
                elif not self._changed.wait(SETTLE_SECONDS):
                    return

    def expect(self, more: bool) -> None:
        with self._changed:
            self._more = more
            self._changed.notify_all()

    def hurry(self) -> None:
        """Have those who wait look at `closing` now."""
        with self._changed:
            self._changed.notify_all()

    def _add(self, count: int) -> None:
        with self._changed:
            self._open += count
            self._changed.notify_all()


@dataclass(frozen=True)
class Stock:
    """What the sessions of one sort all begin with: modules to import, and trusted suites to prepare."""

    modules: tuple[Module, ...] = ()
    suites: tuple[SuiteFolder, ...] = ()


class Pool:
    """Keeps `size` stations ready. A thread opens new ones when some were taken and cores are idle: a start beside a
    grading that could use them costs that one more time than the next one gains (decision 0245). While all sessions
    are of one sort, their stock is laid in ahead (decision 0248)."""

    def __init__(
        self, open_station: Callable[[], Station], open_ahead: Callable[[], Station], size: int, crowd: Crowd
    ) -> None:
        self._open = open_station
        self._open_ahead = open_ahead
        self._crowd = crowd
        self._asked: deque[Stock] = deque(maxlen=ALIKE)
        self._coming: deque[Future[Station]] = deque()
        self._wanted = threading.Semaphore(size)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._refill, name="sandbox-pool", daemon=True) if size else None
        if self._thread:
            self._thread.start()

    def ready(self) -> int:
        """How many are warm."""
        return sum(coming.done() for coming in tuple(self._coming))

    def taker(self, stock: Stock) -> Callable[[], Station]:
        """What takes a station for a session that begins with this."""
        self._asked.append(stock)
        return lambda: self._take(stock.modules)

    def _take(self, modules: Sequence[Module]) -> Station:
        """A warm station, the one that is just being opened, or a new one. Those whose container has gone, with its
        engine perhaps, are dropped, and those that hold other modules."""
        with contextlib.suppress(IndexError):
            while True:
                coming = self._coming.popleft()
                self._wanted.release()
                with contextlib.suppress(Exception):  # who opens one now sees the same, by itself
                    station = coming.result()
                    if station.line.is_quiet() and station.can_serve(modules):
                        return station
                    station.line.close()
        return self._open()

    def close(self) -> None:
        self._closing.set()
        self._crowd.hurry()
        self._wanted.release()
        if self._thread:
            self._thread.join()
        for coming in self._coming:
            coming.result().line.close()
        self._coming.clear()

    def _refill(self) -> None:
        while True:
            self._wanted.acquire()
            self._crowd.wait_for_room(self._closing)
            if self._closing.is_set():
                return
            coming: Future[Station] = Future()
            self._coming.append(coming)
            try:
                station = self._open_ahead()
                station.line.hasten()  # now, so that who takes it need not wait for that
                self._lay_in(station)
                coming.set_result(station)
            except Exception as error:
                with contextlib.suppress(ValueError):  # somebody has taken it, who wants another
                    self._coming.remove(coming)
                    self._wanted.release()
                coming.set_exception(error)
                self._closing.wait(RETRY_SECONDS)

    def _lay_in(self, station: Station) -> None:
        alike = tuple(self._asked)
        if len(alike) < ALIKE or len(set(alike)) > 1:
            return
        try:
            station.preload(alike[0].modules)
            station.prepare(alike[0].suites)
        except BaseException:
            station.line.close()
            raise


def options(image_id: str, jobs: int, memory_bytes: int, ceiling: Limits, oci_runtime: str | None) -> dict[str, Any]:
    """Everything that a container of ours is and may do, as arguments for the engine."""
    slots = {
        f"/slot/{number}": f"rw,noexec,nosuid,nodev,mode=1700,size={ceiling.disk_bytes},nr_inodes={ceiling.disk_files}"
        for number in range(jobs)
    }
    return {
        "image": image_id,
        "command": list(slots),
        "hostname": "sandbox",
        "user": "0:0",
        "labels": labels(),
        "network_disabled": True,
        "host_config": {
            "network_mode": "none",
            "read_only": True,
            "cap_drop": ["ALL"],
            "cap_add": ["SETUID", "SETGID", "KILL"],  # for the supervisor; runs have none
            "security_opt": ["no-new-privileges", f"seccomp={SECCOMP.read_text(encoding='utf-8')}"],
            "mem_limit": memory_bytes,
            "memswap_limit": memory_bytes,
            "pids_limit": jobs * ceiling.processes + 16,
            "cpu_period": 100_000,
            "cpu_quota": jobs * 100_000,
            "ulimits": [
                Ulimit(name="core", soft=0, hard=0),
                Ulimit(name="nofile", soft=1024, hard=1024),
                Ulimit(name="fsize", soft=ceiling.file_bytes, hard=ceiling.file_bytes),
            ],
            "ipc_mode": "none",
            "tmpfs": slots,
            "log_config": LogConfig(type="none"),
            "init": False,
            **({"runtime": oci_runtime} if oci_runtime else {}),
        },
    }


def with_shares(container: dict[str, Any], shares: int) -> dict[str, Any]:
    """The same container with another weight against others that want the same cores."""
    return {**container, "host_config": {**container["host_config"], "cpu_shares": shares}}


def connect(client_or_url: docker.DockerClient | str | None) -> docker.DockerClient:
    """A client whose engine answers. Raises EngineUnavailable."""
    client = None
    try:
        if isinstance(client_or_url, str):
            client = docker.DockerClient(base_url=client_or_url)
        else:
            client = client_or_url or docker.from_env()
        client.ping()
    except ENGINE_ERRORS as error:
        if client is not None:
            client.close()
        raise EngineUnavailable(
            f"no Docker Engine answers ({error}): run `make setup`, or set DOCKER_HOST to one that does"
        ) from error
    return client


def refuse_absent(client: docker.DockerClient, error: EngineFailed) -> None:
    """Raises EngineUnavailable if the engine does not answer at all: then it has not failed with one container."""
    try:
        client.ping()
    except ENGINE_ERRORS as absence:
        raise EngineUnavailable(f"the Docker Engine does not answer any more ({absence}): start it again") from error


def image_id_of(client: docker.DockerClient, image: str) -> str:
    """The id of an image by its name. Raises ImageMissing or EngineUnavailable."""
    try:
        return str(client.images.get(image).id)
    except docker.errors.ImageNotFound as error:
        raise ImageMissing(f"the engine has no image {image}: run `make setup` to build it") from error
    except ENGINE_ERRORS as error:
        raise EngineUnavailable(f"the Docker Engine does not answer: {error}") from error


def refuse_unknown_runtime(client: docker.DockerClient, runtime: str) -> None:
    """Raises EngineUnavailable if the engine does not know the runtime: no container would ever start."""
    try:
        known = sorted(client.info().get("Runtimes", {}))
    except ENGINE_ERRORS as error:
        raise EngineUnavailable(f"the Docker Engine does not answer: {error}") from error
    if runtime not in known:
        raise EngineUnavailable(
            f"the Docker Engine has no runtime {runtime}, only {', '.join(known)}: install it and name it in the "
            "engine's daemon.json, or unset AUTOGRADER_RUNTIME"
        )


def start_container(
    client: docker.DockerClient, container: dict[str, Any], memory_events_of: Callable[[str], int]
) -> "DockerLine":
    """Raises EngineFailed if the engine refuses any step."""
    api = client.api
    try:
        host_config = api.create_host_config(**container["host_config"])
        rest = {key: value for key, value in container.items() if key != "host_config"}
        created = api.create_container(**rest, stdin_open=True, host_config=host_config)["Id"]
    except ENGINE_ERRORS as error:
        raise EngineFailed(f"the engine made no container: {error}") from error
    try:
        attached = api.attach_socket(created, {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
        api.start(created)
    except ENGINE_ERRORS as error:
        remove(client, created)
        raise EngineFailed(f"the engine did not start a container: {error}") from error
    return DockerLine(client, created, attached, memory_events_of)


class DockerLine(SocketLine):
    """The attached stdin, stdout and stderr of a container."""

    def __init__(
        self, client: docker.DockerClient, container_id: str, attached: Any, memory_events_of: Callable[[str], int]
    ) -> None:
        self._client = client
        self._id = container_id
        self._attached = attached  # holds the connection open
        self._buffer = bytearray()
        self._log = b""
        self._memory_events_of = memory_events_of
        super().__init__(getattr(attached, "_sock", attached), self._stdout_of)

    def _stdout_of(self, data: bytes) -> bytes:
        """The protocol's bytes among the engine's multiplexed ones; the supervisor's log is put aside."""
        self._buffer += data
        result = b""
        while len(self._buffer) >= STREAM_PREFIX.size:
            stream, length = STREAM_PREFIX.unpack_from(self._buffer)
            if len(self._buffer) < STREAM_PREFIX.size + length:
                break
            part = bytes(self._buffer[STREAM_PREFIX.size : STREAM_PREFIX.size + length])
            del self._buffer[: STREAM_PREFIX.size + length]
            if stream == STDOUT:
                result += part
            else:
                self._log = (self._log + part)[-LOG_BYTES:]
        return result

    def hasten(self) -> None:
        with contextlib.suppress(*ENGINE_ERRORS):  # the next use of the engine will tell
            self._client.api.update_container(self._id, cpu_shares=FULL_SHARES)

    def memory_events(self) -> int:
        return self._memory_events_of(self._id)

    def kill(self) -> None:
        with contextlib.suppress(*ENGINE_ERRORS):
            self._client.api.kill(self._id)

    def close(self) -> Loss:
        with contextlib.suppress(OSError):
            self._connection.close()
            self._attached.close()
        state = self._state_at_exit()
        remove(self._client, self._id)
        text = f"exit {state.get('ExitCode')}: {self._log.decode('utf-8', 'replace')}"
        return Loss(bool(state.get("OOMKilled") or self.memory_events()), text)

    def _state_at_exit(self) -> dict[str, Any]:
        """The container's own end, if it comes soon: what it died of must be read before it is removed."""
        until, state = time.monotonic() + EXIT_SECONDS, {}
        with contextlib.suppress(*ENGINE_ERRORS):
            while time.monotonic() < until:
                state = dict(self._client.api.inspect_container(self._id)["State"])
                if not state["Running"]:
                    break
                time.sleep(0.02)
        return state


def remove(client: docker.DockerClient, container_id: str) -> None:
    """Remove a container, running or not; one that is gone already is fine, and a failure is left to `reap`."""
    with contextlib.suppress(*ENGINE_ERRORS):
        client.api.remove_container(container_id, force=True, v=True)


def reap(client: docker.DockerClient) -> list[str]:
    """Remove the containers of owners that are dead; returns their ids.

    An owner is a process: of this boot and this pid namespace it can be told whether it lives. Of others, which
    share the engine (an earlier boot, a worker in a container of its own), those are removed that ended, or never
    began, some time ago: a container ends when its owner does, and an owner that lives removes it at once.
    """
    reaped = []
    try:
        found = client.api.containers(all=True, filters={"label": LABEL})
    except ENGINE_ERRORS as error:
        raise EngineUnavailable(f"the Docker Engine does not answer: {error}") from error
    for container in found:
        boot, owner = (container["Labels"].get(name, "") for name in (BOOT_LABEL, OWNER_LABEL))
        if boot == boot_id():
            orphaned = not owner_lives(owner)
        else:
            orphaned = container["State"] != "running" and _idle_seconds(client, container) > FOREIGN_SECONDS
        if orphaned:
            remove(client, container["Id"])
            reaped.append(container["Id"])
    return reaped


def _idle_seconds(client: docker.DockerClient, container: dict[str, Any]) -> float:
    """Since a container that does not run ended, or was made if it never ran."""
    try:
        finished = str(client.api.inspect_container(container["Id"])["State"]["FinishedAt"])
    except ENGINE_ERRORS:  # it is gone, or the next look will tell
        return 0.0
    ended_at = datetime.fromisoformat(f"{finished[:19]}+00:00").timestamp() if finished[:4] > "0001" else 0.0
    return time.time() - max(ended_at, float(container["Created"]))


def labels() -> dict[str, str]:
    """What marks a container as ours, and as this process's."""
    return {LABEL: "1", BOOT_LABEL: boot_id(), OWNER_LABEL: owner_of(os.getpid())}
