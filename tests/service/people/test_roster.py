import pytest

from service import database
from service.accounts import Role
from service.audit import By
from service.people import members, roster, users
from service.people.roster import Change
from service.tables import users as user_rows

HEAD = "email,name,student,section\n"


def only(text):
    rows, faults = roster.read(text)
    assert not faults
    [row] = rows
    return row


@pytest.mark.parametrize(
    "text",
    [
        "email,name,student,section\nada@example.org,Ada L,a1,A\n",
        "\ufeffEmail;Name;Student ID;Section\r\nada@example.org;Ada L;a1;A\r\n",
        "Section\tID number\tFirst name\tSurname\tEmail address\nA\ta1\tAda\tL\tADA@example.org ",
        '"Student Name","SIS User ID","SIS Login ID","Section"\n"Ada L","a1","ada@example.org","A"',
        "\n\nname,email,notes,student,section\n,,,,\nAda L,ada@example.org,x,a1,A\n\n",
    ],
    ids=["ours", "a spreadsheet's", "Moodle's", "Canvas's", "empty lines and other columns"],
)
def test_a_list_is_read_as_it_is_exported(text):
    row = only(text)
    assert (row.login, row.name, row.student, row.section) == ("ada@example.org", "Ada L", "a1", "A")
    assert row.role is Role.STUDENT


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_a_file_is_decoded_as_spreadsheets_write_it(encoding):
    assert only(roster.decoded((HEAD + "u@x.org,Jürgen Weiß,,").encode(encoding))).name == "Jürgen Weiß"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 1, "empty"),
        ("name,section\nAda,A", 1, "email"),
        (HEAD + "ada@x.org,A,a,S\n,Bob,,S", 3, "neither"),
        (HEAD + "a b,A,a,S", 2, "space"),
        (HEAD + "a,A,a,S,more", 2, "5 cells"),
        ('email,notes,student\na,"two\nlines",a1\nb,B,a1', 4, "line 2"),
        (HEAD + "a,A,,S\nA ,B,,S", 3, "line 2"),
        (HEAD + 'a,"A', 1, "CSV"),
        (HEAD + f"a,{'x' * 201},,", 2, "200"),
        (HEAD + f"{'x' * 129},,,", 2, "128"),
        ("login,role\na,boss", 2, "student, grader or teacher"),
        (HEAD + "a\0b,,,", 2, ""),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text, line, said):
    _, faults = roster.read(text)
    assert [fault.line for fault in faults] == [line]
    assert said in faults[0].message


def planned(bench, text):
    with database.reading(bench.engine) as connection:
        return roster.plan(connection, "default", text)


def applied(bench, text, digest=None):
    with database.writing(bench.engine) as connection:
        return roster.apply(connection, "default", text, By(None, bench.clock()), digest)


@pytest.mark.both_databases
def test_a_list_adds_joins_changes_and_names_who_is_not_in_it(bench):
    bench.person("known@x.org")
    bench.person("here@x.org", default="student")
    bench.person("gone@x.org", default="student")
    bench.person("tess", default="teacher")
    text = HEAD + "new@x.org,New,n1,A\nknown@x.org,,,A\nhere@x.org,,,B\ntess,,,A\n"
    plan = applied(bench, text)
    assert [step.change for step in plan.steps] == [Change.NEW, Change.JOINS, Change.CHANGES, Change.SAME]
    assert [member.user.login for member in plan.absent] == ["gone@x.org"]
    with database.reading(bench.engine) as connection:
        now = {m.user.login: (m.role.value, m.section) for m in members.of_course(connection, "default")}
    assert now == {
        "new@x.org": ("student", "A"),
        "known@x.org": ("student", "A"),
        "here@x.org": ("student", "B"),
        "gone@x.org": ("student", ""),
        "tess": ("teacher", ""),
    }
    assert planned(bench, text).changes == 0


def test_somebody_known_by_the_student_id_keeps_their_login(bench):
    with database.writing(bench.engine) as connection:
        users.add(connection, login="lti-4711", name="", student="a1", now=bench.clock())
    [step] = applied(bench, HEAD + "ada@x.org,Ada,a1,\n").steps
    assert (step.change, step.user.login) == (Change.JOINS, "lti-4711")
    assert "goes on" in step.note
    assert [row.name for row in bench.rows(user_rows)] == ["Ada"]  # it had none


def test_a_line_whose_login_and_id_are_two_peoples_is_wrong(bench):
    bench.person("ada@x.org")
    bench.person("b1")
    plan = applied(bench, HEAD + "ada@x.org,Ada,b1,\nnew@x.org,New,,\n")
    assert [fault.line for fault in plan.faults] == [2]
    assert len(bench.rows(user_rows)) == 2  # nothing was done


def test_a_plan_that_is_another_by_now_is_not_applied(bench):
    text = HEAD + "new@x.org,New,,\n"
    digest = planned(bench, text).digest
    bench.person("new@x.org")
    with pytest.raises(roster.Outdated):
        applied(bench, text, digest)
