from datetime import UTC, datetime

import pytest

from service import accounts, database, overrides
from service.accounts import Role
from service.audit import By
from tests.service.classroom import klass
from tests.service.classroom.klass import asked

DAY = 86_400


@pytest.fixture
def bench(make_bench):
    """Ada has passed, bob is stuck, cy believes something, dee waits for the first grading."""
    bench = klass.a_class(make_bench)
    klass.submit(bench, "ada", klass.Says())
    for score in (0.5, 0.4, 0.4, 0.3, 0.2):
        bench.clock.now += 60
        klass.submit(bench, "bob", klass.fails(score, failed=["test_zero"], survived=["m02"]))
    said = klass.fails(0.75, survived=["s01"], tests=[klass.rejecting()], rows=[klass.on_mutants(".FFF")])
    klass.submit(bench, "cy", said)
    bench.submitted("teacher", student="dee")
    return bench


def names(bench, query=""):
    return [row["student"] for row in asked(bench, f"students?{query}")["students"]]


def rows(bench, query=""):
    return {row["student"]: row for row in asked(bench, f"students?{query}")["students"]}


@pytest.mark.both_databases
def test_every_student_is_told_with_how_far_they_are(bench):
    answer = asked(bench, "students")
    assert (answer["total"], answer["at_risk"]) == (4, 1)
    found = {row["student"]: row for row in answer["students"]}
    assert {name: row["state"] for name, row in found.items()} == {
        "ada": "passed",
        "bob": "under_way",
        "cy": "under_way",
        "dee": "under_way",
    }
    bob = found["bob"]
    assert (bob["submissions"], bob["attempts_used"], bob["attempts_left"]) == (5, 5, None)
    assert (bob["best_score"], bob["since_best"], bob["latest"]["score"]) == (0.5, 4, 0.2)
    assert bob["best_submission"] != bob["latest"]["submission"]
    assert [reason["code"] for reason in bob["risk"]] == ["no_progress"]
    assert (bob["latest"]["tests_passed"], bob["latest"]["killed"]) == (3, 3)
    assert (found["dee"]["pending"], found["dee"]["latest"], found["dee"]["best_score"]) == (1, None, None)


@pytest.mark.both_databases
def test_attempts_are_counted_as_limits_count_them(bench):
    where = "/v1/courses/default/units/L0.0"
    put = bench.client.request("PUT", where, headers=bench.auth("teacher"), json={"attempts": 6})
    assert put.status_code == 200
    cancelled = bench.submitted("bob")
    bench.client.request("DELETE", f"/v1/submissions/{cancelled}", headers=bench.auth("bob"))
    bob = rows(bench)["bob"]
    assert (bob["submissions"], bob["attempts_used"], bob["attempts_left"]) == (6, 5, 1)
    sixth = bench.get(f"/v1/submissions/{bench.submitted('bob')}", "bob").json()
    assert sixth["attempts_left"] == rows(bench)["bob"]["attempts_left"] == 0


def test_an_extension_changes_when_it_is_due_for_one(bench):
    where = "/v1/courses/default/units/L0.0"
    due = datetime.fromtimestamp(bench.clock() + 3_600, UTC).isoformat()
    later = datetime.fromtimestamp(bench.clock() + 9 * DAY, UTC).isoformat()
    headers = bench.auth("teacher")
    assert bench.client.request("PUT", where, headers=headers, json={"due_at": due}).status_code == 200
    granted = bench.client.request("PUT", f"{where}/extensions/cy", headers=headers, json={"due_at": later})
    assert granted.status_code == 200
    found = rows(bench)
    assert [reason["code"] for reason in found["bob"]["risk"]] == ["due_soon", "no_progress"]
    assert found["cy"]["risk"] == []
    assert found["cy"]["due_at"] > found["bob"]["due_at"]


def test_a_grade_that_was_set_by_hand_is_marked(bench):
    wanted = overrides.Override("bob", 0.9, "spoke to me", "t", bench.clock())
    with database.writing(bench.engine) as connection:
        overrides.put(connection, "default", "L0.0", wanted, By(None, bench.clock()))
    assert {name: row["set_by_hand"] for name, row in rows(bench).items() if row["set_by_hand"]} == {"bob": 0.9}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("state=passed", ["ada"]),
        ("at_risk=true", ["bob"]),
        ("failing=test_zero", ["bob"]),
        ("survived=s01", ["cy"]),
        ("believes=fault:s01", ["cy"]),
        ("believes=unknown", []),
        ("verdict=pass", ["ada"]),
        ("search=D", ["ada", "dee"]),
        ("student=dee", ["dee"]),
        ("failing=test_zero&survived=s01", []),
    ],
)
def test_students_can_be_narrowed_down(bench, query, found):
    assert names(bench, query) == found


@pytest.mark.parametrize(
    ("sort", "first"), [("student", "ada"), ("risk", "bob"), ("-score", "ada"), ("score", "dee"), ("latest", "dee")]
)
def test_students_can_be_sorted(bench, sort, first):
    assert names(bench, f"sort={sort}")[0] == first


@pytest.mark.parametrize("sort", ["student", "risk", "-score", "score", "-latest", "latest"])
def test_pages_hold_every_student_once(bench, sort):
    path, found = f"{klass.PATH}/students?limit=1&sort={sort}", []
    while path:
        answer = bench.get(path, "teacher").json()
        assert answer["total"] == 4
        found += [row["student"] for row in answer["students"]]
        path = answer["next"]
    assert found == names(bench, f"sort={sort}")
    assert len(found) == len(set(found)) == 4


def test_a_key_of_another_order_or_of_nobody_is_refused(bench):
    key = asked(bench, "students?limit=1&sort=risk")["next"].partition("after=")[2]
    for query in (f"sort=score&after={key}", "after=e30", "after=%21", "after=WyJzdHVkZW50IixOYU4sIiJd"):
        assert bench.get(f"{klass.PATH}/students?{query}", "teacher").json()["code"] == "page_unknown", query


def test_names_of_every_script_are_paged_and_found(make_bench):
    bench = klass.a_class(make_bench)
    for student in ("zoë", "王", "a/b"):
        klass.submit(bench, student, klass.Says())
    first = asked(bench, "students?limit=2")
    rest = bench.get(first["next"], "teacher").json()
    assert [row["student"] for row in (*first["students"], *rest["students"])] == ["a/b", "zoë", "王"]
    assert names(bench, "student=%E7%8E%8B") == ["王"]


@pytest.mark.parametrize("question", ["overview", "tests", "mutants", "misconceptions", "students"])
def test_only_staff_ask_about_a_class(bench, question):
    assert bench.get(f"{klass.PATH}/{question}", "ada").status_code == 403
    assert bench.get(f"{klass.PATH}/{question}", "nobody").status_code == 401


@pytest.fixture
def enrolled(bench):
    """Ada and a student who has not begun in one section, bob in another, and a grader who tries the unit."""
    klass.enrol(bench, "ada", name="Ada Lovelace", section="A")
    klass.enrol(bench, "new", name="Nora New", section="A")
    klass.enrol(bench, "bob", section="B")
    klass.enrol(bench, "gus", role="grader")
    klass.submit(bench, "gus", klass.Says())
    return bench


@pytest.mark.both_databases
def test_who_is_enrolled_is_told_by_name_also_before_they_begin(enrolled):
    found = rows(enrolled)
    assert sorted(found) == ["ada", "bob", "cy", "dee", "new"]
    assert (found["ada"]["name"], found["ada"]["section"], found["ada"]["enrolled"]) == ("Ada Lovelace", "A", True)
    assert (found["cy"]["name"], found["cy"]["enrolled"]) == ("", False)
    assert (found["new"]["state"], found["new"]["submissions"]) == ("not_begun", 0)
    assert [reason["code"] for reason in found["new"]["risk"]] == ["not_begun"]


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("section=A", ["ada", "new"]),
        ("section=A&state=not_begun", ["new"]),
        ("section=none", []),
        ("search=lovelace", ["ada"]),
        ("search=NORA", ["new"]),
        ("section=B&search=lovelace", []),
        ("verdict=fail", ["bob", "cy"]),
    ],
)
def test_a_section_or_a_name_can_be_asked_for(enrolled, query, found):
    assert names(enrolled, query) == found


def test_one_who_has_not_begun_is_at_risk_also_where_nobody_else_is_asked_about(enrolled):
    [row] = asked(enrolled, "students?student=new")["students"]
    assert [reason["code"] for reason in row["risk"]] == ["not_begun"]


def test_nobody_is_at_risk_in_a_class_that_has_not_begun(make_bench):
    bench = klass.a_class(make_bench)
    klass.enrol(bench, "ada")
    answer = asked(bench, "students")
    assert (answer["total"], answer["at_risk"], answer["students"][0]["state"]) == (1, 0, "not_begun")


@pytest.mark.both_databases
def test_staff_who_try_the_unit_are_not_of_the_class(enrolled):
    told = asked(enrolled, "overview")
    assert (told["students"], told["began"], told["passed"]) == (5, 4, 2)  # dee's was graded with gus's, who is staff
    assert asked(enrolled, "overview?section=A")["students"] == 2
    assert asked(enrolled, "mutants?section=A")["matrix"][0]["name"] == "Ada Lovelace"
    assert told["submissions"] == sum(point["submissions"] for point in told["series"])


@pytest.mark.parametrize("question", ["overview", "tests", "mutants", "misconceptions", "students?format=csv"])
def test_staff_of_another_course_learn_nothing_of_this_one(bench, question):
    """As if the course were not there."""
    secret = accounts.new_secret()
    with database.writing(bench.engine) as connection:
        accounts.create(connection, secret=secret, role=Role.TEACHER, now=bench.clock(), courses=["another"])
    headers = {"Authorization": f"Bearer {secret}"}
    here = bench.client.request("GET", f"{klass.PATH}/{question}", headers=headers)
    nowhere = bench.client.request("GET", f"{klass.PATH}/{question}".replace("default", "none"), headers=headers)
    assert here.status_code == nowhere.status_code == 404
    assert here.json()["code"] == nowhere.json()["code"] == "course_unknown"
    assert "ada" not in here.text


def test_a_grader_sees_the_class(bench):
    secret = accounts.new_secret()
    with database.writing(bench.engine) as connection:
        accounts.create(connection, secret=secret, role=Role.GRADER, now=bench.clock(), courses=["default"])
    headers = {"Authorization": f"Bearer {secret}"}
    assert bench.client.request("GET", f"{klass.PATH}/students", headers=headers).status_code == 200
