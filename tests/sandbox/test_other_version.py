"""Where a test fails, its process may run it on another version too: as a process of its own would."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sandbox.decode import GOES_ON
from sandbox.ending import Evidence
from sandbox.records import EndingKind, Module, Run, RunResult, Session, Stream
from sandbox.session import result_of

MakeRun = Callable[..., Run]
SUITE = """
import os
import random
import numpy as np
import pytest
from unit import VALUE, double

@pytest.fixture
def three():
    os.environ["LEFT"] = "behind"
    yield 3
    del os.environ["LEFT"]

def test_passes(): pass

@pytest.mark.parametrize("n", [1, 2, 3])
def test_doubles(n, three):
    assert three == 3 and double(n) == 2 * n

def test_draws():
    drawn = (random.random(), np.random.rand())
    print(drawn)
    assert VALUE == 1, drawn

def test_moves():
    before = os.getcwd()
    os.chdir("/")
    assert VALUE == 1, before

class TestClass:
    def setup_method(self):
        self.seen = getattr(self, "seen", 0) + 1
    def test_member(self):
        assert VALUE != 5, self.seen
        assert self.seen == 1

def test_later(): pass
"""


def unit(value: int, double: str = "2 * x") -> tuple[Module, ...]:
    return (Module("unit", f"VALUE = {value}\ndef double(x):\n    return {double}\n".encode(), "unit.py"),)


@pytest.fixture
def made(session: Session, run_of: MakeRun) -> Callable[..., RunResult]:
    def make(first: tuple[Module, ...], other: tuple[Module, ...], source: str = SUITE, **options: Any) -> RunResult:
        run = replace(run_of(source, modules=first, **({"stop_at_first_failure": True} | options)), other_version=other)
        session.prepare([run.suite.folder])
        (result,) = session.run([run])
        return result

    return make


def outcomes(result: RunResult | None) -> dict[str, str] | None:
    return None if result is None else {item.id.partition("::")[2]: item.outcome.value for item in result.record.items}


def test_the_test_that_fails_is_run_on_the_other_version(made: Callable[..., RunResult]) -> None:
    result = made(unit(1, "3 * x"), unit(1, "x + x if x < 2 else 0"), only=("test_it.py::test_doubles",))
    assert result.complete and outcomes(result) == {"test_doubles[1]": "failed"}
    assert result.on_other_version is not None and result.on_other_version.complete
    assert outcomes(result.on_other_version) == {"test_doubles[1]": "passed", "test_doubles[2]": "failed"}
    assert result.on_other_version.record.collected == result.record.collected


def test_a_run_without_failure_has_no_other(made: Callable[..., RunResult]) -> None:
    result = made(unit(1), unit(5))
    assert result.complete and len(result.record.items) == 8 and result.on_other_version is None


def test_of_several_the_quickest_is_run_first_and_one_failure_is_enough(made: Callable[..., RunResult]) -> None:
    source = """
import time
import unit
def test_slow():
    time.sleep(0.05)
    assert unit.VALUE == 2
def test_passes(): pass
def test_passes_again(): assert unit.VALUE == 5
def test_quick():
    time.sleep(0.01)
    assert unit.VALUE == 2
"""
    result = made(unit(1), unit(5), source, stop_at_first_failure=False)
    failed = {"test_slow": "failed", "test_passes_again": "failed", "test_quick": "failed"}
    assert result.complete and outcomes(result) == failed | {"test_passes": "passed"}
    assert outcomes(result.on_other_version) == {"test_passes_again": "passed", "test_quick": "failed"}


def test_nothing_but_the_version_differs_from_a_process_of_its_own(made: Callable[..., RunResult]) -> None:
    """What it draws, where it is, the instance it is a method of."""
    for only in ("test_it.py::test_draws", "test_it.py::test_moves", "test_it.py::TestClass::test_member"):
        result = made(unit(5), unit(5), only=(only,), messages=True)
        alone = made(unit(5), (), only=(only,), messages=True)
        assert result.on_other_version is not None and [i.outcome.value for i in alone.record.items] == ["failed"]
        assert [i.message for i in result.on_other_version.record.items] == [i.message for i in alone.record.items]


def test_modules_that_hold_the_unit_hold_the_other_version(made: Callable[..., RunResult]) -> None:
    holder = Module("holder", b"from unit import VALUE\nHELD = VALUE + 1\n", "holder.py")
    source = "from holder import HELD\nimport unit\ndef test_it(): assert HELD == 0, HELD\n"
    result = made((*unit(1), holder), (*unit(5), holder), source, messages=True)
    assert result.on_other_version is not None
    assert [item.message.splitlines()[0] for item in result.on_other_version.record.items] == ["AssertionError: 6"]


@pytest.mark.parametrize(
    "source",
    [
        "import unit\nprint('not inert')\ndef test_it(): assert unit.VALUE == 2\n",
        "import pytest\nimport unit\n@pytest.fixture(scope='module')\ndef wide():\n    yield 1\n"
        "def test_it(wide): assert unit.VALUE == 2\ndef test_later(wide): pass\n",
    ],
    ids=["collected in the run", "something is left"],
)
def test_where_the_process_is_not_as_a_new_one_it_leaves(made: Callable[..., RunResult], source: str) -> None:
    result = made(unit(1), unit(5), source)
    assert result.complete and outcomes(result) == {"test_it": "failed"} and result.on_other_version is None


@pytest.mark.parametrize(
    "test",
    [
        "@pytest.mark.parametrize('spec', [{'heads': 2}])\ndef test_it(spec):\n    spec.pop('heads')\n",
        "@pytest.fixture(params=[[2, 3]])\ndef sizes(request): return request.param\n"
        "def test_it(sizes):\n    sizes.append(4)\n",
        "def test_it():\n    open('left', 'w').close()\n",
        "def test_it(tmp_path):\n    (tmp_path / 'left').touch()\n",
        "class TestIt(unittest.TestCase):\n  def test_it(self):\n",
        "@given(st.integers())\ndef test_it(x):\n",
    ],
    ids=["parameter", "fixture's parameter", "file", "temporary file", "unittest", "hypothesis"],
)
def test_a_test_that_may_meet_itself_is_run_in_a_process_of_its_own(made: Callable[..., RunResult], test: str) -> None:
    head = "import unittest\nimport pytest\nfrom hypothesis import given, strategies as st\nimport unit\n"
    result = made(unit(1), unit(5), f"{head}{test}    assert unit.VALUE == 0\n")
    assert result.complete and set((outcomes(result) or {}).values()) == {"failed"}
    assert result.on_other_version is None


def test_parameters_that_cannot_be_changed_keep_nothing_from_going_on(made: Callable[..., RunResult]) -> None:
    source = "import pytest\nimport unit\n@pytest.mark.parametrize('x, y', [(1, (2, 'z')), (None, int)])\n"
    result = made(unit(1), unit(5), source + "def test_it(x, y): assert unit.VALUE == 0\n")
    assert result.on_other_version is not None and result.on_other_version.complete


def test_another_version_that_would_show_its_source_is_not_given(
    made: Callable[..., RunResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks for it could read that: code of another Python goes as source."""
    monkeypatch.setattr("sandbox.package.reads_our_code", lambda python: False)
    source = "import os\nimport pytest\nimport unit\ndef test_it():\n    with pytest.raises(OSError): os.fstat(5)\n"
    result = made(unit(1), unit(5), source + "    assert False\n")
    assert [item.message for item in result.record.items] == ["AssertionError: assert False"]
    assert result.on_other_version is None


def test_a_session_that_was_broken_off_does_not_go_on(made: Callable[..., RunResult]) -> None:
    source = "import pytest\nimport unit\ndef test_it(): assert False\ndef test_exits(): pytest.exit('enough', 0)\n"
    says = [replace(module, source=module.source + b"print('version', VALUE)\n") for module in (*unit(1), *unit(5))]
    result = made((says[0],), (says[1],), source, stop_at_first_failure=False)
    assert not result.complete and result.stdout.text == "version 1\n"


def test_an_other_version_that_cannot_be_imported_is_not_run(made: Callable[..., RunResult]) -> None:
    result = made(unit(5), (Module("unit", b"1 / 0\n", "unit.py"),), only=("test_it.py::test_draws",))
    assert result.complete and outcomes(result) == {"test_draws": "failed"} and result.on_other_version is None


@pytest.mark.parametrize(
    ("act", "kind"),
    [
        ("os._exit(0)", EndingKind.EARLY_EXIT),
        ("os.kill(os.getpid(), 9)", EndingKind.SIGNAL),
        ("while True: pass", EndingKind.CPU_TIME),
        ("print('x' * 700_000, flush=True); os.read(os.pipe()[0], 1)", EndingKind.OUTPUT),
    ],
)
def test_however_the_second_part_ends_the_first_stands(
    made: Callable[..., RunResult], act: str, kind: EndingKind
) -> None:
    """Limits are for both together, and so much of them was used before."""
    source = f"""
import os
import unit
def test_it():
    sum(range(10_000_000))
    print("x" * 700_000, flush=True)
    if unit.VALUE == 5:
        {act}
    assert False
"""
    result = made(unit(1), unit(5), source, cpu_seconds=2.0, output_bytes=2_000_000)
    assert result.complete and outcomes(result) == {"test_it": "failed"}
    second = result.on_other_version
    assert second is not None and (second.ending.kind, second.ending.item) == (kind, "test_it.py::test_it")


ASKS_ITSELF = """
import socket
import pytest
import unit

def test_it():
    line = socket.socket(fileno=5)
    line.send(b"?")
    _, fds, _, _ = socket.recv_fds(line, 1, 1)
    try:
        line.send(b"?")
    except OSError:
        pass
    assert not fds
"""
CLOSES_IT = "import os\nimport unit\ndef test_it():\n    os.close(5)\n    assert False\n"


@pytest.mark.parametrize("source", [ASKS_ITSELF, CLOSES_IT])
def test_who_asks_too_early_or_closes_the_line_is_run_once(made: Callable[..., RunResult], source: str) -> None:
    """The next run in the same place is made as if nothing had been."""
    result = made(unit(1), unit(5), source)
    assert outcomes(result) == {"test_it": "failed"} and result.complete and result.on_other_version is None
    assert outcomes(made(unit(1), unit(1), only=("test_it.py::test_passes",))) == {"test_passes": "passed"}


def test_what_the_other_version_came_in_is_in_no_object_of_the_run(made: Callable[..., RunResult]) -> None:
    looks = """
import gc, sys
def test_it():
    import unit
    needle = bytes(reversed(b"noisrev rehto eht fo sdrow"))
    frame, values = sys._getframe(), []
    while frame:
        values += frame.f_locals.values()
        frame = frame.f_back
    for thing in gc.get_objects(): values += gc.get_referents(thing)
    for value in values:
        if isinstance(value, memoryview): value = value.tobytes()
        assert value == needle or not isinstance(value, bytes) or needle not in value, "it is there"
    assert unit.f() == needle.decode(), "it is nowhere"
"""
    source = "def f(): return 'words of the other version'\n"
    first = Module("unit", b"def f(): return ''\n", "unit.py")
    result = made((first,), (Module("unit", source.encode(), "unit.py"),), looks)
    assert outcomes(result) == {"test_it": "failed"} and outcomes(result.on_other_version) == {"test_it": "passed"}


# Reading it.

COLLECTED = b'{"event": "collected", "ids": ["test_it.py::test_a", "test_it.py::test_b"]}\n'
FAILED = (
    b'{"event": "start", "id": "test_it.py::test_a"}\n'
    b'{"event": "item", "id": "test_it.py::test_a", "outcome": "failed", "seconds": 0.1, "message": "", "where": "", '
    b'"resource": null}\n'
)
END = b'{"event": "end", "status": 1, "interrupted": false, "selected": 2, "ran": 1}\n'
RECORD = COLLECTED + FAILED + END


def read(run_of: MakeRun, record: bytes, other: tuple[Module, ...] = unit(5), status: int = 0) -> RunResult:
    run = replace(run_of("", stop_at_first_failure=True), other_version=other)
    return result_of(run, Evidence(status), record, Stream(), Stream())


@pytest.mark.parametrize(
    ("rest", "kind"),
    [
        (RECORD, EndingKind.COMPLETE),
        (b"", None),
        (COLLECTED, EndingKind.EARLY_EXIT),
        (COLLECTED + FAILED[:60], EndingKind.EARLY_EXIT),
        (b"nonsense\n", EndingKind.PROTOCOL_ERROR),
        (RECORD + b"\n", EndingKind.PROTOCOL_ERROR),
        (RECORD + RECORD, EndingKind.PROTOCOL_ERROR),
    ],
)
def test_the_second_part_has_an_end_of_its_own(run_of: MakeRun, rest: bytes, kind: EndingKind | None) -> None:
    result = read(run_of, RECORD + GOES_ON + rest)
    assert result.complete and [item.id for item in result.record.items] == ["test_it.py::test_a"]
    second = result.on_other_version
    assert (None if second is None else second.ending.kind) is kind


def test_a_second_record_counts_only_where_the_process_has_gone_on(run_of: MakeRun) -> None:
    for result in (read(run_of, RECORD + RECORD), read(run_of, RECORD + GOES_ON + RECORD, other=())):
        assert result.ending.kind is EndingKind.PROTOCOL_ERROR and result.on_other_version is None


@pytest.mark.parametrize(
    "first", [RECORD.replace(b'"interrupted": false', b'"interrupted": true'), COLLECTED + FAILED, FAILED, b""]
)
def test_a_second_record_does_not_mend_the_first(run_of: MakeRun, first: bytes) -> None:
    result = read(run_of, first + GOES_ON + RECORD)
    assert result.ending.kind in (EndingKind.EARLY_EXIT, EndingKind.PROTOCOL_ERROR) and result.on_other_version is None
