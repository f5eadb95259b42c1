"""Export and erasure of a student, with a search through every column of every table, the job engine's included."""

import io
import json
import stat
import threading
import zipfile
import zlib

import httpx
import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from grader.submission import Submission
from sandbox.records import File
from service import accounts, audit, database, runs, students
from service.accounts import Role
from service.audit import By
from service.cli import main
from service.dbos_queue import DbosQueue
from service.submissions import add
from service.tables import audit as audit_rows
from service.tables import blobs, cache, extensions, files, hints, idempotency, results, submissions, tokens
from service.tables import runs as run_rows
from service.worker import FakeGrading
from tests.service import samples

pytestmark = pytest.mark.both_databases

ZOE = "zoë.q7"  # JSON writes the name in another way
SECOND = "zoë.q7-2"  # somebody else, whose name begins so
OWN = samples.SOURCE + "# made by zoë.q7\n".encode()


def columns(engine):
    """Every value of every table in the database, as (table, column, bytes)."""
    inspector = sa.inspect(engine)
    schemas = [None] if engine.dialect.name == "sqlite" else inspector.get_schema_names()
    for schema in schemas:
        if schema in ("information_schema", "pg_catalog"):
            continue
        for name in inspector.get_table_names(schema):
            table = sa.Table(name, sa.MetaData(), schema=schema, autoload_with=engine)
            with database.reading(engine) as connection:
                for row in connection.execute(sa.select(table)):
                    for column, value in row._mapping.items():
                        yield f"{schema}.{name}", column, as_bytes(value)


def as_bytes(value):
    if not isinstance(value, bytes):
        return str(value).encode()
    try:
        return zlib.decompress(value)
    except zlib.error:
        return value


def where(engine, name):
    """The (table, column) that hold the name, however it is written."""
    return {
        (table, column)
        for table, column, value in columns(engine)
        for written in (lambda text: text.encode(), lambda text: json.dumps(text)[1:-1].encode())
        if written(name) in value.replace(written(SECOND), b"")
    }


@pytest.fixture
def post(bench):
    def post(who, source=samples.SOURCE, **fields):
        form = samples.form(**fields)
        form["files"][0] = ("twice", ("twice.py", source))
        answer = bench.client.request("POST", "/v1/units/L0.0/submissions", headers=bench.auth(who), **form)
        assert answer.status_code == 202, answer.text
        return answer.json()["id"]

    return post


@pytest.fixture
def scene(bench, post):
    """A class in which Zoë left traces everywhere, and others as well."""
    now = bench.clock()
    done = post(ZOE, OWN)
    by_lms = post("lms", student=ZOE)
    others = post(SECOND)
    adas = post("ada")
    bench.graded()
    path = "/v1/submissions/{}/runs"
    for submission, reason in ((done, f"for {ZOE}."), (adas, f"as {ZOE} said")):
        answer = bench.client.request(
            "POST", path.format(submission), headers=bench.auth("teacher"), json={"reason": reason}
        )
        assert answer.status_code == 202
    bench.graded()
    queued = post(ZOE)
    with database.writing(bench.engine) as connection:
        zoes_run = connection.execute(sa.select(submissions.c.run).where(submissions.c.id == done)).scalar_one()
        adas_run = connection.execute(sa.select(submissions.c.run).where(submissions.c.id == adas)).scalar_one()
        connection.execute(cache.delete())
        connection.execute(cache.insert().values(key="k", run=zoes_run, created_at=now))
        connection.execute(run_rows.update().where(run_rows.c.id == adas_run).values(cached_from=zoes_run))
        account = connection.execute(sa.select(tokens.c.id).where(tokens.c.student == ZOE)).scalar_one()
        connection.execute(idempotency.delete())
        for token, key, submission in ((account, "1", None), ("lms", f"{ZOE}/1", by_lms), ("lms", "2", adas)):
            values = {"token": token, "key": key, "fingerprint": "", "submission": submission, "created_at": now}
            connection.execute(idempotency.insert().values(values))
        for student, reason in ((ZOE, "ill"), ("ada", f"with {ZOE} at a match"), (SECOND, "ill")):
            values = {"course": "default", "unit": "L0.0", "student": student, "reason": reason, "token": "t"}
            connection.execute(extensions.insert().values(**values, extra_attempts=1, created_at=now))
            values = {"course": "default", "unit": "L0.0", "student": student, "mutant": "m01", "number": 2}
            connection.execute(hints.insert().values(**values, unlocked_at=now, counted=True, helpful=True))
        accounts.create(connection, secret="x", role=Role.TEACHER, now=now, label=f"desk of {ZOE}")
        for student in (ZOE, SECOND):
            audit.note(
                connection,
                By(None, now),
                action="extension.grant",
                object=f"default/L0.0/{student}",
                student=student,
                detail={"student": student, "reason": f"asked by {ZOE}", "before": {ZOE: None}},
            )
    return {"done": done, "by_lms": by_lms, "queued": queued, "others": others, "ada": adas, "adas_run": adas_run}


def erase(bench, student=ZOE, who="admin"):
    return bench.client.request("DELETE", f"/v1/students/{student}", headers=bench.auth(who))


def test_an_erased_student_is_named_in_no_column_of_any_table(bench, scene):
    assert len(where(bench.engine, ZOE)) >= 10, "the scene must leave traces, or this shows nothing"
    answer = erase(bench)
    assert answer.status_code == 200, answer.text
    assert where(bench.engine, ZOE) == set()
    assert answer.json()["submissions"] == 3


def test_others_keep_everything(bench, scene):
    def kept():
        return {
            table.name: sorted(map(repr, bench.rows(table)))
            for table in (submissions, run_rows, results, files, extensions, hints)
        }

    before = kept()
    erase(bench)
    after = kept()
    gone = {name: set(before[name]) - set(after[name]) for name in before}
    assert len(after["ag_submissions"]) == len(after["ag_extensions"]) == len(after["ag_hints"]) == 2
    assert all(scene["others"] not in row and SECOND not in row for rows in gone.values() for row in rows)
    for who, submission in ((SECOND, scene["others"]), ("ada", scene["ada"])):
        assert bench.get(f"/v1/submissions/{submission}/report", who).json()["verdict"] == "pass"


def test_a_result_that_was_copied_from_the_erased_one_keeps_its_report(bench, scene):
    path = f"/v1/submissions/{scene['ada']}"
    before = bench.get(f"{path}/report", "ada").json()
    erase(bench)
    assert bench.get(f"{path}/report", "ada").json() == before
    assert bench.rows(cache) == []
    (copy,) = [run for run in bench.get(f"{path}/runs", "ada").json()["runs"] if run["counts"]]
    assert copy["cached"]


def test_files_that_others_sent_too_stay_and_the_students_own_go(bench, scene):
    before = {row.digest for row in bench.rows(blobs)}
    answer = erase(bench).json()
    after = {row.digest for row in bench.rows(blobs)}
    assert answer["blobs"] == len(before - after) == 1
    assert after == {row.digest for row in bench.rows(files)}


def test_the_audit_log_tells_the_story_of_a_pseudonym(bench, scene):
    pseudonym = erase(bench).json()["pseudonym"]
    story = bench.get(f"/v1/audit?student={pseudonym}").json()["entries"]
    assert [entry["action"] for entry in story] == [
        "student.erase",
        "extension.grant",
        "grade.change",
        "submission.regrade",
    ]
    granted = story[1]
    assert granted["object"] == f"default/L0.0/{pseudonym}"
    assert granted["detail"] == {
        "student": pseudonym,
        "reason": f"asked by {pseudonym}",
        "before": {pseudonym: None},
    }
    (of_other,) = bench.get(f"/v1/audit?object=default/L0.0/{SECOND}").json()["entries"]
    assert of_other["detail"]["student"] == SECOND and of_other["detail"]["reason"] == f"asked by {pseudonym}"


def test_the_tokens_of_the_erased_open_nothing_and_are_nobodys(bench, scene):
    pseudonym = erase(bench).json()["pseudonym"]
    assert bench.get("/v1/units/L0.0/submissions", ZOE).status_code == 401
    with database.reading(bench.engine) as connection:
        (account,) = [each for each in accounts.list_all(connection) if each.student == pseudonym]
        assert accounts.find_by_secret(connection, bench.token("student", ZOE)) is None
    assert account.revoked_at is not None and account.label == ""


def test_the_idempotency_keys_of_others_stay(bench, scene):
    erase(bench)
    assert [(row.token, row.key) for row in bench.rows(idempotency)] == [("lms", "2")]


def test_what_waits_is_cancelled_and_taken_out_of_the_queue(bench, scene):
    (waiting,) = [row.id for row in bench.rows(run_rows) if row.status == "queued"]
    erase(bench)
    assert bench.queue.cancelled == [waiting]
    assert waiting in bench.queue.forgotten
    bench.graded()  # a worker that gets it nevertheless finds nothing to do
    assert waiting not in {row.id for row in bench.rows(run_rows)}


def test_what_is_being_graded_is_told_to_stop_and_waited_for(bench, post):
    submission = post(ZOE)
    with database.writing(bench.engine) as connection:
        run = connection.execute(sa.select(submissions.c.run)).scalar_one()
        runs.claim(connection, run, "worker-1", bench.clock())
    found = []
    thread = threading.Thread(
        target=lambda: found.append(students.erase(bench.engine, bench.queue, ZOE, who=None, wait_seconds=60))
    )
    thread.start()
    while not [row for row in bench.rows(run_rows) if row.cancel_at is not None]:
        assert thread.is_alive()
    assert [row.id for row in bench.rows(submissions)] == [submission]
    with database.writing(bench.engine) as connection:
        connection.execute(run_rows.update().values(status="cancelled"))
    thread.join(30)
    assert found[0].submissions == 1 and bench.rows(run_rows) == []


def test_the_result_of_a_worker_that_does_not_stop_is_dropped(bench, post):
    """The worker has claimed the run, and ends it after the student is gone."""

    def answer(unit, submission, about, progress):
        students.erase(bench.engine, bench.queue, ZOE, who=None, wait_seconds=0)
        return samples.report(about, unit.id, digest=submission.digest)

    post(ZOE)
    bench.graded(bench.worker(FakeGrading(answer)))
    assert where(bench.engine, ZOE) == set()
    assert bench.rows(results) == []


def test_an_upload_that_began_before_the_erasure_is_not_taken_in_after_it(bench):
    request = httpx.Request("POST", "http://grader.example", **samples.form())
    whole = request.read()

    async def slowly():
        yield whole[:100]
        students.erase(bench.engine, bench.queue, ZOE, who=None)
        yield whole[100:]

    headers = bench.auth(ZOE) | {"Content-Type": request.headers["Content-Type"]}
    answer = bench.client.request("POST", "/v1/units/L0.0/submissions", headers=headers, content=slowly())
    assert (answer.status_code, answer.json()["code"]) == (401, "token_invalid")
    assert where(bench.engine, ZOE) == set()


def test_a_token_is_not_revoked_while_something_is_stored_in_its_name(bench):
    secret = bench.token("student", ZOE)
    with database.writing(bench.engine) as connection:
        account = accounts.find_by_secret(connection, secret)
        assert accounts.hold(connection, account.id, bench.clock())
        thread = threading.Thread(target=lambda: students.erase(bench.engine, bench.queue, ZOE, who=None))
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
    thread.join(30)
    with database.writing(bench.engine) as connection:
        assert not accounts.hold(connection, account.id, bench.clock())


def test_the_job_engine_keeps_nothing_of_an_erased_students_runs(bench):
    queue = DbosQueue(bench.engine)
    submission = Submission("L0.0", {samples.PATH: samples.SOURCE}, (File("test_a.py", samples.TESTS),), ())
    try:
        with database.writing(bench.engine) as connection:
            account = accounts.create(connection, secret="z", role=Role.STUDENT, now=0, student=ZOE)
            stored = [
                add(connection, queue, submission, course="default", student=student, token=account.id, now=0)
                for student in (ZOE, "ada")
            ]
        assert len(where(bench.engine, stored[0].run)) > 2
        students.erase(bench.engine, queue, ZOE, who=None)
        assert where(bench.engine, ZOE) == where(bench.engine, stored[0].run) == set()
        assert len(where(bench.engine, stored[1].run)) > 2
    finally:
        queue.close()


def test_a_student_nobody_knows_is_a_404_and_nothing_is_written(bench, scene):
    before = len(bench.rows(audit_rows))
    for student in ("nobody", "zoë", "%00"):
        assert (erase(bench, student).status_code, erase(bench, student).json()["code"]) == (404, "student_unknown")
        assert bench.get(f"/v1/students/{student}").status_code == 404
    assert len(bench.rows(audit_rows)) == before


def test_only_an_administrator_exports_and_erases(bench, scene):
    for who in ("nobody", ZOE, "lms", "teacher"):
        expected = 401 if who == "nobody" else 403
        assert erase(bench, who=who).status_code == expected
        assert bench.get(f"/v1/students/{ZOE}", who).status_code == expected


def test_a_name_with_slashes_is_exported_and_erased(bench, post):
    post("lms", student="group/7")
    assert bench.get("/v1/students/group/7").status_code == 200
    assert erase(bench, "group%2F7").json()["submissions"] == 1


def test_erasing_twice_finds_nobody(bench, scene):
    assert erase(bench).status_code == 200
    assert erase(bench).status_code == 404


# -- export ----------------------------------------------------------------------------------------------------------


def exported(data):
    archive = zipfile.ZipFile(io.BytesIO(data))
    return archive, json.loads(archive.read("student.json"))


def test_the_export_holds_the_files_as_sent_and_every_run_with_its_report(bench, scene):
    answer = bench.get(f"/v1/students/{ZOE}")
    assert answer.headers["Content-Type"] == "application/zip"
    archive, rows = exported(answer.content)
    assert {row["id"] for row in rows["submissions"]} == {scene["done"], scene["by_lms"], scene["queued"]}
    (done,) = [row for row in rows["submissions"] if row["id"] == scene["done"]]
    (unit_file,) = [file for file in done["files"] if file["kind"] == "unit"]
    assert archive.read(unit_file["file"]) == OWN
    assert [run["kind"] for run in sorted(done["runs"], key=lambda run: run["kind"])] == ["first", "regrade"]
    for run in done["runs"]:
        report = json.loads(archive.read(run["result"]["report"]))
        assert (report["verdict"], report["submission"]["student"]) == ("pass", ZOE)
        assert {outcome["name"] for outcome in run["result"]["outcomes"]} == {"test_doubles", "s01", "m01"}
    assert [row["reason"] for row in rows["extensions"]] == ["ill"]
    assert [(row["mutant"], row["number"], row["helpful"]) for row in rows["hints"]] == [("m01", 2, True)]
    assert len(rows["idempotency"]) == 2
    assert {row["action"] for row in rows["audit"]} == {"submission.regrade", "grade.change", "extension.grant"}


def test_the_export_tells_of_nobody_else_and_no_secret(bench, scene):
    archive, rows = exported(bench.get(f"/v1/students/{ZOE}").content)
    everything = b"".join(archive.read(name) for name in archive.namelist())
    for secret in (samples.HIDDEN, accounts.digest_of(bench.token("student", ZOE)), SECOND, scene["ada"]):
        assert secret.encode() not in everything
    staff = {row.id for row in bench.rows(tokens) if row.role == "teacher"}
    assert not [token for token in staff if token.encode() in everything]
    assert len(rows["tokens"]) == 1


def test_an_export_is_in_the_audit_log(bench, scene):
    bench.get(f"/v1/students/{ZOE}")
    assert bench.rows(audit_rows)[-1].action == "student.export"


# -- the command line ------------------------------------------------------------------------------------------------


@pytest.fixture
def command(bench, monkeypatch):
    monkeypatch.setenv("AUTOGRADER_DATABASE_URL", bench.settings.url)
    return lambda *words, **more: CliRunner().invoke(
        main, ["student", *words, "--data", str(bench.settings.data)], **more
    )


def test_the_command_line_exports_to_a_file_for_its_owner_alone(bench, scene, command, tmp_path):
    target = tmp_path / "zoë.zip"
    result = command("export", ZOE, str(target))
    assert result.exit_code == 0, result.output
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert len(exported(target.read_bytes())[1]["submissions"]) == 3


def test_the_command_line_erases_after_a_yes(bench, scene, command):
    assert command("erase", ZOE, input="n\n").exit_code == 1
    assert where(bench.engine, ZOE)
    result = command("erase", ZOE, input="y\n")
    assert result.exit_code == 0, result.output
    assert where(bench.engine, ZOE) == set()
    assert "3 submissions" in result.output and "Backups" in result.output


def test_the_command_line_says_when_it_knows_nobody_of_that_name(command):
    for words in (("erase", "nobody", "--yes"), ("export", "nobody", "/nowhere/x.zip")):
        result = command(*words)
        assert result.exit_code == 1 and "names this student" in result.output
