"""A unit and a submission go in; where the submission breaks the contract, with file and line, comes out.

Everything is read from syntax trees; nothing of the student's runs. Three rules: the unit's files define what the .pyi
promises, they use no forbidden name, and graded tests import from tinyllm only what has a contract (blackbox.py).
What may differ from the .pyi all the same is decision 0044.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from grader import deps, wording
from grader.blackbox import IMPORTERS, uncontracted
from grader.interface import Class, Function, Interface, Parameter, read
from grader.scopes import walk
from grader.source import Unparsed, last_name, read_only_tree
from grader.submission import Submission
from grader.unit import Contract, Unit


@dataclass(frozen=True)
class Problem:
    """A breach of the contract. `file` is the unit file's path, or "tests/" and the test file's; `code` is stable."""

    code: str
    file: str
    line: int
    message: str


def check(unit: Unit, submission: Submission) -> tuple[Problem, ...]:
    """Every problem, by file in the unit's order, then by line. A file with a syntax error has that problem alone.

    Test files that cannot be parsed are passed over: pytest reports them when it collects them.
    """
    found: list[Problem] = []
    others = [file for file in deps.sent_files(unit, submission) if file.module in unit.contracts]
    for file in (*unit.files, *others):
        tree = read_only_tree(submission.files[file.path])
        if isinstance(tree, Unparsed):
            found.append(Problem(tree.code, file.path, tree.line, tree.message))
            continue
        problems = [*_missing(unit.contracts[file.module], tree, file.path), *_forbidden(unit, tree, file.path)]
        found.extend(sorted(problems, key=lambda problem: problem.line))
    for test in submission.tests:
        if test.path.endswith(".py") and not isinstance(tests := read_only_tree(test.data), Unparsed):
            for use in uncontracted(tests, unit.contracts):
                found.append(Problem(use.code, f"tests/{test.path}", use.line, use.message))
    return tuple(found)


# -- what the .pyi promises ------------------------------------------------------------------------------------------


def _missing(contract: Contract, tree: ast.Module, path: str) -> Iterator[Problem]:
    promised = read(ast.parse(contract.source))
    actual = read(tree)
    unseen = actual.others | actual.imported
    for function in promised.functions.values():
        if function.name in actual.functions:
            yield from _signature(function, actual.functions[function.name], function.name, path)
        elif function.name not in unseen and function.name not in actual.classes:
            yield Problem("missing_function", path, 1, wording.missing_function(function.name))
    for owner in promised.classes.values():
        if owner.name in actual.classes:
            yield from _members(owner, actual.classes[owner.name], actual, path)
        elif owner.name in actual.functions:
            yield Problem("not_a_class", path, actual.functions[owner.name].line, wording.not_a_class(owner.name))
        elif owner.name not in unseen:
            yield Problem("missing_class", path, 1, wording.missing_class(owner.name))


def _members(promised: Class, actual: Class, module: Interface, path: str) -> Iterator[Problem]:
    """Methods only: attributes are set in __init__, by setattr or by a base class, which syntax does not show."""
    if actual.decorated:
        return  # a class decorator may add or replace any method
    members = _inherited(actual, module)
    for name, method in promised.members.items():
        if method is None:
            continue
        full = f"{promised.name}.{name}"
        if name not in members:
            signature = ", ".join(["self", *(_written(one) for one in method.parameters or ())])
            yield Problem("missing_method", path, actual.line, wording.missing_method(actual.name, name, signature))
        elif (found := members[name]) is not None:
            yield from _signature(method, found, full, path)


def _written(parameter: Parameter) -> str:
    return parameter.shown + ("=..." if parameter.has_default else "")


def _inherited(start: Class, module: Interface) -> dict[str, Function | None]:
    """A class's members with those of its bases in the same file, nearest first."""
    family = [start]
    for member in family:
        for base in member.bases:
            if base in module.classes and module.classes[base] not in family:
                family.append(module.classes[base])
    found: dict[str, Function | None] = {}
    for member in family:
        for name, function in member.members.items():
            found.setdefault(name, function)
    return found


def _signature(promised: Function, actual: Function, name: str, path: str) -> Iterator[Problem]:
    if promised.parameters is None or actual.parameters is None:
        return
    for code, message in _differences(promised.parameters, actual.parameters, name):
        yield Problem(code, path, actual.line, message)


def _differences(
    promised: tuple[Parameter, ...], actual: tuple[Parameter, ...], function: str
) -> Iterator[tuple[str, str]]:
    """Why some call the contract allows would fail: parameters must be found by position and by name."""
    kinds = {one.kind for one in actual}
    by_name = {one.name: one for one in actual if one.kind not in ("args", "kwargs")}
    positional = [one for one in actual if one.kind in ("positional", "positional_only")]
    wanted = {one.name for one in promised}
    excused: set[str] = set()
    for position, one in enumerate(promised):
        if one.kind in ("args", "kwargs"):
            if one.kind not in kinds:
                yield "parameter_missing", wording.parameter_variable(function, one.shown)
            continue
        mine = by_name.get(one.name)
        if one.kind == "positional" and (mine is None or mine.kind != "keyword_only") and position < len(positional):
            there = positional[position]
            if there.name == one.name:
                if there.kind == "positional_only":
                    yield "parameter_kind", wording.parameter_positional_only(function, one.name)
            elif mine is not None:
                yield "parameter_order", wording.parameter_order(function, one.name, there.name, position + 1)
            elif there.name not in wanted:
                excused.add(there.name)
                yield "parameter_renamed", wording.parameter_renamed(function, one.name, there.name, position + 1)
                continue
            else:
                yield "parameter_missing", wording.parameter_missing(function, one.name, position + 1)
        elif mine is None:
            # *args and **kwargs together take any call; one of them alone takes only half of the calls
            if not ("kwargs" in kinds and ("args" in kinds or one.kind == "keyword_only")):
                yield "parameter_missing", wording.parameter_missing(function, one.name, position + 1)
        elif mine.kind == "keyword_only" and one.kind == "positional":
            yield "parameter_kind", wording.parameter_keyword_only(function, one.name)
        if mine is not None and one.has_default and not mine.has_default:
            yield "parameter_default", wording.parameter_default(function, one.name)
    for extra in by_name.values():
        if extra.name not in wanted and extra.name not in excused and not extra.has_default:
            yield "parameter_extra", wording.parameter_extra(function, extra.name)


# -- forbidden names -------------------------------------------------------------------------------------------------


def _forbidden(unit: Unit, tree: ast.Module, path: str) -> Iterator[Problem]:
    """One problem for each forbidden name and line where it is imported, looked up or named to an importer."""
    nodes = list(walk(tree))
    own = _own_names(nodes)
    seen: set[tuple[int, str]] = set()
    for node in nodes:
        for name in _used(node, own):
            line = getattr(node, "lineno", 1)
            for forbidden in unit.forbidden:
                if _covers(forbidden, name) and (line, forbidden) not in seen:
                    seen.add((line, forbidden))
                    yield Problem("forbidden_name", path, line, wording.forbidden_name(forbidden))


def _covers(forbidden: str, used: str) -> bool:
    """Whether a forbidden name, itself dotted or not, stands in a dotted name as a run of whole components."""
    return f".{forbidden}." in f".{used}."


def _used(node: ast.AST, own: set[str]) -> list[str]:
    match node:
        case ast.Import():
            return [alias.name for alias in node.names]
        case ast.ImportFrom():
            return [f"{node.module or ''}.{alias.name}".lstrip(".") for alias in node.names]
        case ast.Attribute():
            return [_dotted(node)]
        case ast.Name(ctx=ast.Load()) if node.id not in own:
            return [node.id]
        case ast.Call():
            return _named_by_text(node)
    return []


def _dotted(node: ast.Attribute) -> str:
    """The dotted name as written; attributes of calls count from the attribute on, those of self not at all."""
    parts = [node.attr]
    value = node.value
    while isinstance(value, ast.Attribute) and len(parts) < 8:
        parts.append(value.attr)
        value = value.value
    if isinstance(value, ast.Name):
        if value.id in ("self", "cls"):
            return ""  # the student's own attribute, whatever its name
        parts.append(value.id)
    return ".".join(reversed(parts))


NAMES_BY_TEXT = (*IMPORTERS, "find_spec", "getattr")


def _named_by_text(call: ast.Call) -> list[str]:
    """Names given as text to an importer or to getattr."""
    texts = [arg.value for arg in call.args[:2] if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    return texts if last_name(call.func) in NAMES_BY_TEXT else []


def _own_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Names the file itself binds by assignment, def, class or parameter: those are not a library's."""
    own: set[str] = set()
    for node in nodes:
        match node:
            case ast.Name(ctx=ast.Store()):
                own.add(node.id)
            case ast.arg():
                own.add(node.arg)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                own.add(node.name)
    return own
