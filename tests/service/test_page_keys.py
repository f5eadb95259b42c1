import pytest
from hypothesis import given
from hypothesis import strategies as st

from service import page_keys

ROWS = st.lists(st.tuples(st.floats(allow_nan=False, allow_infinity=False), st.text()), unique=True)


def itself(row):
    return row


@given(ROWS, st.integers(1, 4))
def test_pages_together_are_all_rows_in_their_order(rows, limit):
    rows, found, after = sorted(rows), [], None
    while True:
        page, after = page_keys.page(rows, itself, "x", limit, after)
        found += page
        assert len(page) <= limit
        if after is None:
            break
    assert found == rows


def test_a_page_continues_behind_a_row_that_is_gone():
    rows = [(0.0, name) for name in "abcd"]
    _, after = page_keys.page(rows, itself, "x", 2, None)
    page, _ = page_keys.page([row for row in rows if row[1] != "b"], itself, "x", 2, after)
    assert page == [(0.0, "c"), (0.0, "d")]


@pytest.mark.parametrize(
    "text", ["", "!", "e30", "bnVsbA", "WzFd", page_keys.write((1.0, "a"), "another"), "ö", "A" * 900]
)
def test_what_is_no_key_of_this_order_is_refused(text):
    with pytest.raises(page_keys.BadKey):
        page_keys.page([], itself, "x", 1, text)
