"""What a course tree, a student's code or a service said is printed so that it moves no cursor and has no colour."""

import json

import pytest

from grader.ol.screen import Screen

HOSTILE = "\x1b]0;x\x07[bold]\u202e\x9b2J [/no]"


@pytest.mark.parametrize("as_json", [False, True])
def test_nothing_that_is_printed_controls_the_terminal(capsys: pytest.CaptureFixture[str], as_json: bool) -> None:
    screen = Screen(as_json=as_json)
    screen.say(f"one {HOSTILE}\ntwo\tthree")
    screen.lines(f"PASS {HOSTILE}\n  ok   {HOSTILE}\n")
    screen.table(("Head",), [(HOSTILE,)])
    screen.note(HOSTILE)
    screen.tell({"said": HOSTILE})
    printed = capsys.readouterr()
    assert all(each.isprintable() or each == "\n" for each in printed.out + printed.err), printed
    assert "[bold]" in printed.err
    if as_json:
        assert json.loads(printed.out) == {"said": HOSTILE}
    else:
        assert printed.out.count("[bold]") == 4 and "\ntwo three" in printed.out
