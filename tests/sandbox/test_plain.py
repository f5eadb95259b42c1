"""A test is told the same whether it runs without pytest's hooks or with them: a suite that brings one has them all."""

import pytest

from sandbox.records import RunResult
from tests.sandbox.conftest import RunOne

HOOK = "def pytest_runtest_logstart(nodeid): pass\n"

SUITES = {
    "passes and fails": """
        def test_passes(): pass
        def test_compares(): assert [1, 2] == [1, 3]
        def test_explains():
            x = 3
            assert x > 4, "too small"
        def test_raises(): {}["key"]
        def test_leaves(): raise SystemExit(3)
        def test_group(): raise ExceptionGroup("all", [ValueError(1), KeyError(2)])
    """,
    "says something else than pass or fail": """
        import unittest
        def test_skips(): pytest.skip("not now")
        def test_skips_otherwise(): raise unittest.SkipTest("nor now")
        def test_is_expected(): pytest.xfail("known")
        def test_says_fail(): pytest.fail("because")
        def test_returns(): return 3
        def test_needs(): pytest.importorskip("no_such_module")
    """,
    "fixtures": """
        SEEN = []
        @pytest.fixture(scope="module")
        def wide():
            SEEN.append("up")
            yield len(SEEN)
            SEEN.append("down")
        @pytest.fixture
        def number(wide):
            yield wide
            SEEN.append("number down")
        @pytest.fixture
        def broken(): raise ValueError("cannot be made")
        @pytest.fixture
        def skipping(): pytest.skip("no number today")
        @pytest.fixture
        def breaks_late():
            yield 1
            raise ValueError("cannot be ended")
        @pytest.fixture(params=[1, 2])
        def chosen(request): return request.param
        def test_number(number): assert number == 1
        def test_number_again(number): assert (number, SEEN) == (1, ["up", "number down"])
        def test_broken(broken): pass
        def test_skipping(skipping): pass
        def test_breaks_late(breaks_late): pass
        def test_fails_and_breaks_late(breaks_late): assert breaks_late == 2
        def test_chosen(chosen): assert chosen == 1
        def test_unknown(no_such_fixture): pass
        @pytest.mark.parametrize("a, b", [(1, 2), (2, 1)])
        def test_parameters(a, b): assert a < b
        def test_patches(monkeypatch):
            monkeypatch.setenv("SOMETHING", "1")
        def test_was_restored():
            import os
            assert "SOMETHING" not in os.environ
    """,
    "classes": """
        import unittest
        def setup_module(module): module.READY = True
        class TestPlain:
            size = 2
            def setup_method(self): self.value = self.size
            def teardown_method(self): assert self.value == 2
            def test_value(self): assert self.value == 2 and READY
            def test_changes(self): self.value = 3
        class TestUnit(unittest.TestCase):
            def test_equal(self): self.assertEqual(1, 2)
            @unittest.skip("later")
            def test_later(self): pass
        class TestLacks:
            def setup_method(self): raise ValueError("no set-up")
            def test_it(self): pass
    """,
    "marks": """
        pytestmark = pytest.mark.slow
        @pytest.mark.skip(reason="later")
        def test_skipped(): pass
        @pytest.mark.xfail(strict=True)
        def test_passes_against_expectation(): pass
        @pytest.mark.xfail
        def test_expected(): assert 1 == 2
        @pytest.mark.filterwarnings("error")
        def test_warns(): warnings.warn("now")
        def test_slow(): pass
    """,
    "warnings": """
        def test_warns(): warnings.warn("once")
        def test_makes_errors_of_them(): warnings.simplefilter("error")
        def test_is_not_met_by_that(): warnings.warn("once")
        def test_catches():
            with pytest.warns(UserWarning): warnings.warn("caught")
        def test_old(): warnings.warn("old", DeprecationWarning)
    """,
    "fixtures of pytest": """
        import logging
        def test_output(capsys):
            print("said")
            assert capsys.readouterr().out == "said\\n"
        def test_log(caplog):
            logging.getLogger().warning("logged")
            assert caplog.messages == ["logged"]
        def test_folder(tmp_path):
            (tmp_path / "a").write_text("b")
            assert False
        def test_by_name(request): assert request.getfixturevalue("tmp_path").is_dir()
        def test_warnings(recwarn):
            warnings.warn("seen")
            assert len(recwarn) == 1
        def test_parts(subtests):
            with subtests.test("first"): assert 1 == 2
        def test_says_where():
            import os
            assert os.environ["PYTEST_CURRENT_TEST"] == "test_it.py::test_says_where (call)"
    """,
    "hypothesis": """
        from hypothesis import given, settings, strategies
        @given(strategies.integers())
        def test_all(n): assert n < 10
        @settings(max_examples=3)
        def test_without_given(): pass
        def test_inside():
            @given(strategies.booleans())
            def inner(b): assert b in (True, False)
            inner()
    """,
    "stops": """
        def test_first(): assert 1 == 2
        def test_stops(): pytest.exit("enough")
        def test_is_not_run(): pass
    """,
    "leaves a fork behind": """
        import os
        def test_forks():
            if os.fork() == 0: return
            os.wait()
        def test_fails_in_a_fork():
            if os.fork() == 0: assert False
            os.wait()
        def test_on(): pass
    """,
    "coroutines": """
        async def test_waits(): pass
    """,
}


def source_of(name: str) -> str:
    lines = [line.removeprefix(" " * 8) for line in SUITES[name].splitlines()]
    return "import warnings\nimport pytest\n" + "\n".join(lines)


def told(result: RunResult) -> tuple[object, ...]:
    items = [(item.id, item.outcome, item.message, item.where, item.resource) for item in result.record.items]
    return result.ending.kind, result.ending.item, result.record.collected, result.record.errors, items


@pytest.mark.parametrize("messages", [True, False])
@pytest.mark.parametrize("name", SUITES)
def test_tests_come_to_the_same_with_hooks_and_without(outcome_of: RunOne, name: str, messages: bool) -> None:
    plain = outcome_of(source_of(name), messages=messages)
    hooked = outcome_of(source_of(name), messages=messages, files={"conftest.py": HOOK})
    assert told(plain) == told(hooked)
    assert plain.record.items


def test_a_run_stops_at_the_first_failure_of_a_plain_test(outcome_of: RunOne) -> None:
    result = outcome_of("def test_a(): pass\ndef test_b(): assert 0\ndef test_c(): pass\n", stop_at_first_failure=True)
    assert [item.id for item in result.record.items] == ["test_it.py::test_a", "test_it.py::test_b"]
    assert result.complete


def test_what_a_test_came_to_is_not_lost_when_the_session_ends_badly(outcome_of: RunOne) -> None:
    """The line of the last test is written before what is left to tear down can end the process."""
    source = """
import atexit, os
import pytest

@pytest.fixture(scope="session", autouse=True)
def leaves():
    yield
    os._exit(0)

def test_a(): pass
def test_b(): pass
"""
    result = outcome_of(source)
    assert not result.complete
    assert [item.id for item in result.record.items] == ["test_it.py::test_a"]
    assert result.ending.item == "test_it.py::test_b"  # which tears the session down
