"""A unit arrives; what every rendering of every variant does, held against the variant as it is written, leaves.

A rendering is proved if the course tests end alike on it, test by test, and if the unit's oracle, where there is one,
gets the same answers from it to the last bit. Planning and judging are pure; `prove` makes the runs.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType

from grader import plan, verdicts
from grader.candidates import code_of
from grader.digest import digest_of
from grader.plan import SUITE_ROOT, Variant
from grader.renderings import SALTS, rendered
from grader.report import Outcome
from grader.unit import Unit
from sandbox.records import File, ItemOutcome, Limits, Module, Run, RunResult, Session, Suite

LIMITS = Limits(cpu_seconds=60, wall_seconds=240)
DRIVE_TEST = "test_answers_of_the_oracle"
# Collected behind every test_….py: what it leaves behind must not meet the course tests.
DRIVE_FILE = "zz_oracle_test.py"
DRIVE_SEEDS = (0, 1)
DRIVE = f"""\
import hashlib
import importlib

import oracle_live


def {DRIVE_TEST}():
    unit = importlib.import_module("UNIT_MODULE")
    digest = hashlib.sha256()
    for seed in {DRIVE_SEEDS}:
        for case in oracle_live.cases(seed):
            for name, array in sorted(oracle_live.drive(unit, case).items()):
                digest.update(f"{{case['id']}} {{name}} {{array.dtype.str}} {{array.shape}}".encode())
                digest.update(array.tobytes())
    raise AssertionError(f"answers {{digest.hexdigest()}}")
"""


@dataclass(frozen=True)
class Behaviour:
    """What the course tests and the oracle's cases saw: outcomes by test, parameters apart, and the answers' digest."""

    ending: str
    outcomes: Mapping[str, ItemOutcome]
    answers: str

    @property
    def passed(self) -> bool:
        return self.ending == "complete" and set(self.outcomes.values()) == {ItemOutcome.PASSED}

    @property
    def failing(self) -> frozenset[str]:
        """Names of the course tests that failed."""
        bad = (ItemOutcome.FAILED, ItemOutcome.ERROR)
        return frozenset(_name_of(item) for item, outcome in self.outcomes.items() if outcome in bad)


@dataclass(frozen=True)
class Proof:
    """One variant: how many of its renderings differ in text and in bytecode, and which salts behave otherwise."""

    variant: Variant
    texts: int
    codes: int
    behaviour: Behaviour
    differing: tuple[int, ...]


def variants_of(unit: Unit) -> tuple[Variant, ...]:
    """Each variant once: the reference, the wheats, and the mutants that are Python."""
    wheats = [Variant(wheat.id, "wheat", wheat.files) for wheat in unit.wheats]
    return (plan.reference(unit), *wheats, *(mutant for mutant in plan.mutants(unit) if plan.builds(mutant.files)))


def behaviour_run(run_id: str, unit: Unit, modules: tuple[Module, ...], live: bytes | None) -> Run:
    """All course tests, and the oracle's cases behind them, on one version of the unit."""
    files = list(unit.test_files)
    if live is not None:
        drive = DRIVE.replace("UNIT_MODULE", unit.files[0].module)
        files += [File(f"{SUITE_ROOT}/{DRIVE_FILE}", drive.encode()), File(f"{SUITE_ROOT}/oracle_live.py", live)]
    suite = Suite(
        plan.with_course_files(unit, tuple(files)),
        root=SUITE_ROOT,
        path_dirs=(SUITE_ROOT, "lib"),
        environment=plan.environment(),
    )
    return Run(run_id, suite, modules, LIMITS)


def behaviour_of(result: RunResult) -> Behaviour:
    outcomes = {item.id: item.outcome for item in result.record.items if _name_of(item.id) != DRIVE_TEST}
    answers = [item.message for item in result.record.items if _name_of(item.id) == DRIVE_TEST]
    outcomes |= {error.path: ItemOutcome.ERROR for error in result.record.errors}
    return Behaviour(result.ending.kind.value, outcomes, "".join(answers))


def _name_of(item: str) -> str:
    return item.rpartition("::")[2].partition("[")[0]


def prove(
    unit: Unit, session: Session, live: bytes | None, progress: Callable[[RunResult], None] = lambda result: None
) -> tuple[Proof, ...]:
    """Run every variant as it is written and in every rendering. Raises SandboxError if we fail."""
    variants = variants_of(unit)
    runs: list[Run] = []
    for variant in variants:
        versions = [plan.as_written(unit, variant), *(plan.variant_modules(unit, variant, salt) for salt in SALTS)]
        runs += [behaviour_run(f"p{len(runs) + i}", unit, modules, live) for i, modules in enumerate(versions)]
    results = session.run(runs, progress)
    size = 1 + len(SALTS)
    return tuple(judge(variant, results[size * i : size * (i + 1)]) for i, variant in enumerate(variants))


def judge(variant: Variant, results: Sequence[RunResult]) -> Proof:
    """`results` of the variant as it is written, then of its renderings by salt."""
    written, *others = map(behaviour_of, results)
    texts = [tuple(rendered(source, salt) for source in variant.files.values()) for salt in SALTS]
    codes = {tuple(_shape(compile(text, "unit", "exec", dont_inherit=True)) for text in files) for files in texts}
    differing = tuple(salt for salt, other in zip(SALTS, others, strict=True) if other != written)
    return Proof(variant, len(set(texts)), len(codes), written, differing)


def _shape(code: CodeType) -> tuple[object, ...]:
    """The instructions of a code object and of all in it, without names and constants."""
    inner = tuple(_shape(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return (code.co_code, inner)


def problems(unit: Unit, proofs: Sequence[Proof], *, with_oracle: bool) -> list[str]:
    """What is wrong with the unit, in sentences: renderings that differ, and the rules of its course tests."""
    found: list[str] = []
    catches = {test.name: set(test.catches) for test in unit.course_tests}
    listed = set().union(*catches.values())
    for proof in proofs:
        variant, failing = proof.variant, proof.behaviour.failing
        if proof.differing:
            found.append(f"{variant.id}: renderings {_list(proof.differing)} do not behave as it is written.")
        if proof.texts < 2:
            found.append(f"{variant.id}: nothing in it can be written another way.")
        if with_oracle and not re.search(r"answers [0-9a-f]{64}\b", proof.behaviour.answers):
            found.append(f"{variant.id}: the oracle got no answers: {proof.behaviour.answers or 'it was not run'}.")
        if proof.behaviour.ending != "complete":
            found.append(f"{variant.id}: the course tests do not come to their end: {proof.behaviour.ending}.")
            continue
        if variant.kind != "mutant" and not proof.behaviour.passed:
            others = {_name_of(item) for item, it in proof.behaviour.outcomes.items() if it is not ItemOutcome.PASSED}
            found.append(f"{variant.id}: correct code, but course tests fail: {_list(sorted(failing or others))}.")
        if variant.kind == "mutant" and not failing:
            found.append(f"{variant.id}: no course test catches this mutant.")
        claimed = {name for name, mutants in catches.items() if variant.id in mutants}
        if variant.id in listed and claimed != failing:
            found.append(
                f"{variant.id}: CATCHES names it at {_list(sorted(claimed))}; it fails {_list(sorted(failing))}."
            )
    return found + _twins([proof.variant for proof in proofs])


def _twins(variants: Sequence[Variant]) -> list[str]:
    """Variants that are another one again, but for names of local variables and layout: no test can tell them apart."""
    known: dict[tuple[object, ...], str] = {}
    found = []
    for variant in variants:
        first = known.setdefault(code_of(variant.files), variant.id)
        if first != variant.id:
            found.append(f"{variant.id}: is the same as {first}.")
    return found


def slow_tests(unit: Unit, session: Session) -> list[str]:
    """Course tests that do not pass on the reference within their time, by themselves, or all together as for
    students."""
    modules = plan.as_written(unit, plan.reference(unit))
    runs = [plan.course_run(f"b{number}", unit, modules, test) for number, test in enumerate(unit.course_tests)]
    together, *alone = session.run([plan.course_run("all", unit, modules, *plan.smoke_first(unit)), *runs])
    results = {test.name: [result] for test, result in zip(unit.course_tests, alone, strict=True)}
    found = [
        f"{part.id}: run by itself on the reference, within timeout_s = {unit.test_seconds:g}, it ends as "
        f"{part.outcome.value}{f' ({part.message})' if part.message else ''}."
        for part in verdicts.course_tests(unit.course_tests, results).tests
        if part.outcome is not Outcome.PASSED
    ]
    if not together.complete:
        found.append(
            f"all course tests: run together on the reference, within timeout_s = {unit.test_seconds:g}, they end as "
            f"{together.ending.kind.value}, so that each submission has them run one by one."
        )
    return found


def _list(items: Sequence[object]) -> str:
    return ", ".join(map(str, items)) or "nothing"


def digests(unit: Unit) -> str:
    """The renderings that grading uses, a line each."""
    return "".join(digest_line(variant, salt) for variant in variants_of(unit) for salt in SALTS)


def digest_line(variant: Variant, salt: int) -> str:
    """SHA-256 of one rendering, variant and salt."""
    digest = digest_of((path, rendered(source, salt)) for path, source in variant.files.items())
    return f"{digest}  {variant.id} {salt}\n"
