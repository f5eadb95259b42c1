"""A test file's syntax tree and the contracts go in; each use of something without a contract comes out: of tinyllm, or
of a package that the unit's modules belong to.

Only uses that are certain count: an alias that the file also binds otherwise is not followed.
"""

import ast
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from grader import wording
from grader.scopes import walk
from grader.source import last_name
from grader.unit import Contract

LIBRARY = "tinyllm"
IMPORTERS = ("import_module", "__import__", "importorskip")


@dataclass(frozen=True)
class Use:
    """`code` is blackbox_module or blackbox_name."""

    code: str
    line: int
    message: str


def uncontracted(tree: ast.Module, contracts: Mapping[str, Contract]) -> tuple[Use, ...]:
    """Uses of modules and names without a contract, by line, each once a line."""
    nodes = list(walk(tree))
    uses = [*_imports(nodes, contracts), *_attributes(nodes, contracts)]
    return tuple(sorted(set(uses), key=lambda use: (use.line, use.message)))


def _is_package(dotted: str, contracts: Mapping[str, Contract]) -> bool:
    return any(module.startswith(f"{dotted}.") for module in contracts)


def _ours(dotted: str, contracts: Mapping[str, Contract]) -> bool:
    top = dotted.partition(".")[0]
    return top == LIBRARY or any(module.partition(".")[0] == top for module in contracts)


def _imports(nodes: Iterable[ast.AST], contracts: Mapping[str, Contract]) -> Iterator[Use]:
    for node in nodes:
        match node:
            case ast.Import():
                for alias in node.names:
                    yield from _module(alias.name, node.lineno, contracts)
            case ast.ImportFrom(level=0, module=str(module)) if _ours(module, contracts):
                yield from _from(module, [alias.name for alias in node.names], node.lineno, contracts)
            case ast.Call(args=[ast.Constant(value=str(text)), *_]) if last_name(node.func) in IMPORTERS:
                yield from _module(text, node.lineno, contracts)


def _module(dotted: str, line: int, contracts: Mapping[str, Contract]) -> Iterator[Use]:
    if _ours(dotted, contracts) and dotted not in contracts and not _is_package(dotted, contracts):
        yield Use("blackbox_module", line, wording.blackbox_module(dotted))


def _from(module: str, names: list[str], line: int, contracts: Mapping[str, Contract]) -> Iterator[Use]:
    if module in contracts:
        for name in names:
            dotted = f"{module}.{name}"
            known = name in contracts[module].names or dotted in contracts or _is_package(dotted, contracts)
            if name != "*" and not known:
                yield Use("blackbox_name", line, wording.blackbox_name(module, name))
    elif _is_package(module, contracts):
        for name in names:
            if name != "*":  # a package has no __init__.py: a star brings nothing
                yield from _module(f"{module}.{name}", line, contracts)
    else:
        yield Use("blackbox_module", line, wording.blackbox_module(module))


# -- names looked up on an imported module ---------------------------------------------------------------------------


def _attributes(nodes: Collection[ast.AST], contracts: Mapping[str, Contract]) -> Iterator[Use]:
    aliases = _aliases(nodes, contracts)
    if not aliases:
        return
    for node in nodes:
        if isinstance(node, ast.Attribute):
            chain = _chain(node)
            if chain and chain[0] in aliases:
                yield from _look_up(aliases[chain[0]], chain[1:], node.lineno, contracts)


def _look_up(dotted: str, rest: list[str], line: int, contracts: Mapping[str, Contract]) -> Iterator[Use]:
    for name in rest:
        if name.startswith("__") and name.endswith("__"):
            return
        if f"{dotted}.{name}" in contracts or _is_package(f"{dotted}.{name}", contracts):
            dotted = f"{dotted}.{name}"
            continue
        if dotted in contracts:
            if name not in contracts[dotted].names:
                yield Use("blackbox_name", line, wording.blackbox_name(dotted, name))
        else:
            yield Use("blackbox_module", line, wording.blackbox_module(f"{dotted}.{name}"))
        return


def _chain(node: ast.Attribute) -> list[str]:
    parts = [node.attr]
    value = node.value
    while isinstance(value, ast.Attribute) and len(parts) < 16:
        parts.append(value.attr)
        value = value.value
    return [value.id, *reversed(parts)] if isinstance(value, ast.Name) else []


def _aliases(nodes: Iterable[ast.AST], contracts: Mapping[str, Contract]) -> dict[str, str]:
    """Names bound to such a module or package by one import and by nothing else in the file."""
    meant: dict[str, set[str]] = {}
    bindings: Counter[str] = Counter()
    for node in nodes:
        match node:
            case ast.Import():
                for alias in node.names:
                    name = alias.asname or alias.name.partition(".")[0]
                    target = alias.name if alias.asname else name
                    meant.setdefault(name, set()).add(target)
            case ast.ImportFrom():
                for alias in node.names:
                    target = f"{node.module or ''}.{alias.name}" if node.level == 0 else ""
                    meant.setdefault(alias.asname or alias.name, set()).add(target)
            case ast.Name(ctx=ast.Store() | ast.Del()):
                bindings[node.id] += 1
            case ast.arg():
                bindings[node.arg] += 1
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                bindings[node.name] += 1
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                bindings[name] += 1
    found: dict[str, str] = {}
    for name, targets in meant.items():
        if len(targets) == 1 and not bindings[name]:
            target = targets.copy().pop()
            if _ours(target, contracts) and (target in contracts or _is_package(target, contracts)):
                found[name] = target
    return found
