"""A course of 30 and a clock go in; an evening of submissions comes out, student by student, as it would have been.

    python -m tests.browser.evening

shows it: a service on this machine, and links with which a teacher, a grader, an administrator and a student come in.

Each student has a story: the pieces of work sent one after the other. Two things are misunderstood by many, in code and
tests alike: the scale of the scores, and where a mask per sequence belongs.
"""

import csv
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from grader.units import DEFAULT_COURSE, load_course
from service.accounts import Role
from tests.browser.replay import replaying
from tests.browser.stage import Stage, staged
from tests.browser.works import UNIT, Work, mha_of, tests_of

COURSE = "deep-27"
TEACHER, GRADER, ADMIN = "grace", "hal", "ken"
WITH_CALLBACK = 5  # so many of the roster are sent by a platform that wants to be called back
ROSTER = Path(__file__).parent / "roster.csv"
EVENING_SECONDS = 5 * 3600.0
GOOD = "correct_plain"


def _story(*works: tuple[str, str]) -> tuple[Work, ...]:
    return tuple(Work(code, suite) for code, suite in works)


SCALE = ("pitfall_scale_by_model_width", "believes_scale_by_model_width")
MASKS = ("pitfall_mask_without_head_axis", "believes_masks_need_no_head_axis")

STORIES: tuple[tuple[int, tuple[Work, ...]], ...] = (
    # how many students, and what each of them sends
    (3, _story((GOOD, GOOD))),
    (
        2,
        _story(
            ("missing_method", "suite_shapes_only"),
            ("correct_by_hand", "suite_outputs_only"),
            ("correct_by_hand", GOOD),
        ),
    ),
    (2, _story((GOOD, "suite_printed_numbers"), (GOOD, "suite_outputs_only"), (GOOD, GOOD))),
    (1, _story(("syntax_error", GOOD), ("correct_functions", GOOD))),
    (6, _story(("pitfall_scale_by_model_width", "suite_shapes_only"), SCALE, SCALE)),
    (2, _story(SCALE, (GOOD, GOOD))),
    (4, _story(("pitfall_mask_without_head_axis", "suite_shapes_only"), MASKS)),
    (1, _story(MASKS, MASKS, ("correct_one_head_at_a_time", GOOD))),
    (
        1,
        _story(("pitfall_merge_by_reshape", "suite_shapes_only"), ("pitfall_merge_by_reshape", "suite_gradients_only")),
    ),
    (1, _story(("pitfall_dropout_in_eval", "suite_outputs_only"), (GOOD, "suite_outputs_only"))),
    (1, _story(("pitfall_keys_from_queries", "suite_shapes_only"))),
    (1, _story(("raises_in_init", "suite_without_tests"))),
    (1, _story(("endless_loop_in_attend", "suite_fixtures"))),
    (1, _story((GOOD, "suite_over_strict"), (GOOD, "suite_over_strict"))),
    (1, _story(("import_error", GOOD), ("pitfall_packed_as_k_q_v", GOOD))),
    (2, ()),  # who have not begun
)


@dataclass(frozen=True)
class Sent:
    """A submission: seconds after the evening began, the student's place in the roster, and what is sent."""

    seconds: float
    place: int
    attempt: int
    work: Work


def stories() -> tuple[tuple[Work, ...], ...]:
    """One for each student of the roster, in its order."""
    told = [story for count, story in STORIES for _ in range(count)]
    random.Random(7).shuffle(told)
    return tuple(told)


def evening() -> list[Sent]:
    """Everything that is sent, in the order of time."""
    draw = random.Random(11)

    def of_one(place: int, story: tuple[Work, ...]) -> Iterator[Sent]:
        times = sorted(draw.uniform(0, EVENING_SECONDS) for _ in story)
        for attempt, (seconds, work) in enumerate(zip(times, story, strict=True), 1):
            yield Sent(seconds, place, attempt, work)

    sent = [one for place, story in enumerate(stories()) for one in of_one(place, story)]
    return sorted(sent, key=lambda one: one.seconds)


def who_sent(work: Work) -> str:
    """A student whose last submission this is."""
    return roster()[next(place for place, story in enumerate(stories()) if story and story[-1] == work)].student


def all_works() -> list[Work]:
    """What is sent at all, each once, in a steady order."""
    return sorted({work for _, story in STORIES for work in story}, key=lambda work: work.name)


# -- played on a service ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Person:
    """A line of the roster. `student` is the id that submissions know."""

    student: str
    name: str
    email: str
    section: str


def roster() -> tuple[Person, ...]:
    with ROSTER.open(encoding="utf-8", newline="") as stream:
        return tuple(Person(**row) for row in csv.DictReader(stream))


def enrol(stage: Stage, added: str = "") -> None:
    """A course with everybody of the roster, who teaches them, who grades, and who runs the service. `added` stands
    behind every name."""
    stage.course_begins(COURSE, f"Deep learning from scratch{added}")
    for person in roster():
        stage.person(person.student, person.name + added, course=COURSE, section=person.section + added)
    stage.person(TEACHER, "Grace Hopper", course=COURSE, role=Role.TEACHER)
    stage.person(GRADER, "Hal Abelson", course=COURSE, role=Role.GRADER)
    stage.person(ADMIN, "Ken Thompson", admin=True)


def play(stage: Stage) -> None:
    """Send everything at its time, and wait for each report before the clock moves on."""
    people = roster()
    with stage.client(Role.LMS) as client:
        for sent in evening():
            stage.clock.now = stage.begins_at + sent.seconds
            student = people[sent.place].student
            stage.sent[student] = send(client, student, sent)
            stage.settled()
    stage.clock.now = stage.begins_at + EVENING_SECONDS


def try_again(stage: Stage) -> None:
    """Have the latest submission of each student graded for trial."""
    body = {"course": COURSE, "unit": UNIT, "which": "latest", "reason": "A mutant was changed."}
    with stage.client(Role.ADMIN) as client:
        answer = client.post("/v1/regrades", json=body)
    assert answer.status_code == 202, answer.text
    stage.trial = str(answer.json()["id"])
    stage.settled()


def send(client: httpx.Client, student: str, sent: Sent) -> str:
    """The id of the submission."""
    signature = f"{student}, attempt {sent.attempt}"
    files = [("mha", ("mha.py", mha_of(sent.work, signature)))]
    files += [("tests", (upload.name, upload.data)) for upload in tests_of(sent.work)]
    fields = {"course": COURSE, "student": student}
    if sent.place < WITH_CALLBACK:
        fields["callback"] = "https://lms.example/grades"
    answer = client.post(f"/v1/units/{UNIT}/submissions", files=files, data=fields)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def watch(folder: Path) -> None:
    """Serve the class until Enter is pressed, its evening played within a minute or two."""
    course = load_course(DEFAULT_COURSE)
    with staged(folder, course, replaying(course.units[UNIT], all_works())) as stage:
        enrol(stage)
        for login in (TEACHER, GRADER, ADMIN, roster()[0].student):
            print(f"{login}: {stage.url}{stage.invitation(login)}", flush=True)
        play(stage)
        stage.clock.runs()
        input("The evening is over; Enter ends the service. ")


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        watch(Path(folder))
