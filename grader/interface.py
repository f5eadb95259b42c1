"""Source or stub of a module goes in; what it offers by name, with parameters where they can be seen, comes out."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from grader.source import last_name, statements


@dataclass(frozen=True)
class Parameter:
    """`kind` is "positional" (also by name), "positional_only", "keyword_only", "args" or "kwargs"."""

    name: str
    kind: str
    has_default: bool

    @property
    def shown(self) -> str:
        return {"args": "*", "kwargs": "**"}.get(self.kind, "") + self.name


@dataclass(frozen=True)
class Function:
    """`parameters` without self or cls, or None where they cannot be seen (a name bound by assignment or import)."""

    name: str
    line: int
    parameters: tuple[Parameter, ...] | None


@dataclass(frozen=True)
class Class:
    """`members` are functions, and None for attributes and properties. `bases` are names as written, '' for others."""

    name: str
    line: int
    members: Mapping[str, Function | None]
    bases: tuple[str, ...]
    decorated: bool


@dataclass(frozen=True)
class Interface:
    """What a module binds at top level. `others` are names whose kind cannot be seen."""

    functions: Mapping[str, Function] = field(default_factory=dict)
    classes: Mapping[str, Class] = field(default_factory=dict)
    others: frozenset[str] = frozenset()
    imported: frozenset[str] = frozenset()
    """names bound by import statements (in a stub these are no promise)"""


def read(tree: ast.Module) -> Interface:
    """The interface of a parsed module; a later definition replaces an earlier one."""
    functions: dict[str, Function] = {}
    classes: dict[str, Class] = {}
    others: set[str] = set()
    imported: set[str] = set()
    for node in statements(tree.body):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                functions[node.name] = Function(node.name, node.lineno, _parameters(node.args))
            case ast.ClassDef():
                classes[node.name] = _class(node)
            case ast.Import() | ast.ImportFrom():
                imported.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
            case _:
                others.update(bound(node))
    return Interface(functions, classes, frozenset(others), frozenset(imported))


def names(interface: Interface) -> dict[str, tuple[str, ...] | None]:
    """Every promised name with its parameters as shown ("x", "*args"), None where it is not callable or is a class."""
    found: dict[str, tuple[str, ...] | None] = {name: None for name in sorted(interface.others)}
    for function in interface.functions.values():
        found[function.name] = _shown(function)
    for owner in interface.classes.values():
        found[owner.name] = None
        for name, member in owner.members.items():
            found[f"{owner.name}.{name}"] = _shown(member) if member else None
    return found


def _shown(function: Function) -> tuple[str, ...] | None:
    return None if function.parameters is None else tuple(one.shown for one in function.parameters)


def bound(node: ast.stmt) -> set[str]:
    """Plain names a statement assigns."""
    targets: list[ast.expr] = []
    match node:
        case ast.Assign():
            targets = list(node.targets)
        case ast.AnnAssign() | ast.AugAssign() | ast.For() | ast.AsyncFor():
            targets = [node.target]
        case ast.With() | ast.AsyncWith():
            targets = [item.optional_vars for item in node.items if item.optional_vars]
    found: set[str] = set()
    while targets:
        target = targets.pop()
        if isinstance(target, ast.Name):
            found.add(target.id)
        elif isinstance(target, (ast.Tuple, ast.List)):
            targets.extend(target.elts)
        elif isinstance(target, ast.Starred):
            targets.append(target.value)
    return found


def _class(node: ast.ClassDef) -> Class:
    members: dict[str, Function | None] = {}
    for inner in statements(node.body):
        match inner:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                members[inner.name] = _method(inner)
            case ast.AnnAssign(target=ast.Name(id=name), value=None):
                members.setdefault(name, None)
            case ast.ClassDef():
                members[inner.name] = None
            case ast.Import() | ast.ImportFrom():
                for alias in inner.names:
                    name = alias.asname or alias.name.partition(".")[0]
                    members[name] = Function(name, inner.lineno, None)
            case _:
                members.update({name: Function(name, inner.lineno, None) for name in bound(inner)})
    bases = tuple(base.id if isinstance(base, ast.Name) else "" for base in node.bases)
    return Class(node.name, node.lineno, members, bases, bool(node.decorator_list))


def _method(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Function | None:
    decorators = {last_name(one.func if isinstance(one, ast.Call) else one) for one in node.decorator_list}
    if decorators & {"property", "cached_property", "setter", "deleter"}:
        return None
    parameters = _parameters(node.args)
    if "staticmethod" not in decorators and parameters and parameters[0].kind in ("positional", "positional_only"):
        parameters = parameters[1:]
    return Function(node.name, node.lineno, parameters)


def _parameters(args: ast.arguments) -> tuple[Parameter, ...]:
    positional = [(arg, "positional_only") for arg in args.posonlyargs] + [(arg, "positional") for arg in args.args]
    without_default = len(positional) - len(args.defaults)
    found = [Parameter(arg.arg, kind, index >= without_default) for index, (arg, kind) in enumerate(positional)]
    if args.vararg:
        found.append(Parameter(args.vararg.arg, "args", has_default=True))
    for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        found.append(Parameter(arg.arg, "keyword_only", default is not None))
    if args.kwarg:
        found.append(Parameter(args.kwarg.arg, "kwargs", has_default=True))
    return tuple(found)
