"""Questions beside the code: students answer, a machine marks what it can, and teachers read the rest."""

import pytest

from service import students, tables
from service.database import reading

pytestmark = pytest.mark.both_databases

QUIZ = "/v1/units/L0.0/quiz"
CLASS = "/v1/courses/default/units/L0.0/quiz"


def answer(bench, who="ada", course="default", **answers):
    body = {"course": course, "answers": answers}
    return bench.client.request("POST", QUIZ, headers=bench.auth(who), json=body)


def marks(answer):
    return {each["question"]: each["mark"] for each in answer.json()["answers"]}


def test_questions_are_asked_without_their_answers(bench):
    answer = bench.get(QUIZ, "nobody")
    assert answer.status_code == 200
    assert [question["id"] for question in answer.json()["questions"]] == ["shape", "why"]
    assert "A pair has two" not in answer.text and answer.json()["answers"] == []


def test_what_a_machine_can_tell_is_marked_and_the_rest_kept_for_the_teacher(bench):
    assert marks(answer(bench, shape="3")) == {"shape": "wrong"}
    assert marks(answer(bench, shape="(2,)", why="because\0 of it")) == {"shape": "right", "why": "kept"}
    answer(bench, "bob", why="no idea")
    page = bench.get(CLASS, "teacher").json()
    assert {each["student"]: {a["question"]: a["answer"] for a in each["answers"]} for each in page["students"]} == {
        "ada": {"shape": "pair: [2]", "why": "because of it"},
        "bob": {"why": "no idea"},
    }
    assert marks(bench.get(QUIZ, "ada")) == {"shape": "right", "why": "kept"}


def test_a_long_class_comes_in_pages(bench):
    for name in ("ada", "bob", "cyd"):
        answer(bench, name, why="x")
    first = bench.get(CLASS + "?limit=2", "teacher").json()
    assert [each["student"] for each in first["students"]] == ["ada", "bob"]
    rest = bench.get(first["next"], "teacher").json()
    assert ([each["student"] for each in rest["students"]], rest["next"]) == (["cyd"], None)


def test_only_students_answer_and_only_staff_read_the_class(bench):
    assert answer(bench, "teacher", why="x").status_code == 403
    assert bench.get(CLASS, "ada").status_code == 403
    assert answer(bench, course="spring", why="x").status_code in (403, 422)


def test_a_unit_without_questions_says_so(make_bench):
    from dataclasses import replace

    from tests.service import samples

    bench = make_bench(samples.course(replace(samples.unit(), quiz=None)))
    for found in (bench.get(QUIZ), bench.get(CLASS, "teacher"), answer(bench, why="x")):
        assert (found.status_code, found.json()["code"]) == (404, "quiz_unknown")


@pytest.mark.parametrize("answers", [{"shape": {"pair": "2"}}, {"shape": [2]}, {"shape": 2}])
def test_shapes_may_be_sent_as_one_likes(bench, answers):
    assert marks(answer(bench, **answers)) == {"shape": "right"}


def test_answers_go_with_their_student(bench):
    answer(bench, why="mine")
    answer(bench, "bob", why="his")
    with reading(bench.engine) as connection:
        assert students.is_known(connection, "ada")
    students.erase(bench.engine, bench.queue, "ada", who=None, wait_seconds=0)
    assert [row.student for row in bench.rows(tables.quiz_answers)] == ["bob"]


def test_half_a_character_is_kept_as_a_sign_for_none(bench):
    headers = {**bench.auth("ada"), "Content-Type": "application/json"}
    sent = bench.client.request("POST", QUIZ, headers=headers, content=b'{"answers": {"why": "a \\ud800 b"}}')
    assert (sent.status_code, sent.json()["answers"][0]["answer"]) == (200, "a ? b")
