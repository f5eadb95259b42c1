"""The source of a unit's oracle comes in; what its `drive` needs of it leaves, and nothing that knows right answers.

The driver runs in one process with the student's code, which can read all of it (docs/decisions/0086).
"""

import ast
from collections.abc import Iterator

ENTRY = "drive"
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def driver_of(source: bytes) -> bytes:
    """The definitions that `drive` reaches by name, in their order, without comments and docstring.

    Raises SyntaxError for what is no Python, ValueError if there is no function drive, or if the top level holds
    anything but imports, definitions, assignments to plain names and a docstring.
    """
    statements = [one for statement in ast.parse(source).body for one in _taken_apart(statement)]
    by_name: dict[str, list[ast.stmt]] = {}
    for names, statement in statements:
        for name in names:
            by_name.setdefault(name, []).append(statement)
    if not any(isinstance(statement, ast.FunctionDef) for statement in by_name.get(ENTRY, ())):
        raise ValueError(f"there is no function {ENTRY}(unit, case)")
    reached: set[str] = set()
    waiting = [ENTRY]
    while waiting:
        name = waiting.pop()
        if name in by_name and name not in reached:
            reached.add(name)
            waiting.extend(used for statement in by_name[name] for used in _names_in(statement))
    kept = [statement for names, statement in statements if reached & set(names)]
    return ast.unparse(ast.Module(kept, [])).encode() + b"\n"


def _taken_apart(statement: ast.stmt) -> Iterator[tuple[tuple[str, ...], ast.stmt]]:
    """A top-level statement with the names it binds; an import as one for each name."""
    match statement:
        case ast.Import(names=aliases):
            for alias in aliases:
                yield (alias.asname or alias.name.partition(".")[0],), ast.Import([alias])
        case ast.ImportFrom(module=module, names=aliases, level=level):
            for alias in aliases:
                yield (alias.asname or alias.name,), ast.ImportFrom(module, [alias], level)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield (statement.name,), statement
        case ast.Assign(targets=[*targets]) if all(isinstance(target, ast.Name) for target in targets):
            yield tuple(target.id for target in targets if isinstance(target, ast.Name)), statement
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield (name,), statement
        case ast.Expr(value=ast.Constant(value=str())):
            return
        case _:
            raise ValueError(
                f"line {statement.lineno}: the top level may hold imports, definitions and assignments to names alone"
            )


def _names_in(statement: ast.stmt) -> Iterator[str]:
    return (node.id for node in ast.walk(statement) if isinstance(node, ast.Name))
