from grader.stop import Stop


def test_what_waits_is_called_once_when_it_is_told_and_not_before():
    stop, calls = Stop(), []
    stop.when_told(lambda: calls.append("session"))
    assert (stop.told, calls) == (False, [])
    stop.tell()
    stop.tell()
    assert (stop.told, calls) == (True, ["session"])


def test_who_comes_after_it_was_told_is_called_at_once():
    stop, calls = Stop(), []
    stop.tell()
    stop.when_told(lambda: calls.append("late"))
    assert calls == ["late"]
