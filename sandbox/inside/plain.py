"""A test that asks for nothing of pytest's plugins comes in; it is run without their hooks, and what came of it leaves.

Most of what a short test costs under pytest is hooks that have nothing to do for it (decision 0240). Fixtures are set
up and torn down by pytest's own functions, and what says more than a failure goes to the hooks, so that a test ends as
it would have.
"""

from collections.abc import Callable, Iterable
from contextlib import contextmanager
from functools import partial
from itertools import zip_longest
from typing import Literal, TypeGuard
from unittest import SkipTest

import pytest
from _pytest import assertion, python, runner
from _pytest import warnings as recorded_warnings
from _pytest.runner import CallInfo

from sandbox.inside.recorder import Recorder

TOLD_BY_HOOKS = (pytest.skip.Exception, pytest.xfail.Exception, SkipTest)
RERAISED = (pytest.exit.Exception, KeyboardInterrupt)
MARKS_WITH_HOOKS = frozenset({"skip", "skipif", "xfail", "filterwarnings"})
PLAIN_FIXTURES = frozenset({"monkeypatch"})  # of pytest's own; `request` gives any other by name

# What pytest itself wraps around each test, as of every test here.
with_warnings = contextmanager(recorded_warnings.pytest_runtest_protocol)
with_explanations = contextmanager(assertion.pytest_runtest_protocol)


class PlainTests:
    """A pytest plugin: its loop over a session's tests, unless the suite brings hooks."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._known: frozenset[object] = frozenset()
        self._looked_at: dict[pytest.Item, bool] = {}
        self._hooks_brought: bool | None = None

    def begin(self, manager: pytest.PytestPluginManager) -> None:
        """See which plugins are there without a suite."""
        self._known = frozenset(manager.get_plugins())
        self._hooks_brought = None

    def look_at(self, items: Iterable[pytest.Item], manager: pytest.PytestPluginManager) -> None:
        """See before the fork which of them are plain, and whether the suite brings hooks."""
        self._looked_at = {item: is_plain(item) for item in items}
        self._hooks_brought = self._brings_hooks(manager)

    def _brings_hooks(self, manager: pytest.PytestPluginManager) -> bool:
        brought = set(manager.get_plugins()) - self._known
        return any(name.startswith("pytest_") for plugin in brought for name in dir(plugin))

    def nothing_is_left(self, session: pytest.Session) -> bool:
        """Whether the end of a session would call nothing of the suite's: no hook, and no fixture's tear-down."""
        finalizers = [to_call for to_call, _ in session._setupstate.stack.values()]
        return self._hooks_brought is False and all(len(to_call) == 1 for to_call in finalizers)  # pytest's own

    def _is_plain(self, item: pytest.Item) -> TypeGuard[pytest.Function]:
        return self._looked_at[item] if item in self._looked_at else is_plain(item)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if self._hooks_brought is None:
            self._hooks_brought = self._brings_hooks(session.config.pluginmanager)
        if self._hooks_brought:
            return None
        for item, nextitem in zip_longest(session.items, session.items[1:]):
            if self._is_plain(item):
                self._recorder.pytest_runtest_logstart(item.nodeid)
                self._recorder.finish_plain(item, self._run(item, nextitem))
            else:
                session.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
        return True

    def _run(self, item: pytest.Function, nextitem: pytest.Item | None) -> list[CallInfo[object]]:
        """Run it as pytest's `runtestprotocol` does; returns the steps it came to."""
        if not item._request:
            item._initrequest()
        with with_warnings(item), with_explanations(item):
            try:
                steps = [self._step(item, "setup", partial(runner.pytest_runtest_setup, item))]
                if steps[0].excinfo is None:
                    steps.append(self._step(item, "call", partial(call, item)))
                if item.session.shouldfail or item.session.shouldstop:
                    nextitem = None
                steps.append(self._step(item, "teardown", partial(runner.pytest_runtest_teardown, item, nextitem)))
            finally:
                item._request = False  # type: ignore[assignment]
                item.funcargs = None  # type: ignore[assignment]
        return steps

    def _step(
        self, item: pytest.Function, when: Literal["setup", "call", "teardown"], step: Callable[[], object]
    ) -> CallInfo[object]:
        made = CallInfo.from_call(step, when=when, reraise=RERAISED)
        self._recorder.leave_if_forked()
        if made.excinfo is not None:
            if isinstance(made.excinfo.value, TOLD_BY_HOOKS):
                report = item.ihook.pytest_runtest_makereport(item=item, call=made)
                item.ihook.pytest_runtest_logreport(report=report)
            else:
                self._recorder.note_failure(item, made)
        return made


def is_plain(item: pytest.Item) -> TypeGuard[pytest.Function]:
    """Whether no plugin of pytest's own has a part in running it."""
    if not is_function(item):
        return False
    if any(mark.name in MARKS_WITH_HOOKS for mark in item.iter_markers()):
        return False
    return all(_is_plain_fixture(item, name) for name in item.fixturenames)


def is_function(item: pytest.Item) -> TypeGuard[pytest.Function]:
    """Whether it is neither unittest's nor hypothesis'."""
    if type(item) is not pytest.Function:
        return False
    return not any("hypothesis" in attribute for attribute in vars(getattr(item.obj, "__func__", item.obj)))


def can_run_again(item: pytest.Item) -> bool:
    """Whether a second run of it in one process meets nothing of the first: all that lasts is what it was given, and
    that cannot be changed."""
    return is_function(item) and all(map(is_unchangeable, parameters_of(item)))


def _is_plain_fixture(item: pytest.Function, name: str) -> bool:
    """A fixture of the suite, a parameter, or a function of the old kind, as setup_method."""
    if name in PLAIN_FIXTURES:
        return True
    modules = [fixture.func.__module__ for fixture in item._fixtureinfo.name2fixturedefs.get(name, ())]
    return bool(modules) and all(module == python.__name__ or not module.startswith("_pytest.") for module in modules)


def parameters_of(item: pytest.Function) -> Iterable[object]:
    return item.callspec.params.values() if hasattr(item, "callspec") else ()


def is_unchangeable(value: object) -> bool:
    """As far as that can be told: lists, dictionaries and arrays, and what holds some, have no hash."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def call(item: pytest.Function) -> None:
    runner._update_current_test_var(item, "call")
    python.pytest_pyfunc_call(item)
