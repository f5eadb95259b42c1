"""A syntax tree arrives; its functions, their bodies, and which names mean the same variable leave."""

import ast
import re
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

Function = ast.FunctionDef | ast.AsyncFunctionDef
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
SEES_LOCALS = frozenset({"locals", "vars", "dir", "eval", "exec", "globals", "_getframe", "currentframe", "inspect"})


LEAVES = frozenset({"ctx", "op", "ops", "id", "attr", "arg", "name", "kind", "conversion", "module", "level", "n"})
"""fields that hold no node, or one that says nothing without its parent"""
INNER_FIELDS = {
    kind: () if kind is ast.Constant else tuple(name for name in kind._fields if name not in LEAVES)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}


def walk(tree: ast.AST) -> Iterator[ast.AST]:
    """As ast.walk, in the same order, without operators and contexts, which takes half the time."""
    todo = deque([tree])
    while todo:
        node = todo.popleft()
        todo.extend(children(node))
        yield node


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes directly below, in source order."""
    found: list[ast.AST] = []
    for name in INNER_FIELDS[type(node)]:
        value = getattr(node, name, None)
        if isinstance(value, list):
            found += [each for each in value if isinstance(each, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def functions(tree: ast.AST) -> list[Function]:
    """Every function, nested ones too."""
    return [node for body in _statement_lists(tree) for node in body if isinstance(node, Function)]


def outermost(tree: ast.AST) -> list[Function]:
    """Functions that lie in no other function."""
    found = functions(tree)
    nested = {id(inner) for function in found for inner in functions(function)}
    return [function for function in found if id(function) not in nested]


def bodies(function: Function) -> Iterator[list[ast.stmt]]:
    """The lists of statements that run in the function's own frame: of itself and of its ifs, loops and tries."""
    return _statement_lists(function, frame_only=True)


def _statement_lists(tree: ast.AST, *, frame_only: bool = False) -> Iterator[list[ast.stmt]]:
    """Read while they change: a list is entered after it was handed out."""
    pending = [tree]
    while pending:
        node = pending.pop()
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            body = getattr(node, name, None)
            if not isinstance(body, list) or not body:
                continue
            if name not in ("handlers", "cases"):
                yield body
            pending += [each for each in body if not (frame_only and isinstance(each, Function | ast.ClassDef))]


def function_bodies(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for function in functions(tree):
        yield from bodies(function)


def arguments(args: ast.arguments) -> list[ast.arg]:
    every = [*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs, args.kwarg]
    return [argument for argument in every if argument is not None]


def steady_parameters(function: Function) -> frozenset[str]:
    """Parameters that the function never binds again, so that reading one is always the same."""
    names = {argument.arg for argument in arguments(function.args)}
    again = {node.id for node in walk(function) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    return frozenset(names - again - _bound_by_text(function))


def own_nodes(function: Function | ast.Lambda) -> Iterator[ast.AST]:
    """The nodes that run in the function's own frame, its comprehensions included; of functions in it the definitions
    alone."""
    todo: list[ast.AST] = [function.body] if isinstance(function, ast.Lambda) else list(function.body)
    while todo:
        node = todo.pop()
        yield node
        todo += _outside(node) if isinstance(node, Function | ast.Lambda) else children(node)


def bound_names(function: Function | ast.Lambda) -> set[str]:
    """The names that a function binds in its own frame, its parameters included; those that it declares are written
    with how: "global x"."""
    found = {argument.arg for argument in arguments(function.args)}
    for node in own_nodes(function):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                found |= {f"{type(node).__name__.lower()} {name}" for name in names}
            case _:
                found |= _bound_here(node)
    return found


def _bound_here(node: ast.AST) -> set[str]:
    """The name that a node binds by its text, as a definition, an import, a handler or a pattern does."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ExceptHandler(name=str(name)):
            return {name}
        case ast.alias(name=name, asname=asname):
            return {(asname or name).partition(".")[0]}
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            return {name}
    return set()


def is_opaque(function: Function) -> bool:
    """Whether something in the function could see its local names, or bind names this module does not follow."""
    for node in walk(function):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in SEES_LOCALS:
                return True
            case ast.ClassDef():
                return True
    return False


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def words(text: str) -> list[str]:
    """The identifiers in a text."""
    return re.findall(r"[^\W\d]\w*", text)


def mentions(tree: ast.AST) -> Counter[str]:
    """How often each identifier stands in the tree, in whatever role, words in its texts included."""
    found: Counter[str] = Counter()
    for node in walk(tree):
        for _, value in ast.iter_fields(node):
            for text in value if isinstance(value, list) else [value]:
                if isinstance(text, str):
                    found.update(words(text))
    return found


def binds(tree: ast.AST, name: str) -> bool:
    """Whether the tree may give the name a meaning of its own."""
    for node in walk(tree):
        match node:
            case ast.Name(id=found, ctx=ast.Store() | ast.Del()) | ast.arg(arg=found) if found == name:
                return True
            case ast.FunctionDef(name=found) | ast.AsyncFunctionDef(name=found) | ast.ClassDef(name=found):
                if found == name:
                    return True
            case ast.alias(name=found, asname=asname) if name in (found, asname) or found == "*":
                return True
            case ast.ExceptHandler(name=found) | ast.MatchAs(name=found) | ast.MatchStar(name=found) if found == name:
                return True
    return False


@dataclass
class _Scope:
    """One frame of a function: the names it binds, its parameters, where names occur, and the frame around it."""

    outer: "_Scope | None"
    parameters: set[str] = field(default_factory=set)
    stored: set[str] = field(default_factory=set)
    occurrences: list[ast.Name] = field(default_factory=list)

    def home(self, name: str) -> "_Scope | None":
        """The frame whose variable a name means here; None for one outside of the function."""
        if name in self.stored or name in self.parameters:
            return self
        return None if self.outer is None else self.outer.home(name)


def local_bindings(function: Function) -> list[list[ast.Name]]:
    """For each local variable of the function and of what is nested in it, all its occurrences, in source order.

    Parameters are left out, and names bound by other means than assignment, loops and comprehensions.
    """
    scopes: list[_Scope] = []
    _frame(function, None, scopes)
    excluded = _bound_by_text(function) | {name for scope in scopes for name in scope.parameters}
    found: dict[tuple[int, str], list[ast.Name]] = {}
    for scope in scopes:
        for name in scope.occurrences:
            home = scope.home(name.id)
            if home is not None and name.id not in excluded and not name.id.startswith("__"):
                found.setdefault((id(home), name.id), []).append(name)
    return list(found.values())


def _bound_by_text(function: Function) -> set[str]:
    """Names bound by something else than an ast.Name in a frame's own assignments."""
    found: set[str] = set()
    for node in walk(function):
        match node:
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                found.update(names)
            case ast.NamedExpr(target=ast.Name(id=name)):  # inside a comprehension it binds outside of it
                found.add(name)
            case _:
                found |= _bound_here(node)
    return found


def _frame(node: ast.AST, outer: _Scope | None, scopes: list[_Scope]) -> None:
    """Note a frame and those in it."""
    scope = _Scope(outer)
    scopes.append(scope)
    if isinstance(node, Function | ast.Lambda):
        scope.parameters = {argument.arg for argument in arguments(node.args)}
    for child in _inside(node):
        _note(child, scope, scopes)


def _note(node: ast.AST, scope: _Scope, scopes: list[_Scope]) -> None:
    if isinstance(node, Function | ast.Lambda | Comprehension):
        for child in _outside(node):
            _note(child, scope, scopes)
        _frame(node, scope, scopes)
        return
    if isinstance(node, ast.Name):
        scope.occurrences.append(node)
        if not isinstance(node.ctx, ast.Load):
            scope.stored.add(node.id)
    for child in children(node):
        _note(child, scope, scopes)


def _outside(node: ast.AST) -> list[ast.AST]:
    """What a nested function or comprehension evaluates in the frame around it."""
    if isinstance(node, Comprehension):
        return [node.generators[0].iter]
    if not isinstance(node, Function | ast.Lambda):
        return []
    parts: list[ast.AST] = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
    parts += [argument.annotation for argument in arguments(node.args) if argument.annotation is not None]
    if isinstance(node, Function):
        parts += [*node.decorator_list, *([] if node.returns is None else [node.returns])]
    return parts


def _inside(node: ast.AST) -> list[ast.AST]:
    match node:
        case ast.Lambda(body=body):
            return [body]
        case ast.DictComp(key=key, value=value, generators=generators):
            return [key, value, *_generators(generators)]
        case ast.ListComp(elt=elt) | ast.SetComp(elt=elt) | ast.GeneratorExp(elt=elt):
            return [elt, *_generators(node.generators)]
        case ast.FunctionDef(body=statements) | ast.AsyncFunctionDef(body=statements):
            return list(statements)
    return []


def _generators(generators: list[ast.comprehension]) -> list[ast.AST]:
    found: list[ast.AST] = []
    for i, generator in enumerate(generators):
        found += [generator.target, *([generator.iter] if i else []), *generator.ifs]
    return found
