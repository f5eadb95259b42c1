"""What of two versions of a fixture differs is said by name, and other libraries' last bits are no difference."""

import io
import json
from pathlib import Path

import numpy as np
import pytest

from grader import fixtures
from grader.units import load_course
from tests.grader.small_course import FILES, MODULE, write_course


def npz(**arrays: object) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **{name: np.asarray(array) for name, array in arrays.items()})  # type: ignore[arg-type]
    return stream.getvalue()


def npy(array: object) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.asarray(array))
    return stream.getvalue()


def text(value: object) -> bytes:
    return json.dumps(value).encode()


X = np.array([1.0, 2.0, np.nan])


@pytest.mark.parametrize(
    ("name", "kept", "made", "told"),
    [
        ("a.npz", npz(x=X, m=[True]), npz(m=[True], x=X * (1 + 1e-14)), ""),
        ("a.npz", npz(x=X), npz(x=X + 1e-9), "values of x"),
        ("a.npz", npz(x=X.astype("f4")), npz(x=(X + 1e-7).astype("f4")), ""),
        ("a.npz", npz(x=X, y=X), npz(x=X), "y is only in the file that is kept"),
        ("a.npz", npz(x=X), npz(x=X, y=X), "y is only in the new one"),
        ("a.npz", npz(x=X), npz(x=X[:2]), "x is float64[2], not float64[3]"),
        ("a.npz", npz(x=X), npz(x=X.astype("f4")), "x is float32[3], not float64[3]"),
        ("a.npz", npz(m=[True]), npz(m=[False]), "values of m"),
        ("a.npy", npy(X), npy(X[:1]), "array is float64[1], not float64[3]"),
        ("a.npz", npz(x=X), b"nothing", "it cannot be read: "),
        ("a.json", b'{"a": 1.0, "b": [1]}', b'{"b":[1],"a":1.0000000000000002}', ""),
        ("a.json", text({"a": [1, {"b": 0.5}]}), text({"a": [1, {"b": 0.6}]}), "the value.a[1].b"),
        ("a.json", text({"a": 1}), text({"b": 1}), "the value.a"),
        ("a.json", text([1]), text([1, 2]), "the length of the value"),
        ("a.json", text([1]), text(["1"]), "the value[0]"),
        ("a.json", text([True]), text([1]), "the value[0]"),
        ("a.bin", b"1", b"1", ""),
        ("a.bin", b"1", b"2", "its bytes"),
    ],
)
def test_what_differs_is_named(name: str, kept: bytes, made: bytes, told: str) -> None:
    found = fixtures.difference(name, kept, made)
    assert found == told or (told.endswith(": ") and found.startswith(told))


def test_a_script_of_another_name_may_make_several_where_it_thinks_they_lie(tmp_path: Path) -> None:
    script = (
        "import os\nfrom pathlib import Path\nfrom tinyllm.demo import deep\n\n"
        "Path('course/fixtures/Z1/data.json').write_text('{}')\n"
        "Path(os.environ['TINYLLM_FIXTURES'], 'Z1/more.txt').write_text('more')\n"
    )
    tree = write_course(
        tmp_path,
        {
            "course/modules/Z1.toml": MODULE.replace('["Z1/data.json"]', '["Z1/data.json", "Z1/more.txt"]'),
            "course/fixtures/Z1/more.txt": "more",
            "course/oracle/Z1/data.py": None,
            "course/oracle/Z1/both.py": script,
        },
    )
    assert fixtures.problems(load_course(tree).units["Z1"], tree) == []
    assert (tree / "fixtures/Z1/data.json").read_text() == FILES["course/fixtures/Z1/data.json"]
    (tree / "oracle/Z1/both.py").write_text(f"{script}raise SystemExit(3)\n")
    assert fixtures.problems(load_course(tree).units["Z1"], tree) == []  # both were made all the same
    (tree / "oracle/Z1/both.py").write_text("raise SystemExit(3)\n")
    told = fixtures.problems(load_course(tree).units["Z1"], tree)
    assert told == [f"fixtures/Z1/{name}: oracle/Z1/both.py ends with status 3." for name in ("data.json", "more.txt")]
