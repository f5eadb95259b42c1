"""A run begins when there is memory for it, and a worker has as many slots as its machine can bear."""

import inspect
import threading
from dataclasses import replace

import pytest

from sandbox.docker_engine import DockerSandbox
from service import admission
from service.admission import Memory, MemoryAdmission, cores_of, memory_of, needed_bytes, sized
from service.queue import Stopping
from service.settings import Settings
from service.worker import FakeGrading
from tests.service import samples

GIB = 2**30
SETTINGS = Settings(jobs=2, memory_reserve_bytes=GIB // 4)
NEEDED = 2 * GIB + GIB // 4


def lay(root, files):
    for name, text in {"proc/meminfo": "MemTotal: 8388608 kB\nMemAvailable: 6291456 kB\n", **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_a_run_waits_until_its_sandbox_and_a_reserve_are_free():
    free = NEEDED - 1
    judge = MemoryAdmission(SETTINGS, lambda: Memory(16 * GIB, free))
    lack = judge.lacks()
    assert lack is not None and lack.startswith("memory: ") and "2303 MiB are free" in lack and "2304 MiB" in lack
    free = NEEDED
    assert judge.lacks() is None


def test_a_small_machine_grades_in_half_of_its_memory():
    assert needed_bytes(SETTINGS, 16 * GIB) == NEEDED
    assert needed_bytes(SETTINGS, 2 * GIB) == GIB


def test_a_container_uses_what_admission_believes():
    limit = inspect.signature(DockerSandbox).parameters["memory_bytes"].default
    assert limit == admission.SANDBOX_BYTES == admission.sandbox_bytes(SETTINGS)
    assert admission.sandbox_bytes(replace(SETTINGS, sandbox="process")) == 2 * 768 * 2**20


@pytest.mark.parametrize(
    ("cores", "gibibytes", "slots"), [(2, 24, 1), (8, 24, 4), (8, 8, 3), (1, 24, 1), (4, 1, 1), (64, 512, 8)]
)
def test_slots_follow_cores_and_memory(cores, gibibytes, slots):
    memory = Memory(gibibytes * GIB, gibibytes * GIB)
    assert sized(SETTINGS, cores, memory).slots == slots
    assert sized(replace(SETTINGS, slots=3), cores, memory).slots == 3


def test_memory_is_the_machines(tmp_path):
    assert memory_of(lay(tmp_path, {})) == Memory(8 * GIB, 6 * GIB)
    here = memory_of()
    assert 0 < here.free_bytes <= here.total_bytes


@pytest.mark.parametrize(
    "files",
    [
        {
            "sys/fs/cgroup/memory.max": str(4 * GIB),
            "sys/fs/cgroup/memory.current": str(3 * GIB),
            "sys/fs/cgroup/memory.stat": f"anon 1\ninactive_file {GIB}\n",
        },
        {
            "sys/fs/cgroup/memory/memory.limit_in_bytes": str(4 * GIB),
            "sys/fs/cgroup/memory/memory.usage_in_bytes": str(3 * GIB),
            "sys/fs/cgroup/memory/memory.stat": f"cache 7\ntotal_inactive_file {GIB}\n",
        },
    ],
    ids=["v2", "v1"],
)
def test_a_cgroups_limit_is_less_and_files_pages_count_as_free(tmp_path, files):
    assert memory_of(lay(tmp_path, files)) == Memory(4 * GIB, 2 * GIB)


def test_no_limit_is_no_limit(tmp_path):
    files = {
        "sys/fs/cgroup/memory.max": "max\n",
        "sys/fs/cgroup/memory.current": "5\n",
        "sys/fs/cgroup/cpu.max": "max 9",
    }
    root = lay(tmp_path, files)
    assert memory_of(root) == Memory(8 * GIB, 6 * GIB)
    assert cores_of(root) == cores_of(tmp_path / "elsewhere")


@pytest.mark.parametrize(
    "files",
    [
        {"sys/fs/cgroup/cpu.max": "50000 100000\n"},
        {"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"},
    ],
    ids=["v2", "v1"],
)
def test_a_quota_of_the_cpu_counts(tmp_path, files):
    assert cores_of(lay(tmp_path, files)) == 0.5


class Lacks:
    """Lacks memory until told otherwise."""

    def __init__(self):
        self.lack = "memory: too little"
        self.asked = threading.Semaphore(0)

    def lacks(self):
        self.asked.release()
        return self.lack


def worker_with(bench, judge, monkeypatch):
    monkeypatch.setattr("service.worker.ADMISSION_POLL_SECONDS", 0.02)
    worker = bench.worker(FakeGrading(samples.passes))
    worker._admission = judge
    worker._missing = ()
    return worker


def test_a_run_that_waits_for_memory_is_still_queued_and_readiness_says_why(bench, monkeypatch):
    judge = Lacks()
    submission = bench.submitted("ada")
    worker = worker_with(bench, judge, monkeypatch)
    thread = threading.Thread(target=bench.graded, args=(worker,))
    thread.start()
    assert judge.asked.acquire(timeout=30) and judge.asked.acquire(timeout=30)
    worker._beat(first=True)
    ready = bench.get("/readyz")
    assert (ready.status_code, "too little" in ready.text) == (503, True)
    assert bench.get(f"/v1/submissions/{submission}").json()["status"] == "queued"
    judge.lack = None
    thread.join(30)
    assert bench.get(f"/v1/submissions/{submission}").json()["status"] == "done"
    worker._beat()
    assert bench.get("/readyz").status_code == 200


def test_a_run_that_waits_too_long_is_left_to_another_worker(bench, monkeypatch):
    monkeypatch.setattr("service.worker.ADMISSION_SECONDS", 0.1)
    submission = bench.submitted("ada")
    with pytest.raises(Stopping):
        bench.graded(worker_with(bench, Lacks(), monkeypatch))
    state = bench.get(f"/v1/submissions/{submission}").json()
    assert state["status"] == "queued"


def test_a_worker_that_stops_does_not_wait_for_memory(bench, monkeypatch):
    bench.submitted("ada")
    judge = Lacks()
    ended = []

    def grade():
        try:
            bench.graded(worker_with(bench, judge, monkeypatch))
        except Stopping:
            ended.append(True)

    thread = threading.Thread(target=grade)
    thread.start()
    assert judge.asked.acquire(timeout=30)
    bench.stop.set()
    thread.join(30)
    assert ended == [True]
