"""A pytest session cut in two: all that does not depend on the suite is done before the fork, the rest in the run. An
inert suite (`inert.py`) is also collected before it.

Making a configuration and registering pytest's plugins costs more than most suites (decision 0033). A prepared session
belongs to one directory, so the template prepares one for each slot. It uses pytest's insides; the version is pinned.
"""

import os
import shutil
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from unittest import TestCase

import pytest
from _pytest.assertion.rewrite import AssertionRewritingHook
from _pytest.config import _prepareconfig
from _pytest.fixtures import FixtureFunctionDefinition, reorder_items
from _pytest.main import Session
from _pytest.scope import Scope

from sandbox.inside.plain import PlainTests, can_run_again
from sandbox.inside.recorder import Place, Recorder, Task

ROOT = "suite"
EARLY_HOOKS = (
    b"pytest_plugins",
    b"pytest_addoption",
    b"pytest_addhooks",
    b"pytest_cmdline",
    b"pytest_load_initial_conftests",
    b"pytest_sessionstart",
)
UNUSED_PLUGINS = (  # not junitxml and doctest: suites may ask for their fixtures
    "cacheprovider",
    "faulthandler",
    "pastebin",
    "stepwise",
    "threadexception",
    "unraisableexception",
)


class PreparedSession:
    """A session of the suite in `directory`/suite, up to the moment before collection; or, of an inert suite, up to
    the moment after it."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.root = f"{directory}/{ROOT}"
        self.recorder = Recorder()
        self._plain_tests = PlainTests(self.recorder)
        self._collected: Collected | None = None
        self._nothing_is_left = False
        hooks = set(map(id, sys.meta_path))
        os.makedirs(self.root)  # pytest wants to see it; the run makes its own
        os.chdir(directory)
        try:
            self.config = _prepareconfig(arguments(directory, self.root), [self.recorder, Cache(), self._plain_tests])
            self.config._do_configure()
            self._plugins = set(self.config.pluginmanager.get_plugins())
            self._start()
        finally:
            os.chdir("/")
            shutil.rmtree(directory)
        self._import_hooks = [hook for hook in sys.meta_path if id(hook) not in hooks]
        for hook in self._import_hooks:
            assert isinstance(hook, AssertionRewritingHook)
            sys.meta_path.remove(hook)

    def _start(self) -> None:
        self._session: Session = Session.from_config(self.config)
        self._session.exitstatus = pytest.ExitCode.OK
        self.config.hook.pytest_sessionstart(session=self._session)
        self.config.pluginmanager._dirpath2confmods.clear()  # forget that there was no conftest.py
        self._plain_tests.begin(self.config.pluginmanager)

    def collect(self, paths: Sequence[str], waiting: Mapping[str, CodeType]) -> bool:
        """Collect what now lies in the suite's directory; whether that found tests and no error.

        `paths` are added to sys.path; `waiting` are imports of the suite's files, by file, which `complete` executes.
        """
        modules_before, paths_before = frozenset(sys.modules), tuple(sys.path)
        sys.path += paths
        lines: list[bytes] = []
        self.recorder.begin(Task(lines.append, Place(self.directory, self.root)))
        self._find_imports()
        try:
            self.config.hook.pytest_collection(session=self._session)
        except BaseException:
            return False
        if not self.recorder.items or any(b'"event": "error"' in line for line in lines):
            return False
        new = [module for name, module in sys.modules.items() if name not in modules_before]
        files = [(module, getattr(module, "__file__", None) or "") for module in new]
        imports = tuple((module, waiting[file]) for module, file in files if file in waiting)
        modules = tuple((name, module) for name, module in sys.modules.items() if name not in modules_before)
        items = tuple(self.recorder.items)
        self._plain_tests.look_at(items, self.config.pluginmanager)
        self._collected = Collected(items, imports, modules, modules_before, paths_before)
        return True

    def complete(self) -> bool:
        """Execute the imports that waited. False if one fails, or what was collected is not
        what the run would collect, or nothing was: then `run` collects."""
        if self._collected is None:
            return False
        try:
            if any(sys.modules.get(name) is not module for name, module in self._collected.modules):
                raise ImportError("a file of the suite has the name of a module of the run, which comes first")
            for module, code in self._collected.imports:
                exec(code, module.__dict__)
                if any(is_collected(module.__dict__.get(name)) for name in code.co_names):
                    raise ImportError("what was imported would have been collected")
        except BaseException:
            self._forget(self._collected)
        return self._collected is not None

    def _forget(self, collected: "Collected") -> None:
        """Be as before `collect`, and have the process so too."""
        for name in sys.modules.keys() - collected.modules_before:
            del sys.modules[name]
        sys.path[:] = collected.paths_before
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder not in self._import_hooks]
        manager = self.config.pluginmanager
        for plugin in set(manager.get_plugins()) - self._plugins:
            manager.unregister(plugin)
        manager._conftest_plugins.clear()
        self._collected = None
        self._start()

    def run(self) -> int:
        """Collect what now lies in the suite's directory, unless that was done, and run it; returns pytest's exit
        status."""
        self._find_imports()
        session, hook = self._session, self.config.hook
        try:
            session.exitstatus = self._collect_and_run()
            self._nothing_is_left = self._plain_tests.nothing_is_left(session)
            if not self._nothing_is_left:
                hook.pytest_sessionfinish(session=session, exitstatus=session.exitstatus)
        except (KeyboardInterrupt, pytest.exit.Exception):
            self.recorder.pytest_keyboard_interrupt()
            session.exitstatus = pytest.ExitCode.INTERRUPTED
        except BaseException:
            traceback.print_exc()
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
        return int(session.exitstatus)

    def can_go_on(self) -> bool:
        """Whether tests have failed that would find all as in a new process: the session as they found it, and nothing
        that they were given and may have changed."""
        failed = [item for item in self._session.items if self.recorder.has_failed(item)]
        return self._nothing_is_left and bool(failed) and all(map(can_run_again, failed))

    def begin_again(self) -> bool:
        """With another version of the modules there, be as after `complete`, which says whether that worked. Only if
        it `can_go_on`."""
        session = self._session
        session._shouldfail, session.testsfailed = False, 0
        for item in session.items:
            if isinstance(item, pytest.Function) and item.cls is not None:
                item._instance = item._getinstance()  # type: ignore[no-untyped-call]
                item.obj = getattr(item._instance, item.originalname)
        return self.complete()

    def _find_imports(self) -> None:
        sys.meta_path[:0] = [hook for hook in self._import_hooks if hook not in sys.meta_path]

    def _collect_and_run(self) -> pytest.ExitCode:
        session, hook = self._session, self.config.hook
        try:
            if self._collected is None:
                hook.pytest_collection(session=session)
            else:
                session.items[:] = self.recorder.select_looked_at()
                if any(map(is_parametrized_beyond_itself, session.items)):
                    session.items[:] = reorder_items(session.items)
                self.recorder.pytest_collection_finish(session)
            hook.pytest_runtestloop(session=session)
        except Session.Failed:
            return pytest.ExitCode.TESTS_FAILED
        if session.testsfailed:
            return pytest.ExitCode.TESTS_FAILED
        return pytest.ExitCode.OK if session.testscollected else pytest.ExitCode.NO_TESTS_COLLECTED


@dataclass(frozen=True)
class Collected:
    """The items of a suite, the imports that wait, and what the process knew before it was collected."""

    items: tuple[pytest.Item, ...]
    imports: tuple[tuple[ModuleType, CodeType], ...]
    modules: tuple[tuple[str, ModuleType], ...]
    modules_before: frozenset[str]
    paths_before: tuple[str, ...]


def is_collected(value: object) -> bool:
    """Whether pytest, where it meets this under any name, makes something of it: a fixture, or tests."""
    return isinstance(value, FixtureFunctionDefinition) or (isinstance(value, type) and issubclass(value, TestCase))


def is_parametrized_beyond_itself(item: pytest.Item) -> bool:
    """Whether it shares a parameter with other tests, which pytest then puts side by side."""
    callspec = getattr(item, "callspec", None)
    return callspec is not None and any(scope is not Scope.Function for scope in callspec._arg2scope.values())


class Cache:
    """pytest's cache for the tests that ask for it: empty at first, and gone with the run, which costs nothing."""

    def __init__(self) -> None:
        self._values: dict[str, object] = {}

    @pytest.fixture(name="cache")
    def _fixture(self) -> "Cache":
        return self

    def pytest_configure(self, config: pytest.Config) -> None:
        config.cache = self  # type: ignore[assignment]  # suites know it by this name too

    def get(self, key: str, default: object) -> object:
        return self._values.get(key, default)

    def set(self, key: str, value: object) -> None:
        self._values[key] = value

    def mkdir(self, name: str) -> Path:
        folder = Path(os.environ["HOME"]) / "cache" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def run_afresh(directory: str, root: str, recorder: Recorder) -> int:
    """The same without anything prepared; returns pytest's exit status."""
    try:
        config = _prepareconfig(arguments(directory, root), [recorder, Cache()])
    except Exception as error:  # a conftest.py, or a plugin that it names, cannot be imported
        recorder.not_begun(error)
        return int(pytest.ExitCode.TESTS_FAILED)
    try:
        return int(config.hook.pytest_cmdline_main(config=config))
    except pytest.UsageError:
        traceback.print_exc()
        return int(pytest.ExitCode.USAGE_ERROR)
    finally:
        config._ensure_unconfigure()


def needs_fresh(conftests: Iterable[str]) -> bool:
    """Whether a conftest of the suite has a part in what a prepared session has behind it already."""
    sources = [Path(conftest).read_bytes() for conftest in conftests]
    return any(hook in source for source in sources for hook in EARLY_HOOKS)


def arguments(directory: str, root: str) -> list[str]:
    """Settings of ours, whatever configuration an upload carries."""
    switches = ["-c", os.devnull, f"--rootdir={root}", f"--confcutdir={root}", f"--basetemp={directory}/tmp"]
    switches += ["--tb=no", "-s", "--continue-on-collection-errors", "-p", "_hypothesis_pytestplugin"]
    switches += ["--doctest-glob="]  # no file of any name
    for plugin in UNUSED_PLUGINS:
        switches += ["-p", f"no:{plugin}"]
    return [*switches, root]
