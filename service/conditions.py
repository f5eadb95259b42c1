"""Everything a grade depends on but the submission goes in; one digest, which differs when any of it does, comes out.

The course counts as a whole: the web process, which looks answers up, may have loaded another state of it than the
worker that grades. (docs/decisions/0139)
"""

import platform
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import grader
import sandbox
from grader.digest import digest_of
from grader.plan import STANDARD, Policy
from grader.verdicts import STANDING_LIMITS
from sandbox.records import Environment, Limits

COMPARED_WITH = ("numpy", "torch")  # packages of the worker's own that oracles and comparisons compute with


def digest(
    environments: Sequence[Environment],
    course_digest: str,
    *,
    runtime: str = "",
    policy: Policy = STANDARD,
    limits: Limits = STANDING_LIMITS,
    graded_by: str = "",
) -> str:
    """`environments`: of the runtimes a course uses, in order. `graded_by`: the grader; if empty, what runs here."""
    told = {
        **{
            f"sandbox {number} {name}": value
            for number, environment in enumerate(environments)
            for name, value in asdict(environment).items()
        },
        **{f"policy {name}": value for name, value in asdict(policy).items()},
        **{f"limit {name}": value for name, value in asdict(limits).items()},
        "course": course_digest,
        "runtime": runtime,
        "grader": graded_by or this_grader(),
    }
    return digest_of((name, repr(value).encode()) for name, value in told.items())


def this_grader() -> str:
    """The grader's version and source, and what it computes with: a checkout can change without a new version."""
    folders = [Path(package.__path__[0]) for package in (grader, sandbox)]
    sources = [
        (f"{folder.name}/{path.relative_to(folder)}", path.read_bytes())
        for folder in folders
        for path in folder.rglob("*.py")
    ]
    packages = [f"{name} {_version(name)}" for name in ("tinyllm-autograder", *COMPARED_WITH)]
    return " ".join([*packages, platform.python_version(), digest_of(sources)])


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "-"
