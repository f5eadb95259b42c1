import ast
import math
from dataclasses import replace
from random import Random

import pytest

from grader import plan
from grader.plan import STANDARD
from grader.unit import Unit
from tests.grader.simulated import SimulatedSuite, a_unit


@pytest.mark.parametrize(("wheats", "references"), [(0, 8), (4, 4), (5, 3), (7, 3)])
def test_there_are_at_least_eight_correct_runs_and_three_of_the_reference(
    unit: Unit, wheats: int, references: int
) -> None:
    kinds = [variant.kind for variant in plan.correct_variants(a_unit(unit, wheats=wheats), STANDARD)]
    assert (kinds.count("reference"), kinds.count("wheat")) == (references, wheats)


@pytest.mark.parametrize(
    ("suite_seconds", "limit"), [(0.0, 2.0), (0.1, 2.0), (0.5, 5.0), (2.0, 20.0), (9.0, 20.0), (25.0, 50.0)]
)
def test_a_mutant_gets_ten_times_the_suites_time_within_bounds(suite_seconds: float, limit: float) -> None:
    limits = plan.mutant_limits(suite_seconds, STANDARD)
    assert (limits.cpu_seconds, limits.wall_seconds) == (limit, 3 * limit)


def test_runs_are_complete_while_all_variants_fit_in_the_budget(unit: Unit) -> None:
    assert plan.runs_are_complete(unit, 0.05, 60, STANDARD)
    assert not plan.runs_are_complete(unit, 0.05, 61, STANDARD)
    generous = replace(unit, full_matrix_cpu_seconds=10.0)
    assert plan.runs_are_complete(generous, 0.1, 100, STANDARD)
    assert not plan.runs_are_complete(replace(unit, full_matrix_cpu_seconds=0.0), 0.1, 1, STANDARD)


def test_every_call_of_the_broken_unit_fails(unit: Unit) -> None:
    [file] = unit.files
    source = plan.broken(unit).files[file.path]
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert {function.name for function in functions} == {"__init__", "forward", "halve"}
    assert all(isinstance(statement, ast.Raise) for function in functions for statement in function.body)
    names: dict[str, object] = {"Base": object}
    exec(compile(source.replace(b"from tinyllm.demo.base import Base", b""), "unit", "exec"), names)
    for name in ("halve", "Double"):
        with pytest.raises(AssertionError):
            names[name](1)  # type: ignore[operator]


def test_code_that_is_no_python_does_not_build(unit: Unit) -> None:
    assert plan.builds({"a.py": b"x = 1\n"})
    assert not plan.builds({"a.py": b"x = 1\n", "b.py": b"def (\n"})
    assert not plan.builds({"a.py": b"\x00"})


def test_nothing_in_a_run_tells_which_variant_it_holds(unit: Unit) -> None:
    unit = a_unit(unit, ["m1"])
    suite = SimulatedSuite(unit, ("test_a",))
    variants = [plan.reference(unit), *plan.mutants(unit), *plan.correct_variants(unit, STANDARD)]
    ids = plan.RunIds(Random(1))
    runs = [
        plan.suite_run(
            next(ids),
            unit,
            suite.submission().tests,
            plan.variant_modules(unit, variant, salt=0),
            plan.budget_limits(unit, STANDARD),
        )
        for variant in variants
    ]
    assert len({run.id for run in runs}) == len(runs)
    assert len({(run.suite, run.limits) for run in runs}) == 1
    assert {(module.name, module.filename, module.source_visible) for run in runs for module in run.modules} == {
        ("tinyllm.demo.double", "tinyllm/demo/double.py", False)
    }


def test_only_the_students_own_source_may_be_quoted(unit: Unit) -> None:
    suite = SimulatedSuite(unit, ())
    assert all(module.source_visible for module in plan.own_modules(unit, suite.submission()))
    assert not any(module.source_visible for module in plan.preload(unit))


def test_run_ids_are_equal_for_equal_seeds_alone() -> None:
    first, same, other = (plan.RunIds(Random(seed)) for seed in (1, 1, 2))
    assert [next(first) for _ in range(3)] == [next(same) for _ in range(3)] != [next(other) for _ in range(3)]


def test_a_pilot_holds_correct_code_and_mutants_in_the_proportion_of_all(unit: Unit) -> None:
    correct = plan.correct_variants(unit, plan.STANDARD)
    mutants = [plan.Variant(f"m{n}", "mutant", {}) for n in range(40)]
    order = plan.shuffled([*correct, *mutants], Random(3))
    few, rest = plan.pilot(order, share=0.25)
    assert [sum(each.kind == "mutant" for each in part) for part in (few, rest)] == [10, 30]
    assert len(few) - 10 == math.ceil(len(correct) / 4) and len(few) + len(rest) == len(order)
    for part in (few, rest):
        assert [each.id for each in part if each.kind == "mutant"] == [
            each.id for each in order if each.kind == "mutant" and each in part
        ]


def test_smoke_tests_come_first_and_no_test_is_lost(unit: Unit) -> None:
    names = [test.name for test in plan.smoke_first(replace(unit, smoke=("test_zero", "unknown")))]
    assert names == ["test_zero", "test_twice"]


def test_a_course_test_runs_by_itself_with_fixtures_and_helpers(unit: Unit) -> None:
    run = plan.course_run("r", unit, (), unit.course_tests[0])
    assert run.suite.only == ("test_double.py::test_twice",)
    assert {"suite/test_double.py", "lib/_lib/close.py", "fixtures/Z1/data.json"} <= {
        file.path for file in run.suite.files
    }
    assert run.limits.cpu_seconds == unit.test_seconds


def test_a_students_suite_lies_apart_from_the_courses_tests(unit: Unit) -> None:
    suite = SimulatedSuite(unit, ("test_a",))
    run = plan.suite_run("r", unit, suite.submission().tests, (), plan.budget_limits(unit, STANDARD))
    paths = {file.path for file in run.suite.files}
    assert "suite/test_mine.py" in paths and "suite/test_double.py" not in paths


def test_the_items_of_functions_include_all_their_parameters() -> None:
    collected = ("t.py::a[1]", "t.py::a[2]", "t.py::ab", "u.py::a")
    assert plan.items_of(["t.py::a"], collected) == ("t.py::a[1]", "t.py::a[2]")
