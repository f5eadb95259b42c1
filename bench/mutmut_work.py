"""Run by the Python that has mutmut, in a folder where `mutmut run` has been: its mutants or their results, as JSON.

`sources MODULE_PATH NAME...` prints {name: source of the module with that one mutant}; `results MODULE_PATH`
{name: exit code, None for one that was not run}.
"""

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import libcst as cst  # type: ignore[import-not-found]
from mutmut.mutation import diff_apply  # type: ignore[import-not-found]

read_original, read_mutants = cache(diff_apply.read_orig_module), cache(diff_apply.read_mutants_module)


def main(what: str, path: str, *names: str) -> None:
    if what == "results":
        print(json.dumps(json.loads(Path(f"mutants/{path}.meta").read_text())["exit_code_by_key"]))
    else:
        print(json.dumps({name: source_of(name, path) for name in names}))


def source_of(name: str, path: str) -> Any:
    """As `mutmut apply` would write it."""
    module = read_original(path)
    function, _ = diff_apply.orig_function_and_class_names_from_key(name)
    function = function.rpartition(".")[-1]
    original = diff_apply.find_top_level_function_or_method(module, function)
    indexed = diff_apply.read_functions_from_index(name, path)
    mutant = indexed[1] if indexed is not None else diff_apply.read_mutant_function(read_mutants(path), name)
    return module.deep_replace(original, mutant.with_changes(name=cst.Name(function))).code


main(*sys.argv[1:])
