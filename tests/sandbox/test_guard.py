"""If a suite that calls something were ever taken for inert, the process that collects it ends before it is called."""

import os
import sys
import warnings
from pathlib import Path

import pytest

from sandbox.inside import zygote
from sandbox.inside.codes import Codes, compile_ahead
from sandbox.inside.pytest_session import PreparedSession
from sandbox.inside.zygote import SuiteSource
from tests.sandbox import test_inert

CALLED = """
import os, sys
def left(*anything):
    open(%r, "w").close()
    return "x"
"""
CALLS = {
    "at the top": "left()",
    "by a decorator": "@left\ndef test_it(): ...",
    "by a lambda": "(lambda: left())()",
    "by a comprehension": "x = [left() for _ in (1,)]",
    "by pytest, for ids": "import pytest\n@pytest.mark.parametrize('n', [1], ids=left)\ndef test_it(n): ...",
    "by pytest, as a hook": "def pytest_generate_tests(metafunc): left()",
    "by unittest": (
        "import unittest\nclass TestIt(unittest.TestCase):\n    def __init__(self, *names): left()\n"
        "    def test_it(self): ..."
    ),
    "by Python, for a subclass": "class A:\n    def __init_subclass__(cls): left()\nclass B(A): ...",
    "by Python, for a name": "def __getattr__(name): left()",
    "from text": "import pytest\n@pytest.mark.parametrize('n', ['left()'], ids=eval)\ndef test_it(n): ...",
    "from text at the top": "eval('left()')",
    "in another process": "os.system('touch %s')",
    "in a fork": "if os.fork() == 0: left()",
    "by pytest, in another process": (
        "import pytest\n@pytest.mark.parametrize('n', ['touch %s'], ids=os.system)\ndef test_it(n): ..."
    ),
}


def collects(source: str, folder: Path) -> int:
    """Collect a suite as if it were inert, in a fork; its exit status: 0 if that was done, 7 if it found nothing."""
    files = {"suite/test_it.py": source.encode()}
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    status = 9
    try:
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        warnings.simplefilter("ignore")  # as in a template, where marks may have any name
        sys.dont_write_bytecode = True  # as in a template as well: what writes is taken for a suite that does more
        session, codes = PreparedSession(str(folder / "run")), Codes()
        codes.install()
        done = zygote.collect(
            session, codes, SuiteSource(files, ["suite"]), compile_ahead(files, ["suite"], session.config)
        )
        status = 0 if done else 7
    finally:
        os._exit(status)


@pytest.mark.parametrize("how", CALLS)
def test_a_suite_that_calls_something_ends_the_process_before_it_is_called(how: str, tmp_path: Path) -> None:
    mark = tmp_path / "called"
    source = CALLED % str(mark) + (CALLS[how] % str(mark) if "%s" in CALLS[how] else CALLS[how])
    status = collects(source + "\n\ndef test_more(): ...\n", tmp_path)
    assert status == 1 and not mark.exists()


@pytest.mark.parametrize("source", [each for each in test_inert.INERT_FILES.split("---\n") if "library" not in each])
def test_an_inert_suite_is_collected_to_the_end(source: str, tmp_path: Path) -> None:
    assert collects(source + "\ndef test_more(): ...\n", tmp_path) == 0
