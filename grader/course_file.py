"""A file of the course goes in as bytes; its text or its syntax tree comes out, or LoadError with the line at fault."""

import ast

from grader.errors import LoadError
from grader.source import Unparsed, parse


def text_of(file: str, data: bytes) -> str:
    """UTF-8 with LF line ends, without a byte order mark. `file` names it in errors."""
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise LoadError(file, data.count(b"\n", 0, error.start) + 1, "is not UTF-8") from error


def tree_of(file: str, source: bytes) -> ast.Module:
    """The syntax tree of Python source. `file` names it in errors."""
    text_of(file, source)  # said of the file, not of its syntax
    tree = parse(source)
    if isinstance(tree, Unparsed):
        raise LoadError(file, tree.line, tree.message)
    return tree
