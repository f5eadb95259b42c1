from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from grader import units
from grader.unit import Course, Unit
from grader.units import load_course
from tests.grader import small_course
from tests.grader.small_course import COURSE_TEST, FILES, MODULE, PATCH, REFERENCE, write_course
from tests.grader.small_oracle import LIVE

TOML = "course/modules/Z1.toml"
MANIFEST = "course/mutants/Z1/manifest.tsv"
TESTS = "course/tests/Z1/test_double.py"
FREEDOMS = "course/wheats/Z1/freedoms.md"
REPOSITORY = Path(__file__).parents[2]


def test_a_whole_unit_is_read(unit: Unit) -> None:
    assert (unit.id, unit.title, unit.tests_path, unit.threshold) == ("Z1", "Doubling", "python/tests/z1-double", 0.8)
    assert [(file.path, file.module, file.stem) for file in unit.files] == [
        ("python/tinyllm/demo/double.py", "tinyllm.demo.double", "double")
    ]
    assert unit.contract["tinyllm.demo.double"].names == {
        "halve": ("x",),
        "Double": None,
        "Double.factor": None,
        "Double.__init__": ("factor", "offset"),
        "Double.forward": ("x", "times"),
    }
    assert set(unit.contracts) == {"tinyllm.demo.base", "tinyllm.demo.double", "tinyllm.demo.user"}
    assert [(erratum.printed, erratum.correct) for erratum in unit.errata] == [("2.1", "2.0")]
    assert len(unit.digest) == 64
    with pytest.raises(FrozenInstanceError):
        unit.title = "other"  # type: ignore[misc]


def test_companions_come_in_dependency_order_without_what_imports_the_unit(unit: Unit) -> None:
    assert list(unit.companions) == ["tinyllm.demo.deep", "tinyllm.demo.base"]


def test_files_are_laid_as_a_run_needs_them(unit: Unit) -> None:
    assert [file.path for file in unit.test_files] == ["suite/test_double.py", "lib/_lib/close.py"]
    assert [file.path for file in unit.fixtures] == ["Z1/data.json"]


def test_comments_of_course_tests_may_run_over_lines_and_stand_above_decorators(unit: Unit) -> None:
    first, second = unit.course_tests
    assert (first.name, first.path) == ("test_twice", "test_double.py")
    assert first.why == "twice is what doubling means"
    assert (first.kind, first.catches, first.chapter) == ("unit", ("s01",), "section 1")
    assert second.catches == ()


def test_a_mutant_is_the_patched_reference(unit: Unit) -> None:
    (mutant,) = unit.mutants
    assert mutant.files == {"python/tinyllm/demo/double.py": REFERENCE.replace("x * self.factor", "x * x").encode()}
    assert (mutant.id, mutant.tier, mutant.required, mutant.line, mutant.private) == (
        "s01",
        "semantic",
        True,
        12,
        "squares",
    )


def test_a_generated_mutant_counts_once_it_is_signed_off(tmp_path: Path) -> None:
    row = "m01\tZ1\tauto\tscale\t12\tfalse\tTest more.\tcubes\t"
    header = FILES[MANIFEST].partition("\n")[0].replace("\tnew", "\tsigned_off")
    rest = FILES[MANIFEST].partition("\n")[2].replace("\tx\n", "\t\n", 1)
    patch = {"course/mutants/Z1/m01.patch": PATCH.replace("x * x", "x * x * x")}
    for signed_off, mids in (("no", ["s01"]), ("yes", ["s01", "m01"])):
        tree = write_course(tmp_path, {MANIFEST: f"{header}\n{rest}{row}{signed_off}\n", **patch})
        assert [mutant.id for mutant in load_course(tree).units["Z1"].mutants] == mids


def test_freedoms_name_wheats_by_their_prefix(unit: Unit) -> None:
    (freedom,) = unit.freedoms
    assert (freedom.id, freedom.says, freedom.wheats) == ("order", "The order of factors is free.", ("w01_other",))
    assert freedom.signs == ("==all", "_[a-z]*")
    assert [wheat.id for wheat in unit.wheats] == ["w01_other"]


def test_a_tree_of_another_name_and_its_own_reference_come_first(tmp_path: Path) -> None:
    tree = write_course(tmp_path, {"course/ref/python/tinyllm/demo/double.py": f"# own\n\n{REFERENCE}"[7:]})
    other = tree.rename(tmp_path / "material")
    assert list(load_course(other).units) == ["Z1"]


def test_a_wheat_may_be_a_folder_of_files(tmp_path: Path) -> None:
    changes: dict[str, str | bytes | None] = {
        "course/wheats/Z1/w01_other.py": None,
        "course/wheats/Z1/w01/python/tinyllm/demo/double.py": FILES["course/wheats/Z1/w01_other.py"],
        "course/wheats/Z1/w02/double.py": FILES["course/wheats/Z1/w01_other.py"] + "\nspare = 1\n",
    }
    (unit,) = load_course(write_course(tmp_path, changes)).units.values()
    assert [wheat.id for wheat in unit.wheats] == ["w01", "w02"]


def test_a_course_of_this_repository_loads_without_problems() -> None:
    course = load_course(REPOSITORY / "course")
    assert course.problems == ()
    assert course.units


def _replaced(file: str, old: str, new: str) -> dict[str, str | bytes | None]:
    assert old in FILES[file]
    return {file: FILES[file].replace(old, new)}


BROKEN: dict[str, tuple[dict[str, str | bytes | None], str, int, str]] = {
    "broken TOML": (_replaced(TOML, 'id = "Z1"', "id = Z1"), "modules/Z1.toml", 1, "is not TOML"),
    "not UTF-8": ({TOML: b'id = "\xe9"\n'}, "modules/Z1.toml", 1, "is not UTF-8"),
    "missing key": (_replaced(TOML, 'title = "Doubling"\n', ""), "modules/Z1.toml", 0, "title"),
    "missing table": (_replaced(TOML, "[learner_tests]", "[other]"), "modules/Z1.toml", 0, "learner_tests"),
    "wrong type": (_replaced(TOML, 'title = "Doubling"', "title = 3"), "modules/Z1.toml", 2, "title"),
    "wrong type inside": (_replaced(TOML, 'forbidden = ["torch"', "forbidden = [1"), "modules/Z1.toml", 6, "forbidden"),
    "text for a number": (_replaced(TOML, "timeout_s = 5", 'timeout_s = "5"'), "modules/Z1.toml", 13, "timeout_s"),
    "threshold above 1": (_replaced(TOML, "threshold = 0.8", "threshold = 80"), "modules/Z1.toml", 22, "threshold"),
    "threshold below 0": (_replaced(TOML, "threshold = 0.8", "threshold = -0.1"), "modules/Z1.toml", 22, "threshold"),
    "threshold not a number": (_replaced(TOML, "= 0.8", "= nan"), "modules/Z1.toml", 22, "threshold"),
    "no time": (_replaced(TOML, "time_budget_s = 5", "time_budget_s = 0"), "modules/Z1.toml", 24, "time_budget_s"),
    "weights": (_replaced(TOML, "[fixtures]", "[weights]\nmutation = 1\n[fixtures]"), "modules/Z1.toml", 16, "add up"),
    "climbing tests dir": (_replaced(TOML, "course/tests/Z1", "course/../x"), "modules/Z1.toml", 11, "'..'"),
    "absolute fixture": (_replaced(TOML, '"Z1/data.json"', '"/etc/passwd"'), "modules/Z1.toml", 17, "relative"),
    "climbing unit": (_replaced(TOML, "python/tinyllm/demo", "python/../demo"), "modules/Z1.toml", 4, "'..'"),
    "no units": (_replaced(TOML, '["python/tinyllm/demo/double.py"]', "[]"), "modules/Z1.toml", 4, "units"),
    "bad id": (_replaced(TOML, '"Z1"', '"Z/1"'), "modules/Z1.toml", 1, "id"),
    "missing tests": (_replaced(TOML, "course/tests/Z1", "course/tests/Z2"), "modules/Z1.toml", 11, "not a folder"),
    "missing fixture": ({"course/fixtures/Z1/data.json": None}, "modules/Z1.toml", 17, "cannot be read"),
    "missing contract": (_replaced(TOML, "double.pyi", "other.pyi"), "modules/Z1.toml", 3, "does not exist"),
    "foreign contract": (_replaced(TOML, "double.pyi", "base.pyi"), "modules/Z1.toml", 3, "none of the unit"),
    "contract elsewhere": (_replaced(TOML, "contracts/py", "stubs"), "modules/Z1.toml", 3, "does not lie in"),
    "missing reference": ({"tinyllm/demo/double.py": None}, "modules/Z1.toml", 4, "there is no reference of"),
    "reference with a fault": ({"tinyllm/demo/double.py": "x =\n"}, "python/tinyllm/demo/double.py", 1, "cannot read"),
    "contract with a fault": (
        {"course/contracts/py/tinyllm/demo/base.pyi": "\nclass\n"},
        "contracts/py/tinyllm/demo/base.pyi", 2, "cannot read",
    ),
    "missing companion": ({"tinyllm/demo/base.py": None}, "python/tinyllm/demo/base.py", 0, "there is no reference of"),
    "unknown smoke test": (_replaced(TOML, '["test_twice"]', '["test_thrice"]'), "modules/Z1.toml", 12, "test_thrice"),
    "unknown runtime": (
        _replaced(TOML, 'id = "Z1"', 'id = "Z1"\nruntime = "fortran"'), "modules/Z1.toml", 2, "plain, torch",
    ),
    "alias of nothing": (
        _replaced(TOML, 'id = "Z1"', 'id = "Z1"\naliases = { "other.py" = "python/a/b.py" }'),
        "modules/Z1.toml", 0, "b.py",
    ),
    "alias that is a unit's file": (
        _replaced(TOML, 'id = "Z1"', 'id = "Z1"\naliases = { "double.py" = "python/tinyllm/demo/double.py" }'),
        "modules/Z1.toml", 0, "double.py",
    ),
    "a file named as a field of the form": (
        {
            TOML: FILES[TOML].replace("demo/double.py", "demo/course.py"),
            "tinyllm/demo/course.py": FILES["tinyllm/demo/double.py"],
        },
        "modules/Z1.toml",
        0,
        "course.py cannot be handed in",
    ),
    "an alias named as a field of the form": (
        _replaced(TOML, "[tests]", '[aliases]\n"tests.py" = "python/tinyllm/demo/double.py"\n[tests]'),
        "modules/Z1.toml",
        0,
        "tests.py cannot be handed in",
    ),
    "unknown required mutant": (_replaced(TOML, '["s01"]', '["s07"]'), "modules/Z1.toml", 23, "s07"),
    "missing manifest": ({MANIFEST: None}, "mutants/Z1/manifest.tsv", 0, "cannot be read"),
    "manifest without header": ({MANIFEST: ""}, "mutants/Z1/manifest.tsv", 1, "no header"),
    "manifest header": (_replaced(MANIFEST, "\tpublic", "\thint"), "mutants/Z1/manifest.tsv", 1, "public"),
    "manifest twice": (
        {MANIFEST: FILES[MANIFEST] + FILES[MANIFEST].split("\n")[3] + "\n"}, "mutants/Z1/manifest.tsv", 6, "line 4",
    ),
    "required unclear": (_replaced(MANIFEST, "\ttrue\t", "\tperhaps\t"), "mutants/Z1/manifest.tsv", 4, "true or false"),
    "line no number": (_replaced(MANIFEST, "\t12\t", "\tx\t"), "mutants/Z1/manifest.tsv", 4, "whole number"),
    "mid with a slash": (_replaced(MANIFEST, "s01\t", "../s01\t"), "mutants/Z1/manifest.tsv", 4, "letters or digits"),
    "short row": (_replaced(MANIFEST, "s01\tZ1\tsemantic", "s01\tZ1"), "mutants/Z1/manifest.tsv", 4, "line must be"),
    "missing columns": ({MANIFEST: FILES[MANIFEST] + "s02\tZ1\n"}, "mutants/Z1/manifest.tsv", 6, "tabs"),
    "missing patch": ({"course/mutants/Z1/s01.patch": None}, "mutants/Z1/manifest.tsv", 4, "s01.patch"),
    "patch off by one": (
        {"course/mutants/Z1/s01.patch": PATCH.replace("@@ -9,7 +9,7", "@@ -8,7 +8,7")},
        "mutants/Z1/s01.patch", 4, "expected",
    ),
    "mutant no Python": (
        {"course/mutants/Z1/s01.patch": PATCH.replace("x = x * x +", "x = = x +")},
        "mutants/Z1/s01.patch", 0, "no Python",
    ),
    "mutant does not compile": (
        {"course/mutants/Z1/s01.patch": PATCH.replace("x = x * x + self.offset", "break; continue; nonlocal q")},
        "mutants/Z1/s01.patch", 0, "does not compile",
    ),
    "mutant equals": (
        {"course/mutants/Z1/s01.patch": PATCH.replace("x * x + self.offset", "x * self.factor + self.offset  # x")},
        "mutants/Z1/s01.patch", 0, "equals the reference",
    ),
    "wheat no Python": ({"course/wheats/Z1/w02.py": "def"}, "wheats/Z1/w02", 0, "no Python"),
    "wheat equals": ({"course/wheats/Z1/w02.py": REFERENCE}, "wheats/Z1/w02", 0, "equals the reference"),
    "wheat of no file": ({"course/wheats/Z1/w02/other.py": "x = 1"}, "wheats/Z1/w02/other.py", 0, "does not stand for"),
    "freedom without wheat": (_replaced(FREEDOMS, "w01", "w09"), "wheats/Z1/freedoms.md", 4, "no such wheat"),
    "freedom without words": (_replaced(FREEDOMS, "says:", "means:"), "wheats/Z1/freedoms.md", 3, "says"),
    "freedom denied somewhere": (
        _replaced(FREEDOMS, "says:", "everywhere: often\nsays:"),
        "wheats/Z1/freedoms.md", 3, "yes or no",
    ),
    "freedom twice": ({FREEDOMS: FILES[FREEDOMS] * 2}, "wheats/Z1/freedoms.md", 10, "twice"),
    "test without comment": (_replaced(TESTS, "# KIND: unit\n", ""), "tests/Z1/test_double.py", 10, "KIND"),
    "test with empty comment": (_replaced(TESTS, "# WHY: one more", "# WHY:"), "tests/Z1/test_double.py", 19, "WHY"),
    "comment not directly above": (
        _replaced(TESTS, "# CHAPTER: section 2\n", "# CHAPTER: section 2\n\n"), "tests/Z1/test_double.py", 20, "WHY",
    ),
    "two tests of one name": (_replaced(TESTS, "test_zero", "test_twice"), "tests/Z1/test_double.py", 19, "already"),
    "two files, one name": ({"course/tests/Z1/test_more.py": COURSE_TEST}, "tests/Z1/test_more.py", 11, "already"),
    "test in a class": (
        {TESTS: COURSE_TEST + "\n\nclass TestMore:\n    def test_more(self): ...\n"},
        "tests/Z1/test_double.py", COURSE_TEST.count("\n") + 4, "test_more stands in the class TestMore",
    ),
    "shown and not caught": (
        _replaced(TESTS, "# CHAPTER: section 2", "# SHOWS: s01\n# CHAPTER: section 2"),
        "tests/Z1/test_double.py",
        20,
        "SHOWS",
    ),
    "unknown mutant": (_replaced(TESTS, "# CATCHES: s01", "# CATCHES: s02"), "tests/Z1/test_double.py", 0, "s02"),
    "tests with a fault": ({TESTS: "def test_x(:\n"}, "tests/Z1/test_double.py", 1, "cannot read"),
    "no tests": ({TESTS: "x = 1\n"}, "modules/Z1.toml", 11, "no test"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_malformed_unit_is_refused_with_file_line_and_reason(name: str, tmp_path: Path) -> None:
    changes, file, line, reason = BROKEN[name]
    course = load_course(write_course(tmp_path, changes))
    assert course.units == {}
    (problem,) = course.problems
    assert (problem.unit, problem.file, problem.line) == ("Z1", file, line), problem
    assert reason in problem.reason, problem


def test_every_mutant_that_is_wrong_is_told_up_to_a_number(tmp_path: Path) -> None:
    rows = "".join(f"s{number}\tZ1\tsemantic\tscale\t12\tfalse\tA hint.\tsecret\tx\n" for number in range(10, 60))
    bad: dict[str, str | bytes | None] = {f"course/mutants/Z1/s{number}.patch": "" for number in range(10, 60)}
    two = {f"course/mutants/Z1/s{number}.patch": PATCH for number in range(12, 60)}
    few = load_course(write_course(tmp_path / "few", {MANIFEST: FILES[MANIFEST] + rows, **bad, **two}))
    assert [problem.file for problem in few.problems] == [f"mutants/Z1/s{number}.patch" for number in (10, 11)]
    assert {problem.unit for problem in few.problems} == {"Z1"} and few.units == {}
    many = load_course(write_course(tmp_path / "many", {MANIFEST: FILES[MANIFEST] + rows, **bad}))
    assert len(many.problems) == units.MOST_REFUSED


def test_one_bad_unit_does_not_stop_the_others(tmp_path: Path) -> None:
    course = load_course(write_course(tmp_path, {"course/modules/A0.toml": "id ="}))
    assert list(course.units) == ["Z1"]
    assert [problem.unit for problem in course.problems] == ["A0"]


def test_what_no_file_system_or_parser_takes_is_a_problem_of_its_unit(tmp_path: Path) -> None:
    for file, text in {
        "course/modules/A1.toml": MODULE.replace("course/tests/Z1", f"course/tests/{'Z' * 300}"),
        "course/modules/A2.toml": f"id = {'5' * 5000}",
        "course/oracle/Z1/live.py": LIVE.replace("def drive(", f"deep = {'1 + ' * 600}1\n\n\ndef drive(")
        + "    deep\n",
        "tinyllm/demo/base.py": "a\n" * 2**19,
    }.items():
        course = load_course(write_course(tmp_path / "tree", {file: text}))
        assert [problem.file for problem in course.problems], file


def test_patches_of_a_tree_leave_so_much_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write_course(tmp_path)
    size = len(load_course(root).units["Z1"].mutants[0].files["python/tinyllm/demo/double.py"])
    monkeypatch.setattr(units, "MAX_MUTANT_BYTES", size)
    assert load_course(root).problems == ()
    monkeypatch.setattr(units, "MAX_MUTANT_BYTES", size - 1)
    (problem,) = load_course(root).problems
    assert (problem.file, "too large" in problem.reason) == ("mutants/Z1/s01.patch", True)


def test_a_file_is_held_once_however_often_it_is_named(tmp_path: Path) -> None:
    fixtures = _replaced(TOML, '"Z1/data.json"', ", ".join(['"Z1/data.json"'] * 3))
    root = write_course(tmp_path, fixtures)
    assert [file.path for file in load_course(root).units["Z1"].fixtures] == ["Z1/data.json"]
    tree = units._Tree(root)
    assert tree.read("fixtures/Z1/data.json") is tree.read("fixtures/Z1/data.json")
    path = "python/tinyllm/demo/double.py"
    assert tree.reference(path) is tree.reference(path)


OTHERS = {
    "course/modules/Z2.toml": 'id = "Z2"\ntitle = "Later"\noffered = false\n',
    "course/modules/Z3.toml": 'id = "Z3"\ntitle = "Fast"\nunits = ["rust/demo/src/fast.rs"]\n[anything]\nelse = 1\n',
}


def test_units_that_are_not_offered_or_in_another_language_are_listed_with_the_reason(tmp_path: Path) -> None:
    course = load_course(write_course(tmp_path, dict(OTHERS)))
    assert list(course.units) == ["Z1"] and not course.problems
    assert [(each.id, each.title) for each in course.listed] == [("Z2", "Later"), ("Z3", "Fast")]
    later, fast = course.listed
    assert "not offered" in later.reason
    assert "Rust" in fast.reason and "rust/demo/src/fast.rs" in fast.reason
    assert course.listed_as("Z3") is fast and course.listed_as("Z1") is None


def test_two_units_of_one_id_are_not_mixed(tmp_path: Path) -> None:
    course = load_course(write_course(tmp_path, {"course/modules/Z9.toml": MODULE}))
    assert list(course.units) == ["Z1"]
    assert "taken" in course.problems[0].reason


def test_a_folder_that_is_no_course_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError):
        load_course(tmp_path)


@pytest.mark.parametrize(
    "file",
    [
        "course/modules/Z1.toml",
        "course/tests/_lib/close.py",
        "course/tests/Z1/test_double.py",
        "course/contracts/py/tinyllm/demo/base.pyi",
        "course/wheats/Z1/w01_other.py",
        "course/mutants/Z1/manifest.tsv",
        "tinyllm/demo/deep.py",
        "tinyllm/demo/double.py",
        "course/oracle/Z1/live.py",
    ],
)
def test_the_digest_follows_everything_the_grade_depends_on(file: str, tmp_path: Path) -> None:
    original = load_course(write_course(tmp_path / "a"))
    changed = FILES.get(file, LIVE)
    changed = changed.replace("Test other", "Try other") if file == MANIFEST else changed + "\n# more\n"
    other = load_course(write_course(tmp_path / "b", {file: changed}))
    assert _digests(original) == _digests(load_course(write_course(tmp_path / "c")))
    assert _digests(original)[0] != _digests(other)[0]
    assert _digests(original)[1] != _digests(other)[1]


def _digests(course: Course) -> tuple[str, str]:
    assert course.problems == ()
    return course.digest, course.units["Z1"].digest


def test_a_unit_without_an_oracle_has_none_and_with_one_its_two_halves(tmp_path: Path) -> None:
    assert load_course(write_course(tmp_path / "a")).units["Z1"].oracle is None
    oracle = load_course(write_course(tmp_path / "b", {"course/oracle/Z1/live.py": LIVE})).units["Z1"].oracle
    assert oracle is not None and oracle.source == LIVE.encode()
    assert b"def drive" in oracle.driver and b"def expected" not in oracle.driver


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (LIVE.replace("def cases", "def some"), "cases"),
        (LIVE.replace("def expected", "def some"), "expected"),
        (LIVE.replace("def drive", "def some"), "drive"),
        (LIVE + "print(1)\n", "top level"),
        (LIVE + "def (\n", "syntax"),
    ],
)
def test_an_oracle_that_cannot_serve_refuses_its_unit(source: str, reason: str, tmp_path: Path) -> None:
    course = load_course(write_course(tmp_path, {"course/oracle/Z1/live.py": source}))
    [problem] = course.problems
    assert (problem.unit, problem.file) == ("Z1", "oracle/Z1/live.py")
    assert reason in problem.reason


def test_the_small_course_is_whole() -> None:
    assert small_course.PATCH in FILES.values()
