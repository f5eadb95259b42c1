"""A teacher proposes files of the course, an administrator publishes them and goes back; processes take them up."""

import io
import json
import time
import zipfile
from dataclasses import replace

import pytest

from grader import course_tree
from service import accounts, blobs, database, tables
from service.app import create_app
from service.audit import By
from service.course_files import heeding, routes, trees
from service.people import mint, users
from tests.grader import small_course

OTHER = small_course.PATCH.replace("x * x", "x * x * x")
MUTANT = "course/mutants/Z1/s01.patch"
HERE = "/v1/course/versions"
DEEP = f"def drive(unit, case):\n    return {'1 + ' * 600}1\n"


@pytest.fixture
def used(bench):
    """The small course, in use."""
    small_course.write_course(bench.settings.course.parent)
    assert bench.client.request("POST", "/v1/course/reload", headers=bench.auth("admin")).status_code == 200


@pytest.fixture
def propose(bench):
    def propose(files=None, who="teacher", **fields):
        archive = course_tree.packed({path: text.encode() for path, text in (files or {}).items()})
        sent = {"files": ("tree.zip", archive)} if files else {"files": ("", b"")}
        return bench.client.request(
            "POST", HERE, headers=bench.auth(who), files=sent, data={"note": "harder", **fields}
        )

    return propose


@pytest.fixture
def publish(bench):
    def publish(version, who="admin"):
        return bench.client.request("POST", f"{HERE}/{version}/publish", headers=bench.auth(who))

    return publish


def mutant(bench, course=None):
    """The one mutant of what is in use: of the web process, or of a course."""
    units = (course or bench.app.state.service.course).units
    return units["Z1"].mutants[0].files


def restarted(bench):
    """What a process that starts now would grade by."""
    with database.reading(bench.engine) as connection:
        return trees.in_use(connection, bench.settings)


def test_a_proposal_is_told_in_full_and_changes_nothing(bench, used, propose):
    before = mutant(bench)
    made = propose({MUTANT: OTHER})
    assert made.status_code == 201 and made.headers["Location"] == made.json()["links"]["self"]
    found = bench.get(made.json()["links"]["self"], "teacher").json()
    assert found["changed"] == [
        {"unit": "Z1", "how": "changed", "parts": [{"kind": "mutants", "name": "s01", "how": "changed"}]}
    ]
    assert (found["usable"], found["in_use"], found["problems"]) == (True, False, [])
    assert mutant(bench) == mutant(bench, restarted(bench).course) == before
    assert len(bench.rows(tables.course_loads)) == 1


@pytest.mark.both_databases
def test_what_is_published_is_used_by_every_process_and_can_be_taken_back(bench, used, propose, publish):
    old = mutant(bench)
    first, second = propose({MUTANT: OTHER}).json()["id"], propose(remove="course/fixtures/Z1", note="x").json()
    assert second["usable"] is False and "data.json" in second["problems"][0]["reason"]
    answer = publish(first)
    assert answer.json()["changed"][0]["parts"] == [{"kind": "mutants", "name": "s01", "how": "changed"}]
    new = mutant(bench)
    started = restarted(bench)
    assert old != new == mutant(bench, started.course)
    assert (started.load, started.root.is_relative_to(bench.settings.data)) == (2, True)
    assert publish(second["id"]).json()["code"] == "course_unusable" and mutant(bench) == new
    back = bench.client.request("POST", "/v1/course/reload", headers=bench.auth("admin"))  # to the machine's files
    assert back.json()["changed"] and mutant(bench) == mutant(bench, restarted(bench).course) == old
    publish(first)
    assert mutant(bench) == new
    actions = [row.action for row in bench.rows(tables.audit) if row.action.startswith("course.")]
    assert actions == ["course.reload", *["course.propose"] * 2, "course.publish", "course.reload", "course.publish"]
    [said] = [json.loads(row.detail) for row in bench.rows(tables.audit) if row.action == "course.publish"][:1]
    assert said == {"units": {"Z1": ["changed", "mutants s01: changed"]}}


def test_a_proposal_builds_on_what_is_in_use(bench, used, propose, publish):
    publish(propose({MUTANT: OTHER}).json()["id"])
    two = {"course/fixtures/Z1/data.json": '{"a": 1}'}
    publish(propose(two, note="another fixture").json()["id"])
    files = zipfile.ZipFile(io.BytesIO(bench.get("/v1/course/files", "teacher").content))
    assert (files.read(MUTANT), files.read(*two)) == (OTHER.encode(), b'{"a": 1}')


def test_the_whole_course_replaces_what_is_not_sent(bench, used, propose):
    kept = {path: text for path, text in small_course.FILES.items() if path.endswith((".toml", ".pyi", ".py"))}
    found = propose(kept, whole="on").json()
    assert found["usable"] is False and found["problems"]


@pytest.mark.parametrize(
    ("files", "fields", "code"),
    [
        ({MUTANT: OTHER}, {"note": ""}, "note_missing"),
        (None, {}, "nothing_sent"),
        ({MUTANT: small_course.PATCH}, {}, "nothing_changed"),
        ({"../x": ""}, {}, "path_traversal"),
        (None, {"remove": "course/nowhere"}, "file_unknown"),
    ],
)
def test_what_cannot_be_proposed_is_said(bench, used, propose, files, fields, code):
    answer = propose(files, **fields)
    assert (answer.status_code, answer.json()["code"]) == (422, code)
    assert bench.rows(tables.course_trees) == []


def test_teachers_propose_and_only_administrators_publish(bench, used, propose, publish):
    assert [propose({MUTANT: OTHER}, who).status_code for who in ("ada", "lms")] == [403, 403]
    version = propose({MUTANT: OTHER}).json()["id"]
    assert [publish(version, who).status_code for who in ("ada", "lms", "teacher")] == [403, 403, 403]
    assert [bench.get("/v1/course/files", who).status_code for who in ("ada", "lms", "teacher")] == [403, 403, 200]
    assert len(bench.rows(tables.course_loads)) == 1


def test_files_of_a_version_are_kept_when_blobs_are_collected(bench, used, propose):
    version = propose({MUTANT: OTHER}).json()["id"]
    with database.writing(bench.engine) as connection:
        assert blobs.collect(connection) == 0
        assert trees.files_of(connection, version)[MUTANT] == OTHER.encode()


def test_nothing_in_the_lines_hides_from_who_publishes_them(bench, used, propose):
    page = propose({"course/oracle/Z1/more.py": "", MUTANT: f"a\u202eb\x1bc\td\n{OTHER}"}).json()["links"]["page"]
    shown = bench.browser("root", admin=True).get(page).text
    assert "<ins>+a\\u202eb\\x1bc" in shown and "\u202e" not in shown
    assert shown.index("runs outside of the sandbox") < shown.index(MUTANT)


@pytest.fixture
def delete(bench):
    def delete(version, who="teacher"):
        return bench.client.request("DELETE", f"{HERE}/{version}", headers=bench.auth(who))

    return delete


@pytest.mark.both_databases
def test_a_version_that_was_never_used_is_deleted_by_who_sent_it_or_an_administrator(
    bench, used, propose, publish, delete
):
    own, others, published = (propose({MUTANT: OTHER}, who).json()["id"] for who in ("teacher", "admin", "teacher"))
    refused = delete(others)
    assert (refused.status_code, refused.json()["code"]) == (403, "version_of_another")
    assert delete(own).status_code == 204 and delete(own).status_code == 404
    assert delete(propose({MUTANT: OTHER}).json()["id"], "admin").status_code == 204
    publish(published)
    bench.client.request("POST", "/v1/course/reload", headers=bench.auth("admin"))
    kept = delete(published, "admin")
    assert (kept.status_code, kept.json()["code"]) == (409, "version_used")
    assert publish(own).status_code == 404
    assert {row.id for row in bench.rows(tables.course_trees)} == {others, published}
    assert {row.tree for row in bench.rows(tables.course_tree_files)} == {others, published}
    said = [(row.object, json.loads(row.detail)) for row in bench.rows(tables.audit) if row.action == "course.withdraw"]
    assert said[0] == (own, {"note": "harder"}) and len(said) == 2


def test_a_person_has_so_many_versions_that_were_never_used_and_no_more(
    bench, used, propose, publish, delete, monkeypatch
):
    monkeypatch.setattr(trees, "MOST_PROPOSED", 2)
    first, second = (propose({MUTANT: OTHER}).json()["id"] for _ in range(2))
    full = propose({MUTANT: OTHER})
    assert (full.status_code, full.json()["code"]) == (409, "too_many_versions")
    assert propose({MUTANT: OTHER}, "admin").status_code == 201
    publish(first)
    assert propose({MUTANT: small_course.PATCH}).status_code == 201
    assert propose({MUTANT: small_course.PATCH}).status_code == 409
    delete(second)
    assert propose({MUTANT: small_course.PATCH}).status_code == 201


def test_a_version_is_whose_it_is_with_whatever_token_it_was_sent(bench, used):
    tess = bench.person("tess", default="teacher")
    secrets = []
    with database.writing(bench.engine) as connection:
        account = accounts.find(connection, users.find_by_login(connection, "tess").account, bench.clock())
        for _ in range(2):
            by = By(account, bench.clock())
            secrets.append(mint.for_person(connection, account, "tess", by, label="").secret)
    first, second = ({"Authorization": f"Bearer {secret}"} for secret in secrets)
    files = {"files": ("tree.zip", course_tree.packed({MUTANT: OTHER.encode()}))}
    version = bench.client.request("POST", HERE, headers=first, files=files, data={"note": "x"}).json()["id"]
    with database.reading(bench.engine) as connection:
        assert trees.unused(connection, tess.id) == 1
    assert bench.client.request("DELETE", f"{HERE}/{version}", headers=second).status_code == 204


def test_the_page_of_a_version_lets_it_be_deleted(bench, used, propose):
    tess, other = bench.browser("tess", default="teacher"), bench.browser("ted", default="teacher")
    page = propose({MUTANT: OTHER}, "admin").json()["links"]["page"]
    for teacher in (tess, other):
        assert "Delete this version" not in teacher.get(page).text
        refused = teacher.post(f"{page}/delete")
        assert (refused.status_code, 'role="alert"' in refused.text) == (403, True)
    admin = bench.browser("root", admin=True)
    assert "Delete this version" in admin.get(page).text
    assert admin.post(f"{page}/delete").status_code == 303
    assert admin.get(page).status_code == 404 and "Nobody has sent any." in admin.get("/course-files").text


@pytest.mark.both_databases
def test_another_web_process_takes_up_what_was_published(bench, used, propose, publish, caplog):
    other = create_app(replace(bench.app.state.service))
    version = propose({MUTANT: OTHER}).json()["id"]
    publish(version)
    before = bench.app.state.service
    for app in (bench.app, other):
        heeding.look(app)
    assert bench.app.state.service is before
    assert other.state.service.course_load == before.course_load == 2
    assert mutant(bench, other.state.service.course) == mutant(bench)
    heeding.look(other)
    (bench.settings.course / "modules/Z1.toml").write_text("id = 7")
    with database.writing(bench.engine) as connection:
        connection.execute(tables.course_loads.insert().values(at=1.0, token="t", digest="0"))
    heeding.look(other)
    assert mutant(bench, other.state.service.course) == mutant(bench)
    assert other.state.service.course_load == 3 and "Z1" in caplog.text


def test_a_web_process_looks_by_itself(bench, used, propose, publish, monkeypatch):
    monkeypatch.setattr(heeding, "LOOK_SECONDS", 0.01)
    other = create_app(replace(bench.app.state.service))
    with heeding.heeding(other):
        publish(propose({MUTANT: OTHER}).json()["id"])
        give_up_at = time.monotonic() + 60
        while other.state.service.course_load < 2:
            assert time.monotonic() < give_up_at
            time.sleep(0.01)


def test_one_tree_is_checked_at_a_time(bench, used, propose):
    with routes._CHECKING:
        answer = propose({MUTANT: OTHER})
        assert (answer.status_code, answer.json()["code"]) == (429, "check_under_way")
        assert "Retry-After" in answer.headers
    assert propose({MUTANT: OTHER}).status_code == 201
    assert propose({MUTANT: OTHER}, note="").status_code == 422 and propose({MUTANT: OTHER}).status_code == 201


def test_versions_do_not_fill_the_disk_that_intake_needs(bench, used, propose, monkeypatch):
    service = bench.app.state.service
    least = routes.LEAST_FREE * service.settings.min_free_bytes
    monkeypatch.setattr(service.pressure, "free_bytes", lambda folder: least - 1)
    answer = propose({MUTANT: OTHER})
    assert (answer.status_code, answer.json()["code"]) == (503, "disk_low")
    monkeypatch.setattr(service.pressure, "free_bytes", lambda folder: least)
    assert propose({MUTANT: OTHER}).status_code == 201


@pytest.mark.parametrize(
    "files",
    [
        {"course/oracle/Z1/live.py": f"def cases(seed): ...\ndef expected(case): ...\n{DEEP}"},
        {"course/wheats/Z1/w01_other.py": "a\n" * 2**19},
        {"course/modules/Z1.toml": small_course.MODULE.replace("timeout_s = 5", f"timeout_s = {'5' * 5000}")},
        {"course/modules/Z1.toml": small_course.MODULE.replace("course/tests/Z1", f"course/tests/{'Z' * 300}")},
    ],
)
def test_files_that_no_course_can_be_read_from_are_a_problem_of_their_unit(bench, used, propose, files):
    answer = propose(files)
    assert answer.status_code == 201, answer.text
    assert [each["unit"] for each in answer.json()["problems"]] == ["Z1"]


def test_the_pages_show_the_lines_and_publish(bench, used, propose):
    teacher, admin = bench.browser("tess", default="teacher"), bench.browser("root", admin=True)
    page = propose({MUTANT: OTHER}, note="<b>harder</b>").json()["links"]["page"]
    shown = teacher.get(page).text
    assert "<ins>++            x = x * x * x + self.offset</ins>" in shown and "&lt;b&gt;harder" in shown
    assert "Publish this version" not in shown and teacher.post(page).status_code == 403
    assert "Publish this version" in admin.get(page).text
    published = admin.post(page).text
    assert "Z1 was changed: mutants <code>s01</code> changed" in published and "In use is the version" in published
    assert "It is in use." in teacher.get(page).text and "Every file is the same." in teacher.get(page).text
    assert "by an administrator" not in admin.get("/course-files").text
    assert bench.browser("gus", default="grader").get("/course-files").status_code == 403


def test_where_there_is_no_tree_nothing_can_be_proposed_and_that_is_said(bench, propose):
    answer = propose({MUTANT: OTHER})
    assert (answer.status_code, answer.json()["code"]) == (409, "course_unusable")
