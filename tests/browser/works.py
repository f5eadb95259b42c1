"""The name of a piece of work goes in; the files a student would send come out.

A piece of work is code and tests. Both come from tests/samples, some of the tests with a belief put into them: an
oracle that repeats a pitfall of the student's own code, as happens when somebody tests what they think and not what
the chapter says.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from grader.submission import Upload
from tests.samples.loading import load

UNIT = "L5.3"


@dataclass(frozen=True)
class Belief:
    """Tests of a sample in which some texts are replaced: (file, before, after)."""

    suite: str
    changes: tuple[tuple[str, str, str], ...]


BELIEFS: Mapping[str, Belief] = {
    "believes_scale_by_model_width": Belief(
        "correct_plain",
        (
            ("numpy_mha.py", "np.sqrt(width)", "np.sqrt(d)"),
            ("test_attention.py", "sigmoid(1 / math.sqrt(2)), sigmoid(-4 / math.sqrt(2))", "sigmoid(0.5), sigmoid(-2)"),
        ),
    ),
    "believes_masks_need_no_head_axis": Belief(
        "correct_plain",
        (
            (
                "test_attention.py",
                "assert_same(make(6, 3), x, x, mask, mask[:, None])",
                "assert_same(make(6, 3), x, x, mask)",
            ),
        ),
    ),
}


@dataclass(frozen=True)
class Work:
    """Whose mha.py is sent with whose tests: names of samples, or a belief."""

    code: str
    suite: str

    @property
    def name(self) -> str:
        return f"{self.code}+{self.suite}"


def mha_of(work: Work, signature: str = "") -> bytes:
    """The file of the unit, signed with a comment at its end, so that no two students send the same."""
    return load(work.code).mha + (f"{MARK}{signature}\n".encode() if signature else b"")


MARK = "\n# written by "


def unsigned(source: bytes) -> bytes:
    return source.partition(MARK.encode())[0]


def tests_of(work: Work) -> tuple[Upload, ...]:
    belief = BELIEFS.get(work.suite)
    if belief is None:
        return load(work.suite).tests
    files = {upload.name: upload.data.decode() for upload in load(belief.suite).tests}
    for name, before, after in belief.changes:
        if files[name].count(before) != 1:
            raise ValueError(f"{work.suite}: {before!r} does not stand once in {name}")
        files[name] = files[name].replace(before, after)
    return tuple(Upload(name, text.encode()) for name, text in files.items())
