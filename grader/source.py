"""Python source from outside: bytes go in, normalised UTF-8 with LF line ends or a syntax tree comes out.

`parse` never raises and never overflows the stack, whatever the source (decision 0045).
"""

import ast
import re
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from grader import wording
from grader.errors import Rejected

BOM = b"\xef\xbb\xbf"
_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BLANK = re.compile(rb"^[ \t\f]*(?:#.*)?$")
_UTF8_NAMES = frozenset({"utf-8", "utf8", "utf-8-sig", "u8", "utf", "cp65001", "ascii", "us-ascii"})


@dataclass(frozen=True)
class Normalised:
    """`data` as Python reads it, and whether a byte order mark or foreign line ends were replaced."""

    data: bytes
    had_bom: bool
    had_line_ends: bool


def normalise(data: bytes, path: str) -> Normalised:
    """UTF-8 source with LF line ends. Raises Rejected (nul_byte, not_utf8, coding_cookie) naming line and byte."""
    had_bom = data.startswith(BOM)
    text = data.removeprefix(BOM)
    if b"\x00" in text:
        raise Rejected("nul_byte", wording.NUL_BYTE, wording.shown(path))
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        line = len(re.findall(rb"\r\n|\r|\n", text[: error.start])) + 1
        offset = error.start + (len(BOM) if had_bom else 0)
        message = wording.not_utf8(line, offset, text[error.start])
        raise Rejected("not_utf8", message, wording.shown(path)) from error
    plain = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    _check_cookie(plain, path)
    return Normalised(plain, had_bom, had_line_ends=plain != text)


def _check_cookie(data: bytes, path: str) -> None:
    """PEP 263: a cookie in line 1, or in line 2 after a blank or comment line, names the encoding Python would use."""
    for number, line in enumerate(data.split(b"\n", 2)[:2], start=1):
        if match := _COOKIE.match(line):
            name = match.group(1).decode("ascii", "replace")
            if name.lower().replace("_", "-") not in _UTF8_NAMES:
                raise Rejected("coding_cookie", wording.coding_cookie(number, name), wording.shown(path))
            return
        if not _BLANK.match(line):
            return


@dataclass(frozen=True)
class Unparsed:
    """Why there is no syntax tree. `code` is syntax_error or too_complex."""

    code: str
    line: int
    message: str


# Python's own tokeniser stops at 200 open brackets, but less is enough for people.
MAX_BRACKETS = 100
# A syntax tree takes some hundred times the memory of its source.
MAX_SOURCE_BYTES = 512 * 2**10
# CPython 3.11 takes time quadratic in the length of an f-string: 9 s for one of 240 kB.
MAX_FSTRING_BYTES = 10_000
_PARSING = threading.Lock()  # warnings filters are shared by all threads


def parse(source: bytes) -> ast.Module | Unparsed:
    """The syntax tree of normalised source. Bounded in stack, memory and time."""
    if len(source) > MAX_SOURCE_BYTES:
        return Unparsed("too_complex", 1, wording.TOO_COMPLEX)
    if line := _too_much(source):
        return Unparsed("too_complex", line, wording.TOO_COMPLEX)
    try:
        with _PARSING, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape is the student's matter, whatever -W says
            return ast.parse(source)
    except SyntaxError as error:
        return Unparsed("syntax_error", error.lineno or 1, wording.syntax_error(error.msg or "invalid syntax"))
    except (RecursionError, MemoryError):
        return Unparsed("too_complex", 1, wording.TOO_COMPLEX)
    except ValueError as error:  # NUL bytes, undecodable text
        return Unparsed("syntax_error", 1, wording.syntax_error(str(error)))


MAX_SHARED_BYTES = 32 * 2**10


def read_only_tree(source: bytes) -> ast.Module | Unparsed:
    """As `parse`, for those who do not change the tree: several ask for that of one file, while it is graded."""
    return parse(source) if len(source) > MAX_SHARED_BYTES else _shared(source)


@lru_cache(maxsize=32)
def _shared(source: bytes) -> ast.Module | Unparsed:
    return parse(source)


# Strings and comments are matched whole, so that brackets in them do not count.
_TOKENS = re.compile(
    rb"""(?P<string>(?P<prefix>\b[rRbBuUfF]{1,2})?
        (?: \"\"\"(?:[^"\\]|\\.|"(?!""))*+(?:\"\"\"|\Z) | '''(?:[^'\\]|\\.|'(?!''))*+(?:'''|\Z)
          | "(?:[^"\\\n]|\\.)*+"? | '(?:[^'\\\n]|\\.)*+'? ))
      | \#[^\n]* | (?P<open>[(\[{]) | (?P<close>[)\]}])""",
    re.DOTALL | re.VERBOSE,
)


def _too_much(source: bytes) -> int:
    """The line where brackets nest more than MAX_BRACKETS deep or a too long f-string begins, or 0."""
    depth = 0
    for match in _TOKENS.finditer(source):
        if match["open"]:
            depth += 1
        elif match["close"]:
            depth = max(0, depth - 1)
        long = match.end() - match.start() > MAX_FSTRING_BYTES
        if depth > MAX_BRACKETS or (long and b"f" in (match["prefix"] or b"").lower()):
            return source.count(b"\n", 0, match.start()) + 1
    return 0


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module or class body, with those inside if, try, with and loops, not those of functions."""
    waiting = list(reversed(body))
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        inner: list[ast.stmt] = []
        for field in ("body", "orelse", "finalbody"):
            inner.extend(getattr(node, field, []))
        for handler in getattr(node, "handlers", []):
            inner.extend(handler.body)
        waiting.extend(reversed(inner))


def imported(module: str, tree: ast.Module, *, is_package: bool = False) -> Iterator[str]:
    """What a module may import, anywhere in its source and in order, by dotted name: modules, and whatever is taken
    from them, which may be modules too."""
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            start = ".".join([*base, node.module] if node.module else base)
            yield start
            yield from (f"{start}.{alias.name}" for alias in node.names)


def last_name(node: ast.expr) -> str:
    """What a name as written ends in: "c" for c and for a.b.c, '' for anything that is no name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
