"""The text of a contract goes in; the file a student begins with comes out: the same names, and nothing behind them."""

import ast

FUTURE = "from __future__ import annotations"


def stub(contract: str, title: str) -> str:
    """Python that has every name of the .pyi with its signature and docstring, and raises NotImplementedError."""
    tree = ast.parse(contract)
    kept: list[ast.stmt] = []
    for node in tree.body:
        if _docstring(node) or (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            continue
        kept.append(_filled(node))
    text = FUTURE
    for node in kept:
        defines = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        text += ("\n\n\n" if defines else "\n") + ast.unparse(ast.fix_missing_locations(node))
    return f'"""{title}."""\n\n{text}\n'


def _filled(node: ast.stmt) -> ast.stmt:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        said = [first for first in node.body[:1] if _docstring(first)]
        node.body = [*said, *ast.parse(f'raise NotImplementedError("{node.name}")').body]
    elif isinstance(node, ast.ClassDef):
        node.body = [_filled(inner) for inner in node.body if not _is_ellipsis(inner)] or [ast.Pass()]
    return node


def _docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_ellipsis(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node.value.value is ...
