"""The trusted process: started once, asked often, replaced when it dies, and blamed on nobody but us."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from grader.driver import driver_of
from grader.errors import OracleFailed, OracleMissing
from grader.oracle import OracleProcess, OracleProcesses, Trial, numpy_of
from grader.unit import UnitOracle
from sandbox.arrays import Array
from sandbox.wire import decode
from tests.grader.small_oracle import LIVE


def oracle_of(source: str = LIVE) -> UnitOracle:
    return UnitOracle(source.encode(), driver_of(source.encode()))


@pytest.fixture(scope="module")
def processes() -> Iterator[OracleProcesses]:
    with OracleProcesses() as opened:
        yield opened


def plain(trials: tuple[Trial, ...]) -> list[tuple[object, ...]]:
    """Trials as values that can be compared."""
    return [
        (trial.id, trial.says, trial.case, [(name, what.array.tobytes()) for name, what in trial.expected.items()])
        for trial in trials
    ]


def only_process(processes: OracleProcesses, oracle: UnitOracle) -> OracleProcess:
    return processes._processes[oracle]


def test_a_trial_holds_a_case_for_the_sandbox_and_what_is_expected(processes: OracleProcesses) -> None:
    trial = processes.trials(oracle_of(), 3)[2]
    header, body = decode(trial.case)
    assert header["case"]["says"] == trial.says
    assert header["arrays"] == [["x", "float64", [2, 2]]]
    x = np.frombuffer(body, "float64").reshape(2, 2)
    np.testing.assert_array_equal(trial.expected["y"].array, header["case"]["params"]["factor"] * x)
    assert trial.expected["y"].tolerance.rtol == 1e-12


def test_a_case_tells_the_sandbox_nothing_that_is_expected(processes: OracleProcesses) -> None:
    for trial in processes.trials(oracle_of(), 3):
        assert trial.expected["y"].array.size == 0 or trial.expected["y"].array.tobytes() not in trial.case


def test_the_same_seed_gives_the_same_cases_and_another_others(processes: OracleProcesses) -> None:
    first, again, other = (plain(processes.trials(oracle_of(), seed)) for seed in (5, 5, 6))
    assert first == again != other


def test_one_process_answers_all_questions(processes: OracleProcesses) -> None:
    source = LIVE.replace('"id": str(number)', '"id": str(__import__("os").getpid())')
    ids = {trial.id for seed in (1, 2) for trial in processes.trials(oracle_of(source), seed)}
    assert len(ids) == 1


def test_threads_get_their_own_answers(processes: OracleProcesses) -> None:
    wanted = {seed: plain(processes.trials(oracle_of(), seed)) for seed in range(4)}
    found: dict[int, list[tuple[object, ...]]] = {}

    def ask(seed: int) -> None:
        found[seed] = plain(processes.trials(oracle_of(), seed))

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == wanted


def test_a_process_that_was_killed_is_replaced(processes: OracleProcesses) -> None:
    before = plain(processes.trials(oracle_of(), 1))
    os.kill(only_process(processes, oracle_of())._process.pid, signal.SIGKILL)
    assert plain(processes.trials(oracle_of(), 1)) == before


def test_the_process_has_no_environment_of_ours(processes: OracleProcesses, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")
    monkeypatch.setenv("SECRET_OF_OURS", "x")
    source = LIVE.replace('"id": str(number)', '"id": ",".join(__import__("os").environ)')
    names = processes.trials(oracle_of(source), 1)[0].id.split(",")
    assert {"PATH", "OMP_NUM_THREADS"} <= set(names)
    assert not {"DOCKER_HOST", "SECRET_OF_OURS", "HOME"} & set(names)


def test_what_an_oracle_prints_disturbs_nothing(processes: OracleProcesses) -> None:
    source = LIVE.replace("    draw = np", "    print('x' * 10**5, flush=True)\n    draw = np")
    assert len(processes.trials(oracle_of(source), 1)) == 6


def test_a_package_that_is_not_there_is_named(processes: OracleProcesses) -> None:
    source = LIVE.replace("def expected(case):\n", "def expected(case):\n    import nothing_like_it\n")
    for _ in range(2):  # and asked for again the next time
        with pytest.raises(OracleMissing, match="nothing_like_it"):
            processes.open(oracle_of(source))


@pytest.mark.parametrize(
    "fault",
    ["raise RuntimeError('torn')", "import os; os._exit(3)", "yield {'id': object()}", "import time; time.sleep(60)"],
)
def test_an_oracle_that_fails_on_a_seed_is_our_failure(fault: str) -> None:
    source = LIVE.replace("    draw = np", f"    if seed == 9:\n        {fault}\n    draw = np")
    with OracleProcesses(answer_seconds=3.0) as processes:
        assert len(processes.trials(oracle_of(source), 1)) == 6
        with pytest.raises(OracleFailed):
            processes.trials(oracle_of(source), 9)
        assert len(processes.trials(oracle_of(source), 1)) == 6


@pytest.mark.parametrize("source", ["def drive(unit, case): ...\n1 / 0\n", "import os\nos._exit(1)\n"])
def test_an_oracle_that_does_not_start_is_our_failure(source: str) -> None:
    with OracleProcesses() as processes, pytest.raises(OracleFailed):
        processes.open(UnitOracle(source.encode(), b""))


def test_closing_ends_the_process_and_further_questions_fail() -> None:
    processes = OracleProcesses()
    processes.open(oracle_of())
    process: subprocess.Popen[bytes] = only_process(processes, oracle_of())._process
    processes.close()
    assert process.poll() is not None
    with pytest.raises(OracleFailed):
        processes.trials(oracle_of(), 1)


def test_bytes_become_the_array_they_describe() -> None:
    array = np.arange(6, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(numpy_of(Array("float32", (2, 3), array.tobytes())), array)
    assert numpy_of(Array("float64", (0, 2**20), b"")).shape == (0, 2**20)
