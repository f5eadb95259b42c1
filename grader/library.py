"""A module's name and a way to read the reference library go in; where its source lies, and the sources that a unit's
code runs beside, come out.

Lines that only say where a solution begins or ends are no part of a source: patches are made against the rest.
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from grader.source import imported

PACKAGE = "/__init__.py"
MARKED = re.compile(r"^[ \t]*# SOLUTION-(?:BEGIN\b.*|END[ \t]*)$\n?", re.MULTILINE)


def without_marks(source: str) -> str:
    """The source without the lines that are only `# SOLUTION-BEGIN …` or `# SOLUTION-END`."""
    return MARKED.sub("", source)


def module_of(path: str) -> str:
    """ "tinyllm.xfmr.mha" for "python/tinyllm/xfmr/mha.py" and "tinyllm/xfmr/mha.pyi"; a package's is its __init__."""
    plain = path.removeprefix("python/").removesuffix(".pyi").removesuffix(".py")
    return plain.removesuffix("/__init__").replace("/", ".")


def paths_of(module: str) -> tuple[str, str]:
    """Where a module's source may lie: a file of its name, or that of a package."""
    path = f"python/{module.replace('.', '/')}"
    return f"{path}.py", path + PACKAGE


def top(module: str) -> str:
    return module.partition(".")[0]


def packages_above(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


def companions(
    own: Sequence[str],
    contracted: Sequence[str],
    path_of: Callable[[str], str],
    read: Callable[[str], tuple[bytes, ast.Module]],
) -> dict[str, bytes]:
    """Sources of modules with a contract and of what they import, by module, those a module needs before itself.

    `path_of` is the path of a module's source, or "" if it has none; `read` reads one. Left out are the unit's own
    modules and every module that imports one of them, at whatever distance, and packages that nothing is left in.
    """
    sources: dict[str, bytes] = {}
    imports: dict[str, tuple[str, ...]] = {}
    packages: set[str] = set()
    waiting = [*sorted(contracted), *own]
    while waiting:
        module = waiting.pop()
        if module in sources:
            continue
        path = path_of(module) or paths_of(module)[0]
        sources[module], tree = read(path)
        if path.endswith(PACKAGE):
            packages.add(module)
        found = imported(module, tree, is_package=module in packages)
        imports[module] = tuple(name for name in found if top(name) == top(module) and name != module and path_of(name))
        waiting += [*imports[module], *filter(path_of, packages_above(module))]
    dependent = set(own)
    while more := {module for module in imports if module not in dependent and dependent & set(imports[module])}:
        dependent |= more
    kept = [module for module in _ordered(imports) if module not in dependent]
    full = {package for module in kept if module not in packages for package in packages_above(module)}
    return {module: sources[module] for module in kept if module not in packages or module in full}


def _ordered(imports: Mapping[str, Sequence[str]]) -> list[str]:
    """Modules, each after those it imports; iterative, and indifferent to cycles."""
    done: dict[str, None] = {}
    for start in sorted(imports):
        stack: list[tuple[str, Iterator[str]]] = [(start, iter(imports[start]))]
        open_modules = {start}
        while stack:
            module, rest = stack[-1]
            following = next((name for name in rest if name not in done and name not in open_modules), None)
            if following is None:
                done[module] = None
                stack.pop()
            else:
                open_modules.add(following)
                stack.append((following, iter(imports[following])))
    return list(done)
