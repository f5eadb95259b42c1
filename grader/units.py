"""A course tree on disk goes in; a `Course` of checked units comes out.

Paths that begin with "course/" are relative to the folder that holds the tree, whatever the tree is called there.
Sources of python/tinyllm/… come from TREE/ref/python/tinyllm/…, or else from the tinyllm/ beside the tree.
A unit that is malformed becomes a `UnitProblem` with file, line and reason; the others load all the same.
"""

import ast
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from grader import course_tests, freedoms, hints, interface, library, manifest, module_file, names, patches, quiz
from grader.course_file import line_of, text_of, tree_of
from grader.digest import digest_of
from grader.driver import driver_of
from grader.errors import LoadError
from grader.library import module_of, top
from grader.module_file import ModuleFile
from grader.quiz import Quiz
from grader.source import Unparsed, parse
from grader.unit import (
    Contract,
    Course,
    CourseTest,
    Dep,
    Erratum,
    Listed,
    Mutant,
    Unit,
    UnitFile,
    UnitOracle,
    UnitProblem,
    Wheat,
)
from sandbox.records import File

DEFAULT_COURSE = Path(__file__).resolve().parent.parent / "course"  # beside this package, as in a checkout
CONTRACTS = "contracts/py"
SUITE = "suite"
LIB = "lib"
HELPERS = "_lib"
MAX_FILE_BYTES = 64 * 2**20
MOST_REFUSED = 20  # mutants of a unit that are said to be wrong, before the others are looked at
MAX_MUTANT_BYTES = 256 * 2**20  # of what all patches of a tree change, as they leave it: each holds whole files


def load_course(root: Path) -> Course:
    """Every unit under TREE/modules. Raises NotADirectoryError if there is no such folder."""
    modules = root / "modules"
    if not modules.is_dir():
        raise NotADirectoryError(f"{root} is no course tree: it has no modules/ folder")
    tree = _Tree(root.resolve())
    units: dict[str, Unit] = {}
    problems: list[UnitProblem] = []
    listed: list[Listed] = []
    for path in sorted(modules.glob("*.toml")):
        file = f"modules/{path.name}"
        try:
            if only_listed := module_file.only_listed(file, tree.read(file)):
                listed.append(only_listed)
                continue
            unit = _load(tree, file)
            if unit.id in units:
                raise LoadError(file, 0, f"the id {unit.id} is taken by another module file")
            units[unit.id] = unit
        except LoadError as error:
            problems += (UnitProblem(path.stem, each.file, each.line, each.reason) for each in (error, *error.also))
        except (OSError, ValueError, RecursionError) as error:  # names and numbers of any length, code of any depth
            problems.append(UnitProblem(path.stem, file, 0, f"cannot be read: {type(error).__name__}"))
    units = {unit.id: replace(unit, deps=_all_deps(unit, units)) for unit in units.values()}
    parts = [(unit.id, unit.digest.encode()) for unit in units.values()]
    parts.extend((f"!{problem.unit}", repr(problem).encode()) for problem in problems)
    return Course(units, tuple(problems), digest_of(parts), tuple(each for each in listed if each.id not in units))


def _all_deps(unit: Unit, units: Mapping[str, Unit]) -> tuple[Dep, ...]:
    """What the unit names, and of what the course offers what those name, nearest first and each once."""
    found: dict[str, Dep] = {}
    waiting = deque(unit.deps)
    own = {file.path for file in unit.files}
    while waiting:
        dep = waiting.popleft()
        if dep.id in found or dep.id == unit.id:
            continue
        offered = units.get(dep.id)
        files = tuple(file for file in offered.files if file.path not in own) if offered else ()
        found[dep.id] = replace(dep, title=dep.title or (offered.title if offered else ""), files=files)
        waiting.extend(offered.deps if offered else ())
    return tuple(found.values())


class _Tree:
    """Reads files of one course tree by their path relative to it, each once, however many units use it; what is
    missing or linked outside is a LoadError."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._contracts: dict[str, Contract] | None = None
        self._files: dict[Path, bytes] = {}
        self._references: dict[Path, bytes] = {}
        self._mutant_bytes = 0

    def read(self, path: str, wanted_by: str = "", line: int = 0) -> bytes:
        return self._read(self.root / path, path, wanted_by, line)

    def reference(self, path: str, wanted_by: str = "", line: int = 0) -> bytes:
        """The source of "python/tinyllm/…", without what marks solutions in it."""
        own, beside = self._places(path)
        place = own if own.is_file() else beside
        if not place.exists():  # `path` is also the name of a student's file, which is not meant
            beside_tree = path.removeprefix("python/")
            reason = f"there is no reference of {path}: neither ref/{path} nor, beside the course tree, {beside_tree}"
            raise LoadError(wanted_by or path, line, reason)
        if place not in self._references:
            data = self._read(place, path, wanted_by, line)
            self._references[place] = library.without_marks(text_of(path, data)).encode()
        return self._references[place]

    def spend(self, changed: Mapping[str, bytes], path: str) -> None:
        """Count what a patch leaves. Raises LoadError if all patches of the tree leave too much."""
        self._mutant_bytes += sum(map(len, changed.values()))
        if self._mutant_bytes > MAX_MUTANT_BYTES:
            raise LoadError(path, 0, "is one mutant too many: the files that mutants change are too large together")

    def path_of(self, module: str) -> str:
        """The path of a module's reference, "" if there is none."""
        paths = library.paths_of(module)
        return next((path for path in paths if any(place.is_file() for place in self._places(path))), "")

    def _places(self, path: str) -> tuple[Path, Path]:
        return self.root / "ref" / path, self.root.parent / path.removeprefix("python/")

    def _read(self, file: Path, path: str, wanted_by: str, line: int) -> bytes:
        if file in self._files:
            return self._files[file]
        try:
            if file.stat().st_size > MAX_FILE_BYTES:
                raise LoadError(path, 0, "is too large")
            self._files[file] = file.read_bytes()
            return self._files[file]
        except OSError as error:
            reason = f"cannot be read: {error.strerror or error}"
            raise (
                LoadError(wanted_by, line, f"{path} {reason}") if wanted_by else LoadError(path, 0, reason)
            ) from error

    def folder(self, path: str, wanted_by: str = "", line: int = 0) -> dict[str, bytes]:
        """Files below a folder by path relative to it, sorted, without left-overs. A missing folder is an error."""
        folder = self.root / path
        if not folder.is_dir():
            raise LoadError(wanted_by or path, line, f"{path} is not a folder")
        found: dict[str, bytes] = {}
        for file in sorted(folder.rglob("*")):
            parts = file.relative_to(folder).parts
            if file.is_file() and not names.leftover(parts):
                found["/".join(parts)] = self.read(f"{path}/{'/'.join(parts)}")
        return found

    def contracts(self) -> dict[str, Contract]:
        """Every .pyi of the tree, by module name."""
        if self._contracts is None:
            if not (self.root / CONTRACTS).is_dir():
                raise LoadError(CONTRACTS, 0, "is not a folder")
            stubs = {path: data for path, data in self.folder(CONTRACTS).items() if path.endswith(".pyi")}
            read = (_contract(path, data) for path, data in stubs.items())
            # That something is a package is no contract for it.
            self._contracts = {each.module: each for each in read if each.names or self.path_of(each.module)}
        return self._contracts


def _inside(path: str) -> str:
    """A module file's path relative to the tree: "course/x" is x."""
    return path.removeprefix("course/")


def _contract(path: str, data: bytes) -> Contract:
    file = f"{CONTRACTS}/{path}"
    tree = tree_of(file, data)
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    handed_on = {alias.name: None for node in imports for alias in node.names if alias.asname == alias.name}
    return Contract(module_of(path), {**handed_on, **interface.names(interface.read(tree))}, text_of(file, data))


# -- one unit --------------------------------------------------------------------------------------------------------


def _load(tree: _Tree, file: str) -> Unit:
    data = tree.read(file)
    settings = module_file.read(file, data)
    text = text_of(file, data)

    def at(*path: str) -> int:
        return line_of(text, path)

    files = tuple(UnitFile(path, module_of(path), tree.reference(path, file, at("units"))) for path in settings.units)
    for one in files:
        tree_of(one.path, one.reference)
    contracts = _of_packages(tree.contracts(), files)
    own = _own_contracts(tree, settings, files, contracts, file, at("contract"))
    mutants = _mutants(tree, settings.id, files)
    tests, laid = _tests(tree, settings, file, at("tests", "dir"))
    _check_ids(tests, mutants, settings, _inside(settings.tests.dir), file, at)
    wheats = _wheats(tree, settings.id, files)
    freedoms_file = f"wheats/{settings.id}/freedoms.md"
    has_freedoms = (tree.root / freedoms_file).is_file()
    ids = [wheat.id for wheat in wheats]
    free = freedoms.read(freedoms_file, tree.read(freedoms_file), ids) if has_freedoms else ()
    unit = Unit(
        id=settings.id,
        title=settings.title,
        build=tuple(settings.build),
        files=files,
        contract=own,
        forbidden=tuple(settings.forbidden),
        contracts=contracts,
        companions=_companions(tree, files, contracts),
        course_tests=tests,
        test_files=laid,
        fixtures=_fixtures(tree, settings, file, at("fixtures", "files")),
        smoke=tuple(settings.tests.smoke),
        test_seconds=settings.tests.timeout_s,
        determinism_runs=settings.tests.determinism_runs,
        tests_path=settings.learner_tests.path,
        rung=settings.learner_tests.rung,
        threshold=settings.learner_tests.threshold,
        required_mutants=_required(settings, mutants),
        budget_cpu_seconds=settings.learner_tests.time_budget_s,
        full_matrix_cpu_seconds=settings.learner_tests.full_matrix_cpu_s,
        mutants=mutants,
        wheats=wheats,
        freedoms=free,
        errata=tuple(Erratum(one.printed, one.correct, one.note) for one in settings.errata),
        weight_course_tests=settings.weights.course_tests,
        weight_mutation=settings.weights.mutation,
        oracle=_oracle(tree, settings.id),
        deps=tuple(Dep(dep.id, dep.title) for dep in settings.deps),
        quiz=_quiz(tree, settings.id),
        runtime=settings.runtime,
        aliases=dict(settings.aliases),
    )
    return replace(unit, digest=digest_of(_graded(tree, data, unit)))


def _of_packages(contracts: Mapping[str, Contract], files: Sequence[UnitFile]) -> dict[str, Contract]:
    """The contracts of the packages that the unit's files belong to: the others are no part of what it builds on."""
    tops = {top(one.module) for one in files}
    return {module: contract for module, contract in contracts.items() if top(module) in tops}


def _own_contracts(
    tree: _Tree,
    settings: ModuleFile,
    files: Sequence[UnitFile],
    contracts: Mapping[str, Contract],
    file: str,
    line: int,
) -> dict[str, Contract]:
    """The contracts of the unit's own modules: exactly one for each."""
    own: dict[str, Contract] = {}
    for path in settings.contract:
        inside = _inside(path)
        module = module_of(inside.removeprefix(f"{CONTRACTS}/"))
        if not inside.startswith(f"{CONTRACTS}/") or not inside.endswith(".pyi"):
            raise LoadError(file, line, f"contract: {path} does not lie in course/{CONTRACTS}/ or is no .pyi")
        if module not in contracts:
            raise LoadError(file, line, f"contract: {path} does not exist")
        if module not in {one.module for one in files}:
            raise LoadError(file, line, f"contract: {path} belongs to none of the unit's files")
        own[module] = contracts[module]
    for one in files:
        if one.module not in own:
            raise LoadError(file, line, f"contract: there is none for {one.path}")
    return own


def _companions(tree: _Tree, files: Sequence[UnitFile], contracts: Mapping[str, Contract]) -> dict[str, bytes]:
    def read(path: str) -> tuple[bytes, ast.Module]:
        source = tree.reference(path)
        return source, tree_of(path, source)

    return library.companions([one.module for one in files], list(contracts), tree.path_of, read)


def _tests(tree: _Tree, settings: ModuleFile, file: str, line: int) -> tuple[tuple[CourseTest, ...], tuple[File, ...]]:
    """The unit's course tests, and all files as laid for a run: suite/test_….py and lib/_lib/…."""
    folder = _inside(settings.tests.dir)
    found = tree.folder(folder, file, line)
    python = {path: data for path, data in found.items() if path.endswith(".py")}
    tests = course_tests.read(python, folder)
    if not tests:
        raise LoadError(file, line, f"tests.dir: there is no test in {settings.tests.dir}")
    laid = [File(f"{SUITE}/{path}", data) for path, data in found.items()]
    for above in PurePosixPath(folder).parents:  # the nearest there are
        if (tree.root / above / HELPERS).is_dir():
            laid.extend(
                File(f"{LIB}/{HELPERS}/{path}", data) for path, data in tree.folder(f"{above}/{HELPERS}").items()
            )
            break
    return tests, tuple(laid)


def _check_ids(
    tests: Sequence[CourseTest],
    mutants: Sequence[Mutant],
    settings: ModuleFile,
    folder: str,
    file: str,
    at: Callable[..., int],
) -> None:
    """Every id that one file names must exist in the other."""
    mids = {mutant.id for mutant in mutants}
    test_names = {test.name for test in tests}
    for test in tests:
        for mid in test.catches:
            if mid not in mids:
                raise LoadError(
                    f"{folder}/{test.path}", 0, f"{test.name} catches {mid}, which the manifest does not list"
                )
    for mid in settings.learner_tests.required_mutants:
        if mid not in mids:
            line = at("learner_tests", "required_mutants")
            raise LoadError(file, line, f"required_mutants: {mid} is not in the manifest")
    for name in settings.tests.smoke:
        if name not in test_names:
            raise LoadError(file, at("tests", "smoke"), f"smoke: there is no test {name}")


def _required(settings: ModuleFile, mutants: Sequence[Mutant]) -> tuple[str, ...]:
    """The module file's list, then mutants that only the manifest marks as required."""
    listed = dict.fromkeys(settings.learner_tests.required_mutants)
    return tuple({**listed, **dict.fromkeys(mutant.id for mutant in mutants if mutant.required)})


def _fixtures(tree: _Tree, settings: ModuleFile, file: str, line: int) -> tuple[File, ...]:
    paths = dict.fromkeys(path.removeprefix("course/fixtures/") for path in settings.fixtures.files)
    return tuple(File(path, tree.read(f"fixtures/{path}", file, line)) for path in paths)


def _oracle(tree: _Tree, unit: str) -> UnitOracle | None:
    """oracle/UNIT/live.py; a unit without one is graded without."""
    path = f"oracle/{unit}/live.py"
    if not (tree.root / path).is_file():
        return None
    source = tree.read(path)
    defined = {node.name for node in tree_of(path, source).body if isinstance(node, ast.FunctionDef)}
    for name in ("cases", "expected"):
        if name not in defined:
            raise LoadError(path, 0, f"there is no function {name}")
    try:
        return UnitOracle(source, driver_of(source))
    except ValueError as error:
        raise LoadError(path, 0, str(error)) from error


# -- mutants and wheats ----------------------------------------------------------------------------------------------


def _mutants(tree: _Tree, unit: str, files: Sequence[UnitFile]) -> tuple[Mutant, ...]:
    file = f"mutants/{unit}/manifest.tsv"
    rows = manifest.read(file, tree.read(file), unit)
    references = {one.path: one.reference for one in files}
    ordered = _hints(tree, unit, rows)
    mutants: list[Mutant] = []
    refused: list[LoadError] = []
    for row in rows:
        try:
            mutants.append(_mutant(tree, unit, row, references, ordered.get(row.mid, ())))
        except LoadError as error:
            refused.append(error)
        if len(refused) == MOST_REFUSED:
            break
    if refused:
        first, *also = refused
        raise LoadError(first.file, first.line, first.reason, also) from first
    return tuple(mutants)


def _hints(tree: _Tree, unit: str, rows: Sequence[manifest.Row]) -> Mapping[str, tuple[str, ...]]:
    """mutants/UNIT/hints.toml; without it, each mutant has the manifest's hint alone."""
    file = f"mutants/{unit}/hints.toml"
    return hints.read(file, tree.read(file), rows) if (tree.root / file).is_file() else {}


def _mutant(
    tree: _Tree, unit: str, row: manifest.Row, references: Mapping[str, bytes], ordered: tuple[str, ...]
) -> Mutant:
    path = f"mutants/{unit}/{row.mid}.patch"
    patch = tree.read(path, f"mutants/{unit}/manifest.tsv", row.at)
    try:
        changed = patches.apply(patch, references)
    except patches.PatchError as error:
        raise LoadError(path, error.line, error.reason) from error
    tree.spend(changed, path)
    _check_variant(path, changed, references, "the mutant")
    return Mutant(
        id=row.mid,
        tier=row.tier,
        operator=row.operator,
        line=row.line,
        required=row.required,
        public=row.public,
        private=row.private,
        category=row.category or row.tier,  # the column may be missing
        files={**references, **changed},
        ordered=ordered,
    )


def _check_variant(path: str, changed: Mapping[str, bytes], references: Mapping[str, bytes], what: str) -> None:
    """A variant must compile and must not be the reference again, comments and layout apart."""
    same = True
    for file, source in changed.items():
        tree = parse(source)
        if isinstance(tree, Unparsed):
            raise LoadError(path, 0, f"{what} is no Python: {file} line {tree.line}: {tree.message}")
        try:
            compile(tree, file, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise LoadError(path, 0, f"{what} does not compile: {error}") from error
        same = same and ast.dump(tree) == ast.dump(tree_of(file, references[file]))
    if same:
        raise LoadError(path, 0, f"{what} equals the reference")


def _wheats(tree: _Tree, unit: str, files: Sequence[UnitFile]) -> tuple[Wheat, ...]:
    """wheats/UNIT/ID.py for a unit of one file, or wheats/UNIT/ID/PATH; no folder means no wheats."""
    folder = f"wheats/{unit}"
    if not (tree.root / folder).is_dir():
        return ()
    references = {one.path: one.reference for one in files}
    grouped: dict[str, dict[str, bytes]] = {}
    for path, data in tree.folder(folder).items():
        head, _, rest = path.partition("/")
        if not path.endswith(".py"):
            continue
        wheat, target = (head, _wheat_target(rest, references)) if rest else (head.removesuffix(".py"), "")
        if not rest and len(files) == 1:
            target = files[0].path
        if not target:
            raise LoadError(f"{folder}/{path}", 0, "does not stand for one of the unit's files")
        if target in grouped.setdefault(wheat, {}):
            raise LoadError(f"{folder}/{path}", 0, f"the wheat {wheat} is there twice")
        grouped[wheat][target] = text_of(f"{folder}/{path}", data).encode()
    for wheat, changed in grouped.items():
        _check_variant(f"{folder}/{wheat}", changed, references, "the wheat")
    return tuple(Wheat(wheat, {**references, **changed}) for wheat, changed in sorted(grouped.items()))


def _quiz(tree: _Tree, unit: str) -> Quiz | None:
    file = f"quiz/{unit}.toml"
    return quiz.load(file, tree.read(file)) if (tree.root / file).is_file() else None


def _wheat_target(path: str, references: Mapping[str, bytes]) -> str:
    """The unit's file a path stands for: the path itself, or any end of it ("mha.py")."""
    matching = [file for file in references if file == path or file.endswith(f"/{path}")]
    return matching[0] if len(matching) == 1 else ""


# -- digests ---------------------------------------------------------------------------------------------------------


def _graded(tree: _Tree, module: bytes, unit: Unit) -> Iterator[tuple[str, bytes]]:
    """Everything the unit's grade depends on, each under a name of its own."""
    yield "module", module
    yield "freedoms", repr(unit.freedoms).encode()
    yield from ((f"reference/{one.path}", one.reference) for one in unit.files)
    yield from ((f"contract/{name}", contract.source.encode()) for name, contract in unit.contracts.items())
    yield from ((f"companion/{name}", data) for name, data in unit.companions.items())
    yield from ((f"laid/{file.path}", file.data) for file in (*unit.test_files, *unit.fixtures))
    for mutant in unit.mutants:
        told = (
            mutant.tier,
            mutant.operator,
            mutant.line,
            mutant.required,
            mutant.public,
            mutant.private,
            mutant.category,
            mutant.hints,
        )
        yield f"mutant/{mutant.id}", repr(told).encode()
        yield from ((f"mutant/{mutant.id}/{path}", data) for path, data in mutant.files.items())
    for wheat in unit.wheats:
        yield from ((f"wheat/{wheat.id}/{path}", data) for path, data in wheat.files.items())
    oracle = f"oracle/{unit.id}"
    if (tree.root / oracle).is_dir():
        yield from ((f"{oracle}/{path}", data) for path, data in tree.folder(oracle).items())
