import threading

import pytest

from service.stats import BUCKETS, Figures, Stats


def test_what_was_counted_comes_out_of_json_again():
    stats = Stats()
    stats.count("graded", verdict="pass")
    stats.count("graded", 2, verdict="fail")
    stats.set("grading", 3)
    stats.observe("phase_seconds", 0.3, phase="mutants")
    stats.observe("phase_seconds", 1e9, phase="mutants")
    figures = Figures.from_json(stats.read().to_json())
    assert figures == stats.read()
    assert figures.numbers["graded"] == {("pass",): 1, ("fail",): 2}
    row = figures.buckets["phase_seconds"][("mutants",)]
    assert (row[BUCKETS.index(0.5)], row[len(BUCKETS)], row[-1]) == (1, 1, 1e9 + 0.3)


def test_a_bucket_holds_what_is_at_most_its_bound():
    stats = Stats()
    for bound in BUCKETS:
        stats.observe("phase_seconds", bound, phase="a")
    assert stats.read().buckets["phase_seconds"][("a",)][:-1] == (*[1] * len(BUCKETS), 0)


def test_only_what_is_listed_can_be_counted_and_only_as_its_kind():
    stats = Stats()
    with pytest.raises(KeyError):
        stats.count("unheard")
    for wrong in (
        lambda: stats.count("graded"),
        lambda: stats.count("graded", verdict="pass", student="ada"),
        lambda: stats.observe("graded", 1.0, verdict="pass"),
        lambda: stats.set("graded", 1.0, verdict="pass"),
    ):
        with pytest.raises(ValueError, match="graded is a counter"):
            wrong()


def test_a_label_that_takes_too_many_values_stops_growing():
    stats = Stats()
    for number in range(5000):
        stats.count("graded", verdict=str(number))
        stats.observe("phase_seconds", 1.0, phase=str(number))
    figures = stats.read()
    assert len(figures.numbers["graded"]) == len(figures.buckets["phase_seconds"]) == 1000


def test_figures_of_another_version_are_read_as_far_as_they_are_known():
    text = '{"numbers": {"unheard": [["a", 1]], "graded": [["pass", "more", 1]], "takeovers": [[4]]}}'
    assert Figures.from_json(text) == Figures({"takeovers": {(): 4.0}}, {})
    assert Figures.from_json("{}") == Figures({}, {})


def test_threads_count_together():
    stats = Stats()
    threads = [
        threading.Thread(target=lambda: [stats.count("graded", verdict="pass") for _ in range(2000)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stats.read().numbers["graded"] == {("pass",): 8000}
