import pytest

from grader import wording
from sandbox.records import Ending, EndingKind, Limits, Resource

BOUNDED = [kind for kind in EndingKind if kind not in (EndingKind.COMPLETE, EndingKind.DEADLINE)]


def test_names_from_outside_lose_what_moves_a_cursor_or_turns_text() -> None:
    shown = wording.shown("a\x1b[2J\n\u202eb.py")
    assert shown.isprintable() and "b.py" in shown


def test_long_names_keep_their_ends() -> None:
    shown = wording.shown("a" * 500 + ".py")
    assert len(shown) <= wording.NAME_SHOWN_CHARS and shown.endswith(".py")


def test_lists_name_a_few_and_count_the_rest() -> None:
    assert wording.listed(["a", "b", "c"]) == "a, b, c"
    assert wording.listed(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"


@pytest.mark.parametrize("kind", EndingKind)
def test_every_ending_has_a_cause_with_a_sentence(kind: EndingKind) -> None:
    cause = wording.cause(Ending(kind, limit=3.0, seen=9.0))
    assert cause.code == kind.value and cause.message.endswith(".")


@pytest.mark.parametrize("kind", BOUNDED)
def test_every_cause_says_what_to_do(kind: EndingKind) -> None:
    assert wording.cause(Ending(kind)).message.count(".") >= 2


@pytest.mark.parametrize("kind", BOUNDED)
def test_what_was_measured_stands_in_no_message_but_a_signals(kind: EndingKind) -> None:
    one, two = (wording.cause(Ending(kind, limit=3.0, seen=seen)) for seen in (6.0, 11.0))
    assert (one.message == two.message) is (kind is not EndingKind.SIGNAL)
    plain = [wording.without_seen(cause) for cause in (one, two)]
    assert plain[0] == plain[1] and plain[0].seen is None


@pytest.mark.parametrize("kind", [EndingKind.CPU_TIME, EndingKind.NO_PROGRESS])
def test_a_measured_time_limit_can_be_left_out(kind: EndingKind) -> None:
    told, untold = (wording.cause(Ending(kind, limit=3.25), tell_limit=tell) for tell in (True, False))
    assert "3.25 s" in told.message and told.limit == 3.25
    assert "3.25" not in untold.message and untold.limit is None


@pytest.mark.parametrize("resource", Resource)
def test_every_limit_a_test_can_meet_is_named_with_its_number(resource: Resource) -> None:
    cause = wording.resource_cause(resource, Limits())
    assert cause.code == resource.value and cause.limit


@pytest.mark.parametrize(
    ("names", "more", "start"),
    [
        (["t.py::a"], False, "t.py::a rejects"),
        (["t.py::a", "t.py::b"], False, "t.py::a, t.py::b reject "),
        (["t.py::a"], True, "t.py::a and others reject "),
        ([], True, "Tests of yours whose names are made while they run reject "),
    ],
)
def test_verbs_agree_with_how_many_tests_are_meant(names: list[str], more: bool, start: str) -> None:
    assert wording.rejects_correct_code(names, more=more).startswith(start)
