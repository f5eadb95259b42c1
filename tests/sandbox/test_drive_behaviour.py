"""What every sandbox does with a drive, whatever keeps its runs apart."""

import json
from typing import Any

import numpy as np
import pytest

from sandbox.arrays import Array, described
from sandbox.errors import EngineFailed
from sandbox.records import Drive, EndingKind, Limits, Module, Run, RunResult, Session
from sandbox.wire import encode

DRIVER = b"""
import numpy as np
def drive(unit, case):
    return {"y": np.asarray(unit.call(case["by"], case["arrays"]["x"]))}
"""
TIMES = "def call(by, x): return by * x\n"


def case(by: float = 2.0, x: Any = (1.0, 2.0)) -> bytes:
    array = np.array(x, dtype=np.float64)
    description, body = described({"x": Array("float64", array.shape, array.tobytes())})
    return encode({"case": {"by": by}, "arrays": description}, body)


def driven(session: Session, unit: str, *cases: bytes, driver: bytes = DRIVER, **limits: Any) -> RunResult:
    task = Drive(driver, "kit.mine", cases or (case(), case(3.0)))
    module = Module("kit.mine", unit.encode(), "kit/mine.py", source_visible=True)
    return session.run([Run("run", task, (module,), Limits(**limits))])[0]


def test_answers_are_the_arrays_that_the_driver_returned(session: Session) -> None:
    result = driven(session, TIMES, case(2.0, [[1.0, -2.0]]), case(0.5, []))
    assert result.complete
    first, second = (answer.arrays["y"] for answer in result.answers)
    assert (first.dtype, first.shape, first.data) == ("float64", (1, 2), np.array([2.0, -4.0]).tobytes())
    assert second.shape == (0,)


def test_preloaded_modules_are_there_for_the_unit(session: Session) -> None:
    result = driven(session, "from kit.base import double\ndef call(by, x): return double(x)\n")
    assert result.complete and result.answers[0].arrays["y"].data == np.array([2.0, 4.0]).tobytes()


def test_an_exception_is_the_answer_to_its_case_alone(session: Session) -> None:
    result = driven(session, "def call(by, x):\n    if by == 2: raise KeyError('two')\n    return x\n")
    assert result.complete
    assert [answer.error for answer in result.answers] == ["KeyError: 'two'", ""]


@pytest.mark.parametrize("leaving", ["raise SystemExit(0)", "raise KeyboardInterrupt", "import sys; sys.exit()"])
def test_leaving_by_exception_is_an_answer_too(session: Session, leaving: str) -> None:
    result = driven(session, f"def call(by, x):\n    {leaving}\n")
    assert result.complete and all(answer.error for answer in result.answers)


def test_a_unit_that_cannot_be_imported_says_so_in_every_case(session: Session) -> None:
    result = driven(session, "import nothing_like_it\n")
    assert result.complete
    assert all("nothing_like_it" in answer.error for answer in result.answers)


@pytest.mark.parametrize("returned", ["'text'", "[object()]", "x.astype('>f8')", "x.astype(complex)"])
def test_what_is_no_plain_array_is_an_error(session: Session, returned: str) -> None:
    result = driven(session, f"def call(by, x): return {returned}\n")
    assert result.complete and all(answer.error.startswith("TypeError") for answer in result.answers)


@pytest.mark.parametrize(
    ("body", "limits", "kind"),
    [
        ("while True: pass", {"cpu_seconds": 0.5}, EndingKind.CPU_TIME),
        ("import time; time.sleep(60)", {"wall_seconds": 2.0}, EndingKind.NO_PROGRESS),
        ("import os; os._exit(0)", {}, EndingKind.EARLY_EXIT),
        ("import os; os.kill(os.getpid(), 11)", {}, EndingKind.SIGNAL),
        ("import os; os.write(3, b'x' * 100)", {}, EndingKind.PROTOCOL_ERROR),
        ("print('x' * 10**6)", {"output_bytes": 10**5}, EndingKind.OUTPUT),
        ("import numpy; return numpy.zeros(10**6)", {"record_bytes": 10**5}, EndingKind.RECORD),
    ],
)
def test_each_ending_names_its_case_and_keeps_the_answers_before_it(
    session: Session, body: str, limits: dict[str, Any], kind: EndingKind
) -> None:
    unit = f"def call(by, x):\n    if by == 2.0: return x\n    {body}\n    return x\n"
    result = driven(session, unit, case(2.0), case(3.0), case(2.0), **limits)
    assert result.ending.kind is kind
    assert result.ending.item in ("1", "2", None)  # output is counted when it is read
    if kind not in (EndingKind.OUTPUT, EndingKind.RECORD):
        assert (result.ending.item, len(result.answers)) == ("1", 1)


def test_too_much_memory_is_an_error_of_the_case_that_asked(session: Session) -> None:
    result = driven(session, "import numpy\ndef call(by, x): return numpy.ones(2**32)\n")
    assert result.complete and "MemoryError" in result.answers[0].error


FORGERIES = {
    "an end of its own": {"event": "end", "cases": 2},
    "a later answer": {"event": "answer", "case": 1, "arrays": []},
    "a driver of ours that broke": {"event": "broken", "message": "look, it was them"},
    "a case that starts": {"event": "start", "case": 1},
}


@pytest.mark.parametrize("what", FORGERIES)
def test_forged_frames_are_a_protocol_error(session: Session, what: str) -> None:
    text = json.dumps(FORGERIES[what]).encode()
    forged = len(text).to_bytes(4, "big") + bytes(4) + text
    result = driven(session, f"import os\ndef call(by, x):\n    os.write(3, {forged!r})\n    return x\n")
    assert result.ending.kind is EndingKind.PROTOCOL_ERROR
    assert result.ending.item == "0"


def test_a_frame_that_never_finishes_is_no_progress(session: Session) -> None:
    unit = "import os, time\ndef call(by, x):\n    os.write(3, bytes([0, 0, 0, 9]))\n    time.sleep(60)\n"
    result = driven(session, unit, wall_seconds=2.0)
    assert result.ending.kind is EndingKind.NO_PROGRESS


def test_a_fork_that_falls_out_of_a_call_answers_nothing(session: Session) -> None:
    unit = "import os\ndef call(by, x):\n    pid = os.fork()\n    if pid: os.waitpid(pid, 0)\n    return x\n"
    result = driven(session, unit)
    assert result.complete and len(result.answers) == 2


def test_a_driver_that_cannot_be_loaded_is_our_failure(session: Session) -> None:
    with pytest.raises(EngineFailed, match="driver"):
        driven(session, TIMES, driver=b"import nothing_like_it\n")


def test_the_driver_lies_in_no_module_and_on_no_disk(session: Session) -> None:
    unit = """
import os, sys
import numpy as np
def call(by, x):
    named = [name for name, module in sys.modules.items() if callable(getattr(module, "drive", None))]
    return np.array([len(os.listdir(".")), len(named)], dtype="int64")
"""
    result = driven(session, unit)
    assert np.frombuffer(result.answers[0].arrays["y"].data, "int64").tolist() == [0, 0]
