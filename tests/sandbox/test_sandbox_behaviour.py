"""What every sandbox does, whatever keeps its runs apart."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from sandbox.errors import EngineFailed, SandboxError
from sandbox.records import EndingKind, File, ItemOutcome, Module, Resource, Run, RunResult, Sandbox, Session

RunOne = Callable[..., RunResult]
MakeRun = Callable[..., Run]


def outcomes(result: RunResult) -> dict[str, str]:
    return {item.id.partition("::")[2]: item.outcome.value for item in result.record.items}


# What tests can come to.


def test_each_outcome_is_told_apart(outcome_of: RunOne) -> None:
    result = outcome_of(
        """
import pytest
@pytest.fixture
def broken(): raise RuntimeError("set-up")
@pytest.fixture
def untidy():
    yield
    raise RuntimeError("tear-down")
def test_passes(): pass
def test_fails(): assert 1 == 2
def test_errs(broken): pass
def test_errs_afterwards(untidy): pass
def test_skips(): pytest.skip("not today")
@pytest.mark.xfail(reason="known")
def test_xfails(): assert False
@pytest.mark.xfail(reason="known")
def test_xpasses(): pass
@pytest.mark.xfail(strict=True, reason="known")
def test_must_not_pass(): pass
@pytest.mark.parametrize("x", [1, 2])
def test_each(x): assert x == 1
"""
    )
    assert result.complete
    assert outcomes(result) == {
        "test_passes": "passed",
        "test_fails": "failed",
        "test_errs": "error",
        "test_errs_afterwards": "error",
        "test_skips": "skipped",
        "test_xfails": "xfailed",
        "test_xpasses": "xpassed",
        "test_must_not_pass": "failed",
        "test_each[1]": "passed",
        "test_each[2]": "failed",
    }
    assert result.record.collected == tuple(item.id for item in result.record.items)


def test_a_failure_says_what_and_where(outcome_of: RunOne) -> None:
    result = outcome_of(
        "from helper import check\ndef test_it():\n    check(3)\n",
        files={"helper.py": "def check(x):\n    assert x == 4, 'not four'\n"},
    )
    (item,) = result.record.items
    assert item.message.startswith("AssertionError: not four")
    assert item.where == "helper.py:2"


@pytest.mark.parametrize("conftest", ["", "def pytest_sessionstart(session): pass"])
def test_a_suite_may_use_what_pytest_offers_to_all(outcome_of: RunOne, conftest: str) -> None:
    result = outcome_of(
        """
import sys
def test_cache(cache, pytestconfig):
    assert cache.get("a/b", 3) == 3
    cache.set("a/b", [1])
    assert pytestconfig.cache.get("a/b", None) == [1]
    (cache.mkdir("c") / "x").write_text("x")
def test_properties(record_property, record_xml_attribute, record_testsuite_property):
    record_property("a", 1)
    record_testsuite_property("b", 2)
def test_doctest(doctest_namespace): doctest_namespace["x"] = 1
def test_streams(capfd, caplog, recwarn, monkeypatch, tmp_path_factory, pytestconfig): pass
def test_any_text():
    print("\\ud800")
    sys.stderr.write("\\udcff")
""",
        files={"conftest.py": conftest, "test_notes.txt": ">>> 1 + 1\n3\n"},
    )
    assert result.complete
    assert {item.message for item in result.record.items} == {""}
    assert set(outcomes(result).values()) == {"passed"}


def test_equal_runs_give_equal_text(session: Session, run_of: MakeRun) -> None:
    source = """
import os, pathlib
def test_address(): raise ValueError(object())
def test_path(tmp_path): raise ValueError(f"{tmp_path} {os.getcwd()} {pathlib.Path(__file__)}")
def test_random():
    import random, numpy
    raise ValueError(f"{random.random()} {numpy.random.rand()}")
"""
    first, second = session.run([run_of(source, id="a"), run_of(source, id="b")])
    assert [item.message for item in first.record.items] == [item.message for item in second.record.items]
    assert "0x…" in first.record.items[0].message


def test_long_messages_keep_head_and_tail(outcome_of: RunOne) -> None:
    (item,) = outcome_of("def test_it(): raise ValueError('head' + 'x' * 10**6 + 'tail')").record.items
    assert item.message.startswith("ValueError: head") and item.message.endswith("tail")
    assert len(item.message) <= 2000


def test_messages_can_be_left_out(outcome_of: RunOne) -> None:
    (item,) = outcome_of("def test_it(): assert 1 == 2", messages=False).record.items
    assert (item.outcome, item.message) == (ItemOutcome.FAILED, "")


def test_conftest_and_helpers_beside_tests_are_used(outcome_of: RunOne) -> None:
    result = outcome_of(
        files={
            "conftest.py": "import pytest\n@pytest.fixture\ndef seven(): return 7\n",
            "unit/test_a.py": "from near import EIGHT\ndef test_it(seven): assert seven + 1 == EIGHT\n",
            "unit/near.py": "EIGHT = 8\n",
        }
    )
    assert outcomes(result) == {"test_it": "passed"}


def test_a_conftest_may_take_part_in_the_start(outcome_of: RunOne) -> None:
    result = outcome_of(
        "def test_it(request): assert request.config.getoption('--shade') == 'blue'",
        files={"conftest.py": "def pytest_addoption(parser): parser.addoption('--shade', default='blue')\n"},
    )
    assert outcomes(result) == {"test_it": "passed"}


MARKED = b"""
from marks import marks
marks[0] = 1
def f(x):
    marks[1] = 1
    if x:
        marks[2] = 1
def g():
    marks[9] = 1
"""


def test_marks_that_the_code_sets_are_told_with_each_test(session: Session, run_of: MakeRun) -> None:
    """Those of imports with every one, those of set-up and tear-down with their own."""
    source = """
import unit
import pytest
@pytest.fixture
def before():
    unit.f(0)
@pytest.fixture
def after():
    yield
    unit.g()
def test_nothing(): pass
def test_branch(): unit.f(1)
def test_set_up(before): pass
def test_tear_down(after): pass
def test_failing():
    unit.f(1)
    assert 0
"""
    modules = (Module("marks", b"marks = bytearray(10)", "marks.py"), Module("unit", MARKED, "unit.py"))
    [asked] = session.run([run_of(source, modules=modules, marks="marks")])
    assert [item.marked for item in asked.record.items] == [0b1, 0b111, 0b11, 0b1000000001, 0b111]
    [not_asked] = session.run([run_of(source, modules=modules)])
    assert {item.marked for item in not_asked.record.items} == {None}
    [none] = session.run([run_of("def test_it(): pass", modules=modules, marks="marks")])
    assert none.record.items[0].marked == 0


def test_threads_logging_and_forks_of_a_test_work_as_in_any_process(outcome_of: RunOne) -> None:
    result = outcome_of(
        """
import logging, os, random, signal, threading
def test_threads():
    seen = []
    thread = threading.Thread(target=lambda: seen.append(threading.main_thread().ident))
    thread.start()
    thread.join()
    assert seen == [threading.get_ident()] and threading.active_count() == 1
    assert threading.get_native_id() == os.getpid()
def test_logging(caplog):
    logging.getLogger("here").warning("said")
    assert caplog.messages == ["said"]
def test_forks():
    state = random.getstate()
    if (pid := os.fork()) == 0:
        logging.getLogger("there").warning("said")
        os._exit(random.getstate() == state)
    assert os.waitpid(pid, 0)[1] == 0 and random.getstate() == state
def test_signals():
    assert signal.set_wakeup_fd(-1) == -1
    assert signal.getsignal(signal.SIGCHLD) is signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""
    )
    assert result.complete
    assert set(outcomes(result).values()) == {"passed"}, result.record.items


def test_unittest_classes_and_subtests_run(outcome_of: RunOne) -> None:
    result = outcome_of(
        """
import unittest
class TestIt(unittest.TestCase):
    def test_ok(self): self.assertEqual(1, 1)
    def test_bad(self): self.assertEqual(1, 2)
    def test_skipped(self): self.skipTest("no")
    def test_part(self):
        with self.subTest("inner"):
            self.assertEqual(1, 2)
"""
    )
    assert outcomes(result) == {
        "TestIt::test_ok": "passed",
        "TestIt::test_bad": "failed",
        "TestIt::test_skipped": "skipped",
        "TestIt::test_part": "failed",
    }


def test_hypothesis_examples_do_not_vary(session: Session, run_of: MakeRun) -> None:
    source = """
from hypothesis import given, strategies as st
@given(st.integers())
def test_it(x):
    print(x)
    assert x < 1000
"""
    first, second = session.run([run_of(source, id="a"), run_of(source, id="b")])
    assert first.record.items[0].outcome is ItemOutcome.FAILED
    assert "x=1000" in first.record.items[0].message
    assert first.stdout.text == second.stdout.text != ""


def test_a_file_that_cannot_be_collected_does_not_stop_the_others(outcome_of: RunOne) -> None:
    result = outcome_of(
        "def test_it(): pass", files={"test_bad.py": "x = (\n", "test_worse.py": "import no_such_module\n"}
    )
    assert result.complete and outcomes(result) == {"test_it": "passed"}
    errors = {error.path: error for error in result.record.errors}
    assert errors["test_bad.py"].message.startswith("SyntaxError") and errors["test_bad.py"].where == "test_bad.py:1"
    assert errors["test_worse.py"].message.startswith("ModuleNotFoundError")


@pytest.mark.parametrize(
    ("conftest", "message", "where"),
    [
        ("pytest_plugins = ['no_such_plugin']", "UsageError: Error importing plugin", ""),
        ("import no_such_module\npytest_plugins = []", "ModuleNotFoundError", "conftest.py:1"),
        ("def pytest_addoption(parser): parser.addoption('-q')", "ValueError", "conftest.py:1"),
    ],
)
def test_a_conftest_with_which_pytest_cannot_begin_is_a_file_that_cannot_be_collected(
    outcome_of: RunOne, conftest: str, message: str, where: str
) -> None:
    result = outcome_of("def test_it(): pass", files={"conftest.py": conftest})
    (error,) = result.record.errors
    assert result.complete and not result.record.collected
    assert (error.path, error.where) == ("conftest.py", where) and error.message.startswith(message)


def test_no_tests_is_a_complete_run(outcome_of: RunOne) -> None:
    result = outcome_of("x = 1\n")
    assert result.complete and not result.record.collected


def test_only_and_skip_choose_tests_and_collected_names_all(outcome_of: RunOne) -> None:
    source = "import pytest\n@pytest.mark.parametrize('x', [1, 2])\ndef test_a(x): pass\ndef test_b(): pass\n"
    result = outcome_of(source, only=("test_it.py::test_a",), skip=("test_it.py::test_a[1]",))
    assert outcomes(result) == {"test_a[2]": "passed"}
    assert len(result.record.collected) == 3 and result.complete


def test_stopping_at_the_first_failure_is_complete(outcome_of: RunOne) -> None:
    source = "def test_a(): pass\ndef test_b(): assert False\ndef test_c(): pass\n"
    result = outcome_of(source, stop_at_first_failure=True)
    assert result.complete and outcomes(result) == {"test_a": "passed", "test_b": "failed"}


def test_configuration_in_the_upload_has_no_effect(outcome_of: RunOne) -> None:
    result = outcome_of(
        "def test_it(): pass\n",
        files={
            "pytest.ini": "[pytest]\naddopts = -p forge\npython_files = nothing_*.py\n",
            "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-p forge'\n",
            "forge.py": "def pytest_collection_modifyitems(items): items.clear()\n",
        },
    )
    assert outcomes(result) == {"test_it": "passed"}


def test_streams_are_captured_apart(outcome_of: RunOne) -> None:
    result = outcome_of("import os\ndef test_it():\n    print('out')\n    os.write(2, b'err\\xff')\n")
    assert result.stdout.text == "out\n"
    assert result.stderr.text == "err\ufffd"


def test_a_long_stream_keeps_head_and_tail(outcome_of: RunOne) -> None:
    result = outcome_of("def test_it(): print('head' + 'x' * 10**6 + 'tail')")
    assert result.complete and result.stdout.truncated and result.stdout.total_bytes == 10**6 + 9
    assert result.stdout.text.startswith("head") and result.stdout.text.endswith("tail\n")
    assert len(result.stdout.text) < 70_000


# Modules.


def test_preloaded_modules_are_there(outcome_of: RunOne) -> None:
    source = "from kit.more import quadruple\ndef test_it(): assert quadruple(2) == 8\n"
    assert outcomes(outcome_of(source)) == {"test_it": "passed"}


def test_a_run_adds_and_replaces_modules(session: Session, run_of: MakeRun) -> None:
    source = "from kit import base, extra\ndef test_it(): assert (base.VALUE, extra.NEW) == (5, 6)\n"
    base = Module("kit.base", b"VALUE = 5\n", "kit/base.py")
    extra = Module("kit.extra", b"from kit.base import VALUE\nNEW = VALUE + 1\n", "kit/extra.py")
    changed, plain = session.run(
        [
            run_of(source, modules=(base, extra)),
            run_of("from kit.base import VALUE\ndef test_it(): assert VALUE == 1\n"),
        ]
    )
    assert outcomes(changed) == outcomes(plain) == {"test_it": "passed"}


def test_the_run_s_module_wins_over_a_folder_of_its_name(outcome_of: RunOne) -> None:
    module = Module("kit.extra", b"NAME = 'ours'\n", "kit/extra.py")
    result = outcome_of(
        "from kit.extra import NAME\ndef test_it(): assert NAME == 'ours'\n",
        files={"kit/__init__.py": "", "kit/extra.py": "NAME = 'theirs'\n"},
        modules=(module,),
    )
    assert outcomes(result) == {"test_it": "passed"}


@pytest.mark.parametrize("visible", [True, False])
def test_where_names_a_module_only_if_it_may_be_seen(outcome_of: RunOne, visible: bool) -> None:
    module = Module("kit.sharp", b"def cut():\n    raise ValueError('ouch')\n", "kit/sharp.py", source_visible=visible)
    (item,) = outcome_of("from kit.sharp import cut\ndef test_it():\n    cut()\n", modules=(module,)).record.items
    assert item.where == ("kit/sharp.py:2" if visible else "test_it.py:3")


def test_where_passes_over_functions_that_say_so_as_pytest_does(outcome_of: RunOne) -> None:
    source = """
def check(x):
    __tracebackhide__ = True
    assert x == 4
def test_helper():
    check(3)
def test_itself():
    __tracebackhide__ = True
    assert False
"""
    assert [item.where for item in outcome_of(source).record.items] == ["test_it.py:6", "test_it.py:9"]


def test_where_passes_over_helpers_that_lie_beside_the_suite(session: Session, run_of: MakeRun) -> None:
    run = run_of("from checks import check\ndef test_it():\n    check(3)\n", path_dirs=("lib",))
    helper = File("lib/checks.py", b"def check(x):\n    assert x == 4, 'not four'\n")
    run = replace(run, task=replace(run.suite, files=(*run.suite.files, helper)))
    ((item,),) = (result.record.items for result in session.run([run]))
    assert (item.message.partition("\n")[0], item.where) == ("AssertionError: not four", "test_it.py:3")


def test_the_source_of_an_invisible_module_is_not_offered(outcome_of: RunOne) -> None:
    module = Module("kit.secret", b"def f():\n    return 'plain' + 'words'\n", "kit/secret.py")
    result = outcome_of(
        """
import inspect, os, pytest
from kit import secret
def test_it():
    with pytest.raises(OSError): inspect.getsource(secret.f)
    assert not os.path.exists(secret.__file__)
""",
        modules=(module,),
    )
    assert outcomes(result) == {"test_it": "passed"}


def test_the_source_of_an_invisible_module_is_in_no_object_of_the_run(outcome_of: RunOne) -> None:
    """Before its import and after: no frame, importer or container that can be reached holds it."""
    module = Module("kit.secret", b"def f():\n    # a comment that no code holds\n    return 1\n", "kit/secret.py")
    looks = """
import gc, sys
NEEDLE = bytes(reversed(b"sdloh edoc on taht tnemmoc a"))
def reachable():
    frame = sys._getframe()
    while frame:
        yield from frame.f_locals.values()
        frame = frame.f_back
    for finder in sys.meta_path: yield from vars(finder).values() if hasattr(finder, "__dict__") else ()
    for thing in gc.get_objects(): yield from gc.get_referents(thing)
def holds(value):
    if value is NEEDLE: return False
    if isinstance(value, str): value = value.encode("utf-8", "replace")
    if isinstance(value, memoryview): value = value.tobytes()
    return isinstance(value, (bytes, bytearray)) and NEEDLE in value
def test_before(): assert not any(map(holds, reachable()))
def test_after():
    import kit.secret
    assert not any(map(holds, reachable()))
"""
    assert outcomes(outcome_of(looks, modules=(module,))) == {"test_before": "passed", "test_after": "passed"}


def test_a_module_that_does_not_compile_fails_where_it_is_imported(outcome_of: RunOne) -> None:
    module = Module("kit.broken", b"def f(:\n", "kit/broken.py", source_visible=True)
    source = """
import pytest
def test_it():
    for _ in range(2):
        with pytest.raises(SyntaxError): import kit.broken
"""
    assert outcomes(outcome_of(source, modules=(module,))) == {"test_it": "passed"}


def test_paths_and_environment_reach_the_run(outcome_of: RunOne) -> None:
    result = outcome_of(
        """
import os
from near_by import X
def test_it():
    assert X == 1 and open(os.environ["DATA"] + "/d.txt").read() == "data"
""",
        files={"extra/near_by.py": "X = 1\n", "extra/d.txt": "data"},
        path_dirs=("suite/extra",),
        environment=(("DATA", "{dir}/suite/extra"),),
    )
    assert outcomes(result) == {"test_it": "passed"}


# Runs that do not end well.

SLEEPS = "import time\ndef test_a(): pass\ndef test_b(): time.sleep(60)\n"
WAIT_SECONDS = 2.0  # of which starting up may not use a twentieth, on a slow machine either


def test_sleep_is_no_progress(outcome_of: RunOne) -> None:
    result = outcome_of(SLEEPS, wall_seconds=WAIT_SECONDS)
    assert result.ending.kind is EndingKind.NO_PROGRESS
    assert result.ending.item == "test_it.py::test_b" and result.ending.limit == WAIT_SECONDS
    assert outcomes(result) == {"test_a": "passed"}


def test_a_run_that_is_over_its_time_before_it_is_there_is_ended_all_the_same(
    session: Session, run_of: MakeRun
) -> None:
    """The supervisor looks at some of these between their start and the moment in which they can be killed."""
    results = session.run([run_of(SLEEPS, id=str(number), wall_seconds=0.001) for number in range(60)])
    # What they had for starting up is more than a twentieth of so short a time.
    assert {result.ending.kind for result in results} <= {EndingKind.NO_PROGRESS, EndingKind.CPU_TIME}


def test_a_loop_uses_its_cpu_time_up(outcome_of: RunOne) -> None:
    result = outcome_of("def test_it():\n    while True: pass\n", cpu_seconds=0.5)
    assert result.ending.kind is EndingKind.CPU_TIME and result.ending.item == "test_it.py::test_it"
    assert result.ending.seen is not None and result.ending.seen >= 0.5


def test_cpu_time_of_children_counts(outcome_of: RunOne) -> None:
    source = """
import os, time
def test_it():
    if os.fork() == 0:
        while True: pass
    time.sleep(60)
"""
    assert outcome_of(source, cpu_seconds=0.5).ending.kind is EndingKind.CPU_TIME


def test_signals_that_ask_to_stop_can_be_ignored_and_do_not_help(outcome_of: RunOne) -> None:
    source = """
import signal
def test_it():
    for number in (signal.SIGTERM, signal.SIGXCPU, signal.SIGINT, signal.SIGALRM): signal.signal(number, signal.SIG_IGN)
    while True: pass
"""
    assert outcome_of(source, cpu_seconds=0.5).ending.kind is EndingKind.CPU_TIME


@pytest.mark.parametrize(
    "leaving",
    [
        "os._exit(0)",
        "pytest.exit('bye', returncode=0)",
        "raise KeyboardInterrupt",
        "request.session.shouldstop = 'enough'",
    ],
)
def test_leaving_early_is_never_complete(outcome_of: RunOne, leaving: str) -> None:
    source = f"import os, pytest\ndef test_a(): pass\ndef test_b(request): {leaving}\ndef test_c(): assert False\n"
    result = outcome_of(source)
    assert result.ending.kind is EndingKind.EARLY_EXIT
    assert outcomes(result)["test_a"] == "passed" and "test_c" not in outcomes(result)
    if "shouldstop" not in leaving:
        assert result.ending.item == "test_it.py::test_b"


@pytest.mark.parametrize("leaving", ["os._exit(0)", "sys.exit(0)"])
def test_leaving_at_import_is_early_exit(outcome_of: RunOne, leaving: str) -> None:
    result = outcome_of(f"import os, sys\n{leaving}\ndef test_it(): pass\n")
    assert result.ending.kind is EndingKind.EARLY_EXIT and not result.record.items


def test_pytest_exit_at_import_is_an_error_of_that_file(outcome_of: RunOne) -> None:
    result = outcome_of("import pytest\npytest.exit('x', returncode=0)\ndef test_it(): pass\n")
    assert [error.path for error in result.record.errors] == ["test_it.py"] and not result.record.items


def test_system_exit_in_a_test_is_its_failure(outcome_of: RunOne) -> None:
    result = outcome_of("import sys\ndef test_it(): sys.exit(0)\ndef test_on(): pass\n")
    assert result.complete and outcomes(result) == {"test_it": "failed", "test_on": "passed"}


def test_a_crash_is_a_signal(outcome_of: RunOne) -> None:
    result = outcome_of("import ctypes\ndef test_it(): ctypes.string_at(0)\n")
    assert (result.ending.kind, result.ending.seen, result.ending.detail) == (
        EndingKind.SIGNAL,
        11,
        "SIGSEGV",
    )
    assert result.ending.item == "test_it.py::test_it"


def test_killing_itself_is_a_signal_and_not_our_kill(outcome_of: RunOne) -> None:
    result = outcome_of("import os\ndef test_it(): os.kill(os.getpid(), 9)\n")
    assert (result.ending.kind, result.ending.seen) == (EndingKind.SIGNAL, 9)


def test_stopping_itself_is_no_progress(outcome_of: RunOne) -> None:
    result = outcome_of("import os\ndef test_it(): os.kill(os.getpid(), 19)\n", wall_seconds=WAIT_SECONDS)
    assert result.ending.kind is EndingKind.NO_PROGRESS


def test_too_much_memory_fails_the_test_that_asked(outcome_of: RunOne) -> None:
    result = outcome_of("import numpy\ndef test_it(): numpy.ones(2**30)\ndef test_on(): pass\n")
    assert result.complete and outcomes(result) == {"test_it": "failed", "test_on": "passed"}
    assert result.record.items[0].resource is Resource.MEMORY


def test_deep_recursion_is_a_failure(outcome_of: RunOne) -> None:
    result = outcome_of("def f(x): return f(x + 1)\ndef test_it(): f(0)\n")
    assert result.complete and result.record.items[0].message.startswith("RecursionError")


def test_a_fork_bomb_is_contained(outcome_of: RunOne, session: Session) -> None:
    result = outcome_of(
        "import os\ndef test_it():\n    while True:\n        try: os.fork()\n        except OSError: pass\n",
        cpu_seconds=1.0,
        processes=16,
    )
    assert result.ending.kind in (EndingKind.PROCESSES, EndingKind.CPU_TIME)
    assert outcome_of("def test_it(): pass\n").complete


def test_a_message_that_fills_the_memory_is_cut_and_ends_nothing(outcome_of: RunOne) -> None:
    result = outcome_of("def test_it(): raise ValueError('a' + 'x' * 3 * 10**8 + 'z')\ndef test_on(): pass\n")
    assert result.complete and outcomes(result) == {"test_it": "failed", "test_on": "passed"}
    message = result.record.items[0].message
    assert message.startswith("ValueError: ax") and message.endswith("xz") and len(message) <= 2000


def test_a_flood_of_output_is_ended(outcome_of: RunOne) -> None:
    result = outcome_of("def test_it():\n    while True: print('x' * 9999)\n", output_bytes=10**6)
    assert result.ending.kind is EndingKind.OUTPUT and result.ending.limit == 10**6
    assert result.stdout.truncated and len(result.stdout.text) < 70_000


def test_a_record_that_grows_too_large_is_ended(outcome_of: RunOne) -> None:
    source = "import os\ndef test_it():\n    while True: os.write(3, b'x' * 9999)\n"
    assert outcome_of(source, record_bytes=10**5).ending.kind is EndingKind.RECORD


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense",
        b'{"event": "end", "status": 0, "interrupted": false, "selected": 0, "ran": 0}',
        b'{"event": "item", "id": "test_it.py::test_b", "outcome": "passed", "seconds": 0, "message": "", "where": ""}',
        b'{"event": "start", "id": "test_it.py::test_z"}',
        b'{"event": "item", "id": NaN}',
        b'{"event": "start", "id": "a", "id": "b"}',
        b"[" * 10**4,
        b'{"event": "start", "id": "\\ud800"}',
    ],
)
def test_a_forged_record_is_a_protocol_error(outcome_of: RunOne, line: bytes) -> None:
    source = f"import os\ndef test_a(): pass\ndef test_b(): os.write(3, {line!r} + bytes([10]))\n"
    result = outcome_of(source)
    assert result.ending.kind is EndingKind.PROTOCOL_ERROR
    assert outcomes(result)["test_a"] == "passed"


def test_a_file_over_the_limit_fails_the_test(outcome_of: RunOne) -> None:
    source = "def test_it():\n    with open('big', 'wb') as file: file.write(bytes(2 * 2**20))\n"
    result = outcome_of(source, file_bytes=2**20)
    assert result.record.items[0].resource is Resource.FILE_SIZE


def test_a_full_disk_hits_only_its_run(session: Session, run_of: MakeRun) -> None:
    fills = """
def test_it():
    for number in range(1000):
        with open(f"f{number}", "wb") as file: file.write(bytes(2**20))
"""
    full, beside = session.run(
        [run_of(fills, id="full"), run_of("def test_it(): open('f', 'w').write('x' * 10**6)\n", id="beside")]
    )
    assert full.ending.kind is EndingKind.DISK or full.record.items[0].resource is Resource.DISK
    assert beside.complete and outcomes(beside) == {"test_it": "passed"}


def test_too_many_open_files_fail_the_test(outcome_of: RunOne) -> None:
    source = "import os\ndef test_it():\n    while True: os.open('/dev/null', 0)\n"
    (item,) = outcome_of(source).record.items
    assert item.resource is Resource.OPEN_FILES


def test_a_fork_that_falls_out_of_its_test_reports_nothing(outcome_of: RunOne) -> None:
    result = outcome_of(
        "import os\ndef test_it():\n    if os.fork() == 0: return\n    os.wait()\ndef test_on(): pass\n"
    )
    assert result.complete and outcomes(result) == {"test_it": "passed", "test_on": "passed"}


# One run and the next.


def test_files_of_one_run_are_not_there_in_the_next(session: Session, run_of: MakeRun) -> None:
    source = """
import os, pathlib, tempfile
PLACES = [pathlib.Path("."), pathlib.Path(".."), pathlib.Path(tempfile.gettempdir()), pathlib.Path.home()]
def test_it():
    left = [place for place in PLACES if (place / "autograder-test-marker").exists()]
    for place in PLACES:
        try: (place / "autograder-test-marker").write_text("here")
        except OSError: pass
    deep = pathlib.Path(".")
    for _ in range(300):
        os.mkdir("d" * 60); os.chdir("d" * 60)
    os.chmod(".", 0)
    assert not left
"""
    results = session.run([run_of(source, id=str(number)) for number in range(6)])
    assert all(result.complete and outcomes(result) == {"test_it": "passed"} for result in results)


def test_a_daemon_does_not_outlive_its_run(session: Session, run_of: MakeRun) -> None:
    daemon = """
import os, signal, time
def test_it():
    came, here = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (1, 2, 3, 15): signal.signal(number, signal.SIG_IGN)
            os.write(1, b"daemon %d" % os.getpid())
            os.write(here, b"x")
            time.sleep(600)
        os._exit(0)
    os.wait()
    os.read(came, 1)
"""
    (first,) = session.run([run_of(daemon)])
    pid = int(first.stdout.text.split()[-1])
    looks = f"""
import os
def test_it():
    try: state = open("/proc/{pid}/stat").read().rpartition(")")[2].split()[0]
    except OSError: state = "gone"
    assert state in ("gone", "Z")
"""
    (second,) = session.run([run_of(looks)])
    assert outcomes(second) == {"test_it": "passed"}


def test_no_more_runs_at_a_time_than_jobs(session: Session, run_of: MakeRun) -> None:
    source = (
        "import time\ndef test_it():\n    print(time.monotonic())\n    time.sleep(1)\n    print(time.monotonic())\n"
    )
    results = session.run([run_of(source, id=str(number)) for number in range(4)])
    spans = [tuple(map(float, result.stdout.text.split())) for result in results]
    at_once = [sum(begin <= start < end for begin, end in spans) for start, _ in spans]
    assert max(at_once) == 2


def test_results_come_in_order_and_are_told_as_they_come(session: Session, run_of: MakeRun) -> None:
    told: list[str] = []
    slow = run_of("import time\ndef test_it(): time.sleep(4)\n", id="slow")
    quick = run_of("def test_it(): pass\n", id="quick")
    results = session.run([slow, quick], lambda result: told.append(result.run_id))
    assert [result.run_id for result in results] == ["slow", "quick"]
    assert told == ["quick", "slow"]


def test_a_path_that_leaves_the_directory_is_refused(session: Session, run_of: MakeRun) -> None:
    with pytest.raises(ValueError, match="not a path inside"):
        session.run([run_of(files={"../../x.py": ""})])


def test_usage_is_measured(outcome_of: RunOne) -> None:
    source = "import time\ndef test_it():\n    while time.process_time() < 0.2: pass\n    bytearray(100 * 2**20)\n"
    usage = outcome_of(source).usage
    assert usage.wall_seconds >= usage.cpu_seconds * 0.5 > 0
    assert usage.peak_memory_bytes > 100 * 2**20


def test_the_environment_names_versions(session: Session) -> None:
    import numpy

    assert session.environment.numpy == numpy.__version__
    assert session.environment.python.startswith("3.")


# The session as a whole.


def test_after_the_deadline_runs_end_so(sandbox: Sandbox, run_of: MakeRun) -> None:
    sleeps = run_of("import time\ndef test_it(): time.sleep(60)\n")
    with sandbox.session() as session:
        session._deadline = time.monotonic() + WAIT_SECONDS  # type: ignore[attr-defined]
        results = session.run([replace(sleeps, id=str(number)) for number in range(4)])
    assert [result.ending.kind for result in results] == [EndingKind.DEADLINE] * 4
    assert results[0].ending.item == "test_it.py::test_it"


def test_a_cancelled_session_ends_with_an_error_of_ours(sandbox: Sandbox, run_of: MakeRun) -> None:
    with sandbox.session() as session:
        timer = threading.Timer(0.5, session.cancel)
        timer.start()
        with pytest.raises(SandboxError, match="cancelled"):
            session.run([run_of("import time\ndef test_it(): time.sleep(60)\n")])
        timer.join()


def test_a_trusted_module_that_fails_is_our_failure(sandbox: Sandbox) -> None:
    broken = Module("kit.broken", b"raise RuntimeError('ours')\n", "kit/broken.py")
    with pytest.raises(EngineFailed, match="ours"), sandbox.session([broken]):
        pass


def test_many_short_runs_lose_no_sandbox(session: Session, run_of: MakeRun, caplog: pytest.LogCaptureFixture) -> None:
    results = session.run([run_of("def test_it(): pass\n", id=str(number)) for number in range(40)])
    assert all(result.complete for result in results) and not caplog.records


def test_tests_are_run_first_that_are_named_so(outcome_of: RunOne) -> None:
    source = """
import pytest
def test_a(): pass
@pytest.mark.parametrize("n", [1, 2])
def test_b(n): assert n == 1
def test_c(): pass
"""
    whole = outcome_of(source, first=("test_it.py::test_c", "test_it.py::test_b", "test_it.py::test_none"))
    ids = [item.id.partition("::")[2] for item in whole.record.items]
    assert ids == ["test_c", "test_b[1]", "test_b[2]", "test_a"]
    assert [id.partition("::")[2] for id in whole.record.collected] == ["test_a", "test_b[1]", "test_b[2]", "test_c"]
    stopped = outcome_of(source, first=("test_it.py::test_b",), stop_at_first_failure=True)
    assert [item.id.partition("::")[2] for item in stopped.record.items] == ["test_b[1]", "test_b[2]"]
