import re
import xml.etree.ElementTree as ET

import pytest

from service.dashboard.charts import (
    Column,
    Head,
    HeatRow,
    Mark,
    Segment,
    Tone,
    columns,
    heat_map,
    share,
    stacked,
    trend,
)

EVIL = "<script>alert(1)</script>\"'&"
MARKS = {"K": Mark("caught it", Tone.GOOD), ".": Mark("did not notice", Tone.BAD)}


def tree(markup):
    """The markup as a tree; it has to be well-formed."""
    return ET.fromstring(f"<all>{markup}</all>".replace("hidden>", "hidden=''>"))


def columns_of(*counts, title="Scores", summary="Most pass."):
    found = [Column(f"{place}0 %", count, part) for place, (count, part) in enumerate(counts)]
    return columns(title, summary, found, across="score", count="submissions", part="passed")


def heights(markup, tone):
    return [float(rect.get("height")) for rect in tree(markup).iter("rect") if rect.get("class") == tone]


def test_the_largest_column_fills_the_height_and_the_others_are_in_proportion():
    markup = columns_of((4, 0), (2, 0), (1, 0))
    assert heights(markup, "info") == [100.0, 50.0, 25.0]


def test_the_better_part_stands_below_and_the_rest_above_it():
    [group] = tree(columns_of((4, 1))).iter("g")
    rest, better = group.findall("rect")
    assert (rest.get("class"), better.get("class")) == ("info", "good")
    assert float(better.get("height")) == 25.0 and float(rest.get("height")) == 75.0
    assert float(rest.get("y")) == 0.0 and float(better.get("y")) == 75.0
    assert "4 submissions, 1 passed" in group.find("title").text


def test_columns_hold_their_numbers_as_a_table_and_say_what_they_show():
    page = tree(columns_of((4, 1), (0, 0)))
    cells = [[cell.text for cell in row] for row in page.iter("tr")]
    assert cells == [["score", "submissions", "passed"], ["00 %", "4", "1"], ["10 %", "0", "0"]]
    assert next(page.iter("svg")).get("aria-label") == "Most pass."


def test_columns_without_anything_to_count_are_a_sentence_only():
    page = tree(columns_of((0, 0)))
    assert not list(page.iter("svg")) and "Most pass." in "".join(page.itertext())


def test_a_long_axis_shows_its_ends_and_few_between():
    found = [Column(str(place), 1) for place in range(100)]
    [axis] = [
        each
        for each in tree(columns("T", "S", found, across="hour", count="n")).iter("div")
        if each.get("class") == "axis"
    ]
    labels = [span.text for span in axis]
    assert labels[0] == "0" and labels[-1] == "99" and len(labels) == 6


def test_a_column_is_not_made_of_more_than_it_holds():
    with pytest.raises(ValueError):
        Column("a", 1, 2)


def test_a_stacked_bar_is_as_long_as_all_its_parts():
    markup = stacked("Class", "2 of 5.", [Segment("passed", 2, Tone.GOOD, "/x"), Segment("others", 3, Tone.IDLE)])
    page = tree(markup)
    assert next(page.iter("svg")).get("viewBox") == "0 0 5 1"
    assert [(rect.get("x"), rect.get("width")) for rect in page.iter("rect")] == [("0", "2"), ("2", "3")]
    assert ["".join(item.itertext()) for item in page.iter("li")] == ["passed 2", "others 3"]
    assert next(page.iter("a")).get("href") == "/x"


def test_a_share_is_drawn_within_its_track_and_none_is_nothing():
    assert 'width="25.00"' in share(0.25)
    assert 'width="100.00"' in share(7.0) and 'width="0.00"' in share(-1.0)
    assert share(None) == ""
    assert 'x1="80.00"' in share(0.5, Tone.GOOD, 0.8)


def test_a_trend_says_its_last_scores_and_draws_a_line_between_each_two():
    page = tree(trend([0.0, 0.5, 1.0]))
    assert len(list(page.iter("line"))) == 2
    assert next(page.iter("svg")).get("aria-label") == "0 % → 50 % → 100 %"
    assert len(list(tree(trend([0.5])).iter("line"))) == 1
    assert trend([]) == ""


def test_a_heat_map_is_a_table_with_a_head_for_every_row_and_column():
    rows = [HeatRow(Head("ada", "ada", href="/ada"), "K."), HeatRow(Head("bob", "bob"), "..")]
    heads = [Head("m1", "m1", "a sign"), Head("m2", "m2")]
    page = tree(heat_map("Kills", "Who catches what.", rows, heads, MARKS, corner="student"))
    header, *body = page.iter("tr")
    assert [("".join(cell.itertext()), cell.get("scope")) for cell in header] == [
        ("student", "col"),
        ("m1", "col"),
        ("m2", "col"),
    ]
    assert [[("".join(cell.itertext()), cell.get("class")) for cell in row.findall("td")] for row in body] == [
        [("K", "good"), (".", "bad")],
        [(".", "bad"), (".", "bad")],
    ]
    assert [row.find("th").get("scope") for row in body] == ["row", "row"]
    assert {item.get("data-mark"): "".join(item.itertext())[1:] for item in page.iter("li")} == {
        "K": "caught it",
        ".": "did not notice",
    }


def test_a_heat_map_refuses_rows_of_another_width_and_characters_without_a_meaning():
    heads = [Head("m1", "m1")]
    with pytest.raises(ValueError):
        heat_map("T", "S", [HeatRow(Head("a", "a"), "KK")], heads, MARKS)
    with pytest.raises(KeyError):
        heat_map("T", "S", [HeatRow(Head("a", "a"), "?")], heads, MARKS)


def drawings(text):
    """Every chart with the text in every place that takes one."""
    head = Head(text, text, text, text)
    return [
        columns(text, text, [Column(text, 2, 1)], across=text, count=text, part=text, label=text),
        stacked(text, text, [Segment(text, 1, Tone.GOOD, text)]),
        heat_map(text, text, [HeatRow(head, "K")], [head], {"K": Mark(text, Tone.GOOD)}, corner=text),
    ]


@pytest.mark.parametrize("number", range(3))
def test_texts_stay_texts_wherever_they_stand(number):
    page = tree(drawings(EVIL)[number])
    assert "script" not in {each.tag for each in page.iter()}
    assert EVIL in "".join(page.itertext())


@pytest.mark.parametrize("number", range(3))
def test_nothing_is_drawn_by_inline_style(number):
    assert not re.search(r"\bstyle=|<style", drawings("x")[number])
