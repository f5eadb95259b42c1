"""What only a container gives: runs that cannot reach each other, the supervisor, or anything outside."""

import contextlib
import gc
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import docker
import pytest

from sandbox import docker_engine
from sandbox.docker_engine import IMAGE, DockerSandbox, boot_id, connect, owner_lives, owner_of, reap
from sandbox.errors import EngineUnavailable, ImageMissing
from sandbox.records import EndingKind, ItemOutcome, Module, Resource, Run, RunResult, Session
from sandbox.runtimes import PLAIN
from sandbox.wire import source_digest

MakeRun = Callable[..., Run]
docker_only = pytest.mark.docker


@pytest.fixture(scope="module")
def session(docker_sandbox: DockerSandbox) -> Iterator[Session]:
    with docker_sandbox.session() as session:
        yield session


@pytest.fixture
def client() -> Iterator[docker.DockerClient]:
    client = connect(None)
    yield client
    client.close()


def containers(client: docker.DockerClient) -> set[str]:
    """Ids of the containers that this process owns."""
    label = f"autograder.owner={owner_of(os.getpid())}"
    return {found["Id"] for found in client.api.containers(all=True, filters={"label": label})}


def passes(result: RunResult) -> bool:
    messages = [(item.id, item.outcome.value, item.message) for item in result.record.items]
    assert result.complete and all(outcome == "passed" for _, outcome, _ in messages), (
        result.ending,
        messages,
    )
    return bool(messages)


@docker_only
@pytest.mark.parametrize(
    "attempt",
    [
        "open('/proc/1/mem', 'rb')",
        "open('/proc/1/environ', 'rb')",
        "os.listdir('/proc/1/fd')",
        "os.listdir(f'/proc/{os.getppid()}/fd')",
        "open(f'/proc/{os.getppid()}/mem', 'rb+')",
        "open('/proc/1/fd/1', 'wb')",
        "os.kill(1, 9)",
        "os.kill(os.getppid(), signal.SIGSTOP)",
        "os.setuid(0)",
        "os.setresuid(0, 0, 0)",
        "os.setgid(0)",
        "os.listdir('/slot/0')",
        "os.listdir('/slot/1')",
        "open('/slot/x', 'w')",
        "open('/etc/x', 'w')",
        "open('/opt/autograder/sandbox/wire.py', 'a')",
        "open('/dev/mqueue/x', 'w')",
        "open('/dev/shm/x', 'w')",
        "open('/dev/x', 'w')",
        "open('/tmp/x', 'w')",
        "os.mkfifo('/var/tmp/x')",
        "os.sched_setaffinity(1, {0})",
        "os.chroot('.')",
        "os.nice(-5)",
    ],
)
def test_a_run_cannot(session: Session, run_of: MakeRun, attempt: str) -> None:
    source = f"""
import os, signal, pytest
def test_it():
    assert os.getppid() > 1
    with pytest.raises(OSError): {attempt}
"""
    assert passes(session.run([run_of(source)])[0])


@docker_only
def test_sockets_are_pairs_only(session: Session, run_of: MakeRun) -> None:
    source = """
import asyncio, pytest, socket, subprocess, sys, tempfile, threading
@pytest.mark.parametrize("family", ["AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK", "AF_VSOCK", "AF_ALG", "AF_PACKET"])
def test_refused(family):
    with pytest.raises(OSError): socket.socket(getattr(socket, family), socket.SOCK_DGRAM)
def test_what_tests_need_works(tmp_path):
    async def answer(): return 42
    assert asyncio.run(answer()) == 42
    thread = threading.Thread(target=print); thread.start(); thread.join()
    assert subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True).stdout == b"42\\n"
    with tempfile.NamedTemporaryFile() as file: file.write(b"x")
"""
    assert passes(session.run([run_of(source)])[0])


@docker_only
def test_each_run_has_a_uid_of_its_own_and_no_rights(session: Session, run_of: MakeRun) -> None:
    source = """
import os
def test_it():
    print(os.getuid(), os.getgid(), os.getgroups())
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    assert all(int(status[name], 16) == 0 for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")[:3])
    assert status["NoNewPrivs"].strip() == "1"
    assert sorted(map(int, os.listdir("/proc/self/fd")))[:4] == [0, 1, 2, 3]
    assert len(os.listdir("/proc/self/fd")) == 5  # the last is the listing itself
"""
    results = session.run([run_of(source, id=str(number)) for number in range(5)])
    assert all(map(passes, results))
    identities = {result.stdout.text for result in results}
    assert len(identities) == 5 and not any(text.startswith("0 ") for text in identities)


@docker_only
def test_two_runs_at_a_time_cannot_reach_each_other(session: Session, run_of: MakeRun) -> None:
    waits = run_of("import time\ndef test_it(): time.sleep(5)\n", id="waits")
    looks = run_of(
        """
import os, time
def test_it():
    time.sleep(1)
    mine, others = os.getuid(), 0
    for name in os.listdir("/proc"):
        if not name.isdigit(): continue
        uid = int(next(line.split()[1] for line in open(f"/proc/{name}/status") if line.startswith("Uid:")))
        if uid in (0, mine): continue
        others += 1
        attempts = (
            lambda: os.kill(int(name), 9),
            lambda: open(f"/proc/{name}/mem"),
            lambda: open(f"/proc/{name}/maps").read(),
        )
        for attempt in attempts:
            try: attempt()
            except PermissionError: continue
            raise AssertionError("reached another run")
    assert others == 1
""",
        id="looks",
    )
    waited, looked = session.run([waits, looks])
    assert passes(waited) and passes(looked)


@docker_only
def test_nothing_is_mounted_or_named_that_tells_of_the_host(session: Session, run_of: MakeRun) -> None:
    (result,) = session.run(
        [run_of("import os\ndef test_it():\n    print(open('/proc/self/mountinfo').read(), dict(os.environ))\n")]
    )
    assert passes(result)
    assert "tmpfs /slot/0" in result.stdout.text or "/slot/0" in result.stdout.text
    assert os.getcwd() not in result.stdout.text


HOG = """
import os, time
def test_before(): pass
def test_it():
    for _ in range(8):
        if os.fork() == 0:
            block = bytearray(600 * 2**20)
            for at in range(0, len(block), 4096): block[at] = 1
            time.sleep(SECONDS)
            os._exit(0)
    for _ in range(8): os.wait()
"""


@docker_only
def test_memory_of_a_container_runs_out_only_for_who_takes_it(docker_sandbox: DockerSandbox, run_of: MakeRun) -> None:
    """Eight processes within their own limits take more than the container has. What they do then is not waited for,
    and the test that started them is named."""
    beside = "import time\ndef test_it(): time.sleep(1)\n"
    with docker_sandbox.session() as session:
        results = session.run(
            [
                run_of(HOG.replace("SECONDS", "600"), id="hog", wall_seconds=60.0),
                *(run_of(beside, id=str(number)) for number in range(3)),
            ]
        )
    assert (results[0].ending.kind, results[0].ending.item) == (EndingKind.MEMORY, "test_it.py::test_it")
    assert all(map(passes, results[1:]))


@docker_only
def test_without_files_of_the_cgroup_the_engine_tells_that_memory_ran_out(run_of: MakeRun) -> None:
    """As on an engine that shows a container other files, or none: its events are the same on all."""
    with DockerSandbox() as sandbox:
        sandbox._fleets[PLAIN].container["host_config"]["tmpfs"]["/sys/fs/cgroup"] = "ro,size=4k"
        looks = run_of("import os\ndef test_it(): assert not os.listdir('/sys/fs/cgroup')\n", id="looks")
        hog = run_of(HOG.replace("SECONDS", "1"), id="hog", wall_seconds=60.0)
        with sandbox.session() as session:
            results = [*session.run([looks]), *session.run([hog]), *session.run([looks])]
    assert results[1].ending.kind is EndingKind.MEMORY
    assert passes(results[0]) and passes(results[2])


@docker_only
def test_a_lost_container_costs_only_time(
    docker_sandbox: DockerSandbox, client: docker.DockerClient, run_of: MakeRun
) -> None:
    before = containers(client)
    told = []

    def lose_it(result: RunResult) -> None:
        told.append(result.run_id)
        if len(told) == 1:
            for container in containers(client) - before:
                client.api.kill(container)

    source = "import time\ndef test_it(): time.sleep(0.2)\n"
    with docker_sandbox.session() as session:
        results = session.run([run_of(source, id=str(number)) for number in range(5)], lose_it)
    assert all(map(passes, results)) and sorted(told) == ["0", "1", "2", "3", "4"]


@docker_only
def test_a_container_serves_one_session_and_is_removed(client: docker.DockerClient, run_of: MakeRun) -> None:
    with DockerSandbox(client, pool_size=1) as sandbox:
        seen = []
        for _ in range(2):
            before = containers(client)
            with sandbox.session() as session:
                assert not containers(client) & set(seen)
                assert passes(session.run([run_of("def test_it(): pass\n")])[0])
                mine = session._station.line._id  # type: ignore[attr-defined]
                assert not client.api.inspect_container(mine)["Mounts"]  # no volume, nothing of the host
            seen.append(mine)
        assert len(set(seen)) == 2 and isinstance(before, set)
    assert not containers(client) & set(seen)


LIBRARY, OTHER_LIBRARY = (Module("library", f"VALUE = {n}\n".encode(), "library.py") for n in (1, 2))
WHOSE = """
import library

def test_it():
    raise AssertionError(f"{library.VALUE}")
"""


@docker_only
def test_sessions_that_begin_alike_find_their_stock_and_others_do_not(
    client: docker.DockerClient, run_of: Callable[..., Run]
) -> None:
    run = run_of(WHOSE)

    def value(preload: Module) -> str:
        """What a run in the next session finds in its library."""
        until = time.monotonic() + 60
        while not sandbox.ready and time.monotonic() < until:
            time.sleep(0.05)
        with sandbox.session([preload], likely=[run.suite.folder]) as session:
            stocked.append(bool(session._station.suites))  # type: ignore[attr-defined]
            session.prepare([run.suite.folder])
            [result] = session.run([run])
        return result.record.items[0].message.split()[1]

    stocked: list[bool] = []
    with DockerSandbox(client, jobs=1, pool_size=1) as sandbox:
        values = [value(each) for each in [LIBRARY] * (docker_engine.ALIKE + 1) + [OTHER_LIBRARY]]
    assert values == ["1"] * (docker_engine.ALIKE + 1) + ["2"]
    assert stocked == [False] * docker_engine.ALIKE + [True, False]


@docker_only
def test_closing_removes_what_the_pool_holds(client: docker.DockerClient) -> None:
    before = containers(client)
    sandbox = DockerSandbox(client, pool_size=1)
    until = time.monotonic() + 60
    while not containers(client) - before and time.monotonic() < until:
        time.sleep(0.05)
    pooled = containers(client) - before
    sandbox.close()
    assert pooled and not containers(client) & pooled


OWNER = """
import sys, time
from sandbox.docker_engine import DockerSandbox
sandbox = DockerSandbox()
with sandbox.session() as session:
    print(session._station.line._id, flush=True)
    time.sleep(600)
"""


FORGETS_TO_CLOSE = """
from sandbox.docker_engine import OWNER_LABEL, DockerSandbox, labels
sandbox = DockerSandbox(pool_size=1)
with sandbox.session():
    pass
print(f"{OWNER_LABEL}={labels()[OWNER_LABEL]}")
"""


@docker_only
def test_a_process_that_leaves_without_closing_removes_its_containers_and_says_nothing(
    client: docker.DockerClient,
) -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", FORGETS_TO_CLOSE], cwd=root, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert not client.api.containers(all=True, filters={"label": done.stdout.strip()})


@docker_only
def test_containers_of_a_killed_owner_are_reaped(client: docker.DockerClient) -> None:
    root = Path(__file__).parents[2]
    owner = subprocess.Popen([sys.executable, "-c", OWNER], cwd=root, stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    container = owner.stdout.readline().strip()
    assert container not in reap(client)  # its owner lives
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    owner.stdout.close()
    assert container in reap(client)
    assert container not in {found["Id"] for found in client.api.containers(all=True)}


def test_an_owner_is_told_apart_from_a_later_process_of_its_number() -> None:
    pid, _, started = owner_of(os.getpid()).partition(":")
    assert owner_lives(f"{pid}:{started}") and not owner_lives(f"{pid}:{int(started) + 1}")
    assert not owner_lives("") and boot_id() == boot_id()


def test_without_an_engine_the_error_says_what_to_do() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # the SDK leaves the socket of a failed connection to collect
        with pytest.raises(EngineUnavailable, match="make setup"):
            DockerSandbox("unix:///nonexistent/docker.sock")
        gc.collect()


@docker_only
def test_without_the_image_the_error_says_what_to_do(client: docker.DockerClient) -> None:
    with pytest.raises(ImageMissing, match="make setup"):
        DockerSandbox(client, image="autograder-sandbox:no-such-tag")


def test_two_versions_have_two_images(tmp_path: Path) -> None:
    """An image is named after the sources in it, so that neither version takes the other's."""
    ours = Path(docker_engine.__file__).parent
    theirs = shutil.copytree(ours, tmp_path / "sandbox", ignore=shutil.ignore_patterns("__pycache__"))
    assert IMAGE == f"autograder-sandbox:{source_digest(ours)}" == f"autograder-sandbox:{source_digest(theirs)}"
    (theirs / "inside/procfs.py").write_text("# another version\n")
    assert source_digest(theirs) != source_digest(ours)


@docker_only
def test_a_runtime_the_engine_lacks_is_said_at_once(client: docker.DockerClient) -> None:
    with pytest.raises(EngineUnavailable, match=r"no runtime no-such-thing, only .*runc"):
        DockerSandbox(client, oci_runtime="no-such-thing")


@docker_only
def test_the_runtime_is_the_one_asked_for(client: docker.DockerClient, run_of: MakeRun) -> None:
    before = containers(client)
    with DockerSandbox(client, oci_runtime="runc") as sandbox, sandbox.session() as session:
        (made,) = containers(client) - before
        assert client.api.inspect_container(made)["HostConfig"]["Runtime"] == "runc"
        assert passes(session.run([run_of("def test_it(): pass\n")])[0])


@docker_only
def test_a_child_out_of_memory_is_told_apart_from_its_test(session: Session, run_of: MakeRun) -> None:
    """The child meets the limit of a process; its parent lives, and so do its outcome and the tests after it."""
    source = """
import os
def test_parent():
    if os.fork() == 0:
        try: bytearray(4 * 2**30)
        except MemoryError: os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 7
def test_after(): pass
"""
    assert passes(session.run([run_of(source)])[0])


@docker_only
def test_too_many_files_are_a_full_disk(session: Session, run_of: MakeRun) -> None:
    source = "def test_it():\n    for number in range(10**5): open(f'f{number}', 'w').close()\n"
    (result,) = session.run([run_of(source)])
    (item,) = result.record.items
    assert (result.ending.kind, item.resource) == (EndingKind.COMPLETE, Resource.DISK)


@docker_only
def test_a_file_over_the_limit_can_also_end_the_run(session: Session, run_of: MakeRun) -> None:
    source = """
import signal
import socket
def test_it():
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    open("f", "wb", buffering=0).write(bytes(2**21))
    open("f", "ab", buffering=0).write(bytes(2**21))
"""
    (result,) = session.run([run_of(source, file_bytes=2**20)])
    assert (result.ending.kind, result.ending.item) == (EndingKind.FILE_SIZE, "test_it.py::test_it")
    assert result.ending.limit == 2**20


@docker_only
def test_every_ending_of_a_run_names_its_test_and_says_what_to_do(session: Session, run_of: MakeRun) -> None:
    """All endings that a run can bring about by itself, in one session, each told apart from all others."""
    bodies = {
        EndingKind.CPU_TIME: "while True: pass",
        EndingKind.NO_PROGRESS: "time.sleep(60)",
        EndingKind.FILE_SIZE: "signal.signal(25, signal.SIG_DFL); f = open('f', 'wb', 0); f.write(BIG); f.write(BIG)",
        EndingKind.OUTPUT: "while True: os.write(1, BIG)",
        EndingKind.RECORD: "while True: os.write(3, BIG)",
        EndingKind.SIGNAL: "os.abort()",
        EndingKind.EARLY_EXIT: "os._exit(3)",
        EndingKind.PROTOCOL_ERROR: "os.write(3, b'{}\\n')",
        EndingKind.COMPLETE: "pass",
    }
    runs = [
        run_of(
            f"import os, signal, time\nBIG = bytes(2**20)\ndef test_before(): pass\ndef test_it():\n    {body}\n",
            id=kind,
            cpu_seconds=1.0,
            wall_seconds=4.0,
            file_bytes=2**20,
            output_bytes=2**21,
            record_bytes=2**21,
        )
        for kind, body in bodies.items()
    ]
    results = {result.run_id: result for result in session.run(runs)}
    for kind in bodies:
        ending, items = results[kind].ending, results[kind].record.items
        assert ending.kind is kind, (kind, ending)
        assert items[0].id == "test_it.py::test_before" and items[0].outcome is ItemOutcome.PASSED
        assert ending.item == (None if kind is EndingKind.COMPLETE else "test_it.py::test_it")
        assert kind in (EndingKind.COMPLETE, EndingKind.PROTOCOL_ERROR) or (ending.limit or ending.seen)


class Relay:
    """A socket before the engine's that can be cut, as if the engine had been stopped."""

    def __init__(self, folder: Path) -> None:
        self.url = f"unix://{folder}/relay.sock"
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(f"{folder}/relay.sock")
        self._listening.listen()
        self._open: list[socket.socket] = [self._listening]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                theirs, _ = self._listening.accept()
                ours = socket.socket(socket.AF_UNIX)
                ours.connect("/var/run/docker.sock")
                self._open += [theirs, ours]
                for source, target in ((theirs, ours), (ours, theirs)):
                    threading.Thread(target=self._pass, args=(source, target), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def cut(self) -> None:
        for each in self._open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@docker_only
def test_an_engine_that_is_stopped_meanwhile_is_unavailable_and_has_not_failed(
    client: docker.DockerClient, run_of: MakeRun, tmp_path: Path
) -> None:
    relay = Relay(tmp_path)
    before = containers(client)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # of connections that were cut
        with DockerSandbox(relay.url) as sandbox:
            with pytest.raises(EngineUnavailable, match="does not answer any more"), sandbox.session() as session:
                assert passes(session.run([run_of("def test_it(): pass\n")])[0])
                relay.cut()
                session.run([run_of("def test_it(): pass\n")])
            with pytest.raises(EngineUnavailable), sandbox.session():
                pass
        gc.collect()
    for left in containers(client) - before:  # nobody could remove it through the engine that was gone
        client.api.remove_container(left, force=True)


@docker_only
def test_warm_containers_that_have_gone_are_not_taken(client: docker.DockerClient, run_of: MakeRun) -> None:
    before = containers(client)
    with DockerSandbox(client, pool_size=2) as sandbox:
        until = time.monotonic() + 60
        while sandbox.ready < 2 and time.monotonic() < until:
            time.sleep(0.05)
        for warm in containers(client) - before:
            client.api.kill(warm)
        with sandbox.session() as session:
            assert passes(session.run([run_of("def test_it(): pass\n")])[0])


@docker_only
def test_a_container_that_is_made_ahead_yields_while_it_starts(client: docker.DockerClient) -> None:
    def shares() -> set[int]:
        found = set()
        for each in containers(client) - before:
            with contextlib.suppress(docker.errors.NotFound):  # one of a test before this, on its way out
                found.add(int(client.api.inspect_container(each)["HostConfig"]["CpuShares"]))
        return found

    before = containers(client)
    with DockerSandbox(client, pool_size=1) as sandbox:
        until = time.monotonic() + 60
        while not (starting := shares()) and time.monotonic() < until:
            pass
        while not sandbox.ready and time.monotonic() < until:
            time.sleep(0.05)
        assert starting == {docker_engine.WARMING_SHARES}
        assert shares() == {docker_engine.FULL_SHARES}
