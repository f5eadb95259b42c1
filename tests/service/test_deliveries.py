"""What staff, and platforms, see of what is told to others, and how they have it told again."""

import pytest

from service import outbox, tables
from service.database import writing
from service.outbox.changes import State
from tests.service.receivers import REFUSED
from tests.service.test_outbox import LINE_ITEM, Outbox

HERE = "/v1/courses/default/deliveries"
PAGE = "/courses/default/deliveries"


@pytest.fixture
def box(make_bench):
    return Outbox(make_bench(cache=False))


def failed(box, *names):
    """Deliveries of graded submissions that a platform refused."""
    box.connect(*names)
    for name in names:
        box.graded(name)
    box.book.faults = [lambda _: REFUSED] * len(names)
    box.send()


def resend(box, path, who="teacher", **body):
    return box.bench.client.request("POST", f"{HERE}{path}", headers=box.bench.auth(who), json=body)


@pytest.mark.both_databases
def test_deliveries_come_by_pages_what_changed_last_first(box):
    names = [f"s{number}" for number in range(7)]
    for name in names:
        box.bench.clock.now += 1
        box.connect(name)
    seen, path = [], f"{HERE}?limit=3"
    while path:
        answer = box.bench.get(path, "teacher").json()
        seen += [each["student"] for each in answer["deliveries"]]
        path = answer["next"]
    assert seen == names[::-1]


@pytest.mark.both_databases
def test_a_filter_shows_what_fits_and_counts_it(box):
    box.connect("ada", "bob", "eve")
    box.graded("ada")
    box.graded("bob")
    box.book.faults = [lambda _: REFUSED]
    box.send()
    answer = box.bench.get(f"{HERE}?state=failed").json()
    [row] = answer["deliveries"]
    assert (row["status_code"], row["error"], row["told"]) == (404, "there is no such line item", {})
    assert answer["counts"] == {"failed": 1}
    counts = box.bench.get(HERE).json()["counts"]
    assert counts == {"failed": 1, "delivered": 1, "idle": 1}
    assert [each["student"] for each in box.bench.get(f"{HERE}?student=eve").json()["deliveries"]] == ["eve"]
    told = box.bench.get(f"{HERE}?state=delivered").json()["deliveries"][0]["told"]
    assert (told["grading"], told["given"]) == ("FullyGraded", 100)


def test_what_was_given_up_is_sent_again_and_that_is_written_down(box):
    failed(box, "ada", "bob")
    assert resend(box, "/resend").json() == {"count": 2}
    assert resend(box, "/resend").json() == {"count": 0}
    box.send()
    assert set(box.states().values()) == {"delivered"}
    [entry] = [row for row in box.bench.rows(tables.audit) if row.action == "delivery.resend"]
    assert (entry.course, entry.detail) == ("default", '{"count": 2}')


def test_one_that_arrived_can_be_sent_again(box):
    box.connect("ada", "bob")
    box.graded("ada")
    box.graded("bob")
    box.send()
    answer = resend(box, f"/{box.row('ada').id}/resend")
    assert (answer.status_code, answer.json()["state"]) == (200, "waiting")
    box.send()
    assert [post["given"] for post in box.book.posts] == [100, 100, 100]
    [entry] = [row for row in box.bench.rows(tables.audit) if row.action == "delivery.resend"]
    assert (entry.student, entry.object) == ("ada", box.row("ada").id)


def test_a_teacher_of_another_course_neither_sees_nor_sends_what_is_told_of_this_one(box):
    failed(box, "ada")
    other = box.bench.browser("eve", other="teacher")
    assert other.get(HERE).status_code == 404
    assert other.get(PAGE).status_code == 404
    csrf = {"x-csrf-token": other.csrf}
    for path in (f"{HERE}/resend", f"{HERE}/{box.row().id}/resend"):
        assert other.send("POST", path, headers=csrf, json={}).status_code == 404
    mine = f"/v1/courses/other/deliveries/{box.row().id}/resend"
    assert other.send("POST", mine, headers=csrf).status_code == 404
    assert box.row().state == "failed"


def test_a_platform_sees_its_own_callbacks_only(box):
    box.bench.submitted("lms", student="ada", callback="https://lms.example/")
    failed(box, "bob")
    assert [each["student"] for each in box.bench.get(HERE, "lms").json()["deliveries"]] == ["ada"]
    assert resend(box, "/resend", who="lms").status_code == 403


def test_the_secret_is_the_tokens_own_and_can_be_replaced(bench):
    first = bench.get("/v1/callback-secret", "lms").json()
    assert first == bench.get("/v1/callback-secret", "lms").json()
    second = bench.client.request("POST", "/v1/callback-secret", headers=bench.auth("lms")).json()
    assert second["secret"] != first["secret"] == second["before"]
    bench.clock.now += 2 * 86_400
    assert bench.get("/v1/callback-secret", "lms").json() == {"secret": second["secret"], "before": None}
    [entry] = [row for row in bench.rows(tables.audit) if row.action == "callback_secret.replace"]
    assert second["secret"] not in entry.detail


# -- the page --------------------------------------------------------------------------------------------------------


def test_the_page_shows_what_went_wrong_and_sends_it_again(box):
    failed(box, "ada", "bob")
    teacher = box.bench.browser("tess", default="teacher")
    shown = teacher.get(PAGE).text
    assert "there is no such line item" in shown
    assert "lms.example" in shown
    answer = teacher.post(PAGE, delivery=box.row("ada").id)
    assert (answer.status_code, answer.headers["Location"]) == (303, f"{PAGE}?resent=1")
    assert box.states() == {"ada": "waiting", "bob": "failed"}
    assert "1 is sent again" in teacher.get(answer.headers["Location"]).text
    assert teacher.post(PAGE).headers["Location"] == f"{PAGE}?resent=1"
    box.send()
    assert "100 of 100" in teacher.get(PAGE).text


def test_a_grader_sees_the_page_without_a_button(box):
    failed(box, "ada")
    grader = box.bench.browser("gus", default="grader")
    shown = grader.get(PAGE)
    assert shown.status_code == 200
    assert "there is no such line item" in shown.text
    assert "Send again" not in shown.text
    assert grader.post(PAGE, delivery=box.row().id).status_code == 403


def test_names_and_answers_are_shown_as_text(box):
    name = "<script>alert(1)</script>"
    with writing(box.bench.engine) as connection:
        outbox.connect(
            connection,
            **{"platform": "moodle", "line_item": LINE_ITEM, "recipient": "7", "course": "default"},
            **{"unit": "L0.0", "student": name, "now": box.bench.clock()},
        )
    shown = box.bench.browser("tess", default="teacher").get(PAGE).text
    assert "<script>alert" not in shown
    assert "&lt;script&gt;alert(1)" in shown


def test_the_page_says_when_nobody_sends(box):
    box.connect("ada")
    box.graded("ada")
    teacher = box.bench.browser("tess", default="teacher")
    assert "no sender seems to run" not in teacher.get(PAGE).text
    box.bench.clock.now += 600
    assert "no sender seems to run" in teacher.get(PAGE).text
    box.send()
    assert "no sender seems to run" not in teacher.get(PAGE).text


def test_the_page_comes_in_pages_and_by_state(box):
    names = [f"s{number:02}" for number in range(60)]
    box.connect(*names)
    teacher = box.bench.browser("tess", default="teacher")
    first = teacher.get(PAGE).text
    [link] = [part.partition('"')[0] for part in first.split('href="')[1:] if "before=" in part.partition('"')[0]]
    second = teacher.get(link.replace("&amp;", "&")).text
    assert sum(name in first for name in names) == 50
    assert sum(name in second for name in names) == 10
    assert "Nothing here" in teacher.get(f"{PAGE}?state={State.FAILED.value}").text
