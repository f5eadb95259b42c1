import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.pseudonyms import in_json, in_segments, in_text, new_pseudonym

X = "erased-0"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ada", X),
        ("as ada said.", f"as {X} said."),
        ("ada's laptop (ada)", f"{X}'s laptop ({X})"),
        ("like ada.", f"like {X}."),
        (
            "adaptive, ada-2, ada.b, b.ada, ada@example.org, x_ada",
            "adaptive, ada-2, ada.b, b.ada, ada@example.org, x_ada",
        ),
        ("Ada", "Ada"),
    ],
)
def test_a_name_is_replaced_where_it_stands_as_a_whole(text, expected):
    assert in_text("ada", X)(text) == expected


@pytest.mark.parametrize("name", ["o'neil", "a.b@c.org", "Ada Lovelace", "(x)", "名前", "a+b", "\\d"])
def test_any_name_is_found_in_a_sentence(name):
    assert in_text(name, X)(f"for {name}, twice {name}!") == f"for {X}, twice {X}!"


def test_an_id_made_of_several_keeps_the_other_names():
    assert in_segments("ada", X)("default/L5.3/ada") == f"default/L5.3/{X}"
    assert in_segments("ada", X)("default/L5.3/ada lovelace") == "default/L5.3/ada lovelace"
    assert in_segments("a/b", X)("default/L5.3/a/b") == f"default/L5.3/{X}"


def test_json_is_searched_through_and_names_of_others_stay():
    detail = {
        "student": "ada lovelace",
        "students": ["ada", "bob"],
        "reason": "ada asked",
        "scores": {"ada": 1, "bob": None},
        "deep": [{"x": "ada"}, 7, True],
    }
    assert in_json("ada", X)(detail) == {
        "student": "ada lovelace",
        "students": [X, "bob"],
        "reason": f"{X} asked",
        "scores": {X: 1, "bob": None},
        "deep": [{"x": X}, 7, True],
    }


VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=8), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
)


@given(VALUES)
def test_json_without_the_name_is_left_as_it_is(value):
    assert in_json("a name nobody has", X)(value) == value


def test_no_two_pseudonyms_are_the_same():
    assert len({new_pseudonym() for _ in range(100)}) == 100
