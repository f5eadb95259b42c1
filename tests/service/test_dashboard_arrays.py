"""Heat maps of two arrays are drawn of what the report holds, whatever that is."""

from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from grader.report import ComparedPart
from service.dashboard.arrays import figure

ENTRY = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["nan", "inf", "-inf"]))


def part(expected: list[list[object]], actual: list[list[object]]) -> ComparedPart:
    shape = [len(expected), len(expected[0])]
    said = {"axes": [], "shape": shape, "at": [0, 0], "first": [0, 0], "expected": expected, "actual": actual}
    return ComparedPart.model_validate(said)


def shades(tree: ElementTree.Element, which: int) -> list[float]:
    """How strong the cells of a drawing are."""
    return [float(rect.get("fill-opacity", "-1")) for rect in tree.findall(".//svg")[which].findall("rect")[:-1]]


def drawn(found: ComparedPart) -> ElementTree.Element:
    return ElementTree.fromstring(str(figure("map-1", found)))


def test_larger_is_stronger_on_one_scale_for_both() -> None:
    tree = drawn(part([[0.0, 1.0]], [[0.5, 2.0]]))
    expected, actual = shades(tree, 0), shades(tree, 1)
    assert expected[0] < actual[0] < expected[1] < actual[1] == 1


def test_the_difference_is_strongest_where_it_is_largest_whichever_sign_it_has() -> None:
    tree = drawn(part([[1.0, 1.0, 1.0]], [[1.0, 2.0, -3.0]]))
    none, some, most = shades(tree, 2)
    assert none < some < most == 1
    tones = [rect.get("class") for rect in tree.findall(".//svg")[2].findall("rect")]
    assert tones[1] != tones[2]


def test_a_number_that_is_not_finite_is_crossed_out_and_named_in_the_table() -> None:
    tree = drawn(part([[1.0, 2.0]], [["nan", 2.0]]))
    assert [len(svg.findall("path")) for svg in tree.findall(".//svg")] == [0, 1, 1]
    assert [cell.text for cell in tree.findall(".//td/b")] == ["1", "nan"]


def test_every_drawing_has_a_title_and_a_description_of_its_own() -> None:
    tree = drawn(part([[1.0]], [[2.0]]))
    ids = {each.get("id") for each in tree.iter() if each.get("id")}
    named = [str(svg.get("aria-labelledby")).split() for svg in tree.findall(".//svg")]
    assert len(named) == 3 and {each for pair in named for each in pair} == ids and len(ids) == 6


@given(st.data())
def test_whatever_the_numbers_the_figure_is_well_formed_and_shades_are_shares(data: st.DataObject) -> None:
    rows, columns = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    both = [[[data.draw(ENTRY) for _ in range(columns)] for _ in range(rows)] for _ in range(2)]
    tree = drawn(part(both[0], both[1]))
    for which in range(3):
        assert all(0 <= shade <= 1 for shade in shades(tree, which))
    assert len(tree.findall(".//table")) == 2
