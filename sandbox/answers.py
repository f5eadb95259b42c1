"""Reads a drive's record: bytes that untrusted code wrote come in, its answers and where it broke off leave.

Frames as `inside/drive.py` states them, case after case. Reading stops at the first frame that is not as it must be;
every answer before it is kept.
"""

from dataclasses import dataclass

from sandbox.arrays import Array, arrays_of
from sandbox.records import Answer
from sandbox.wire import Header, WireError, decode, expect, frame_length

HEADER_BYTES = 64 << 10
TEXT_CHARACTERS = 2000


@dataclass(frozen=True)
class DecodedAnswers:
    """`running` is the case that had begun and not ended; `problem` says what is wrong with the record, if anything.
    `broken` is why the driver, which is ours, could not be loaded: nothing of the unit had run by then."""

    answers: tuple[Answer, ...]
    ended: bool = False
    running: str | None = None
    problem: str = ""
    broken: str = ""


def decode_answers(data: bytes, cases: int) -> DecodedAnswers:
    """The answers to so many cases, as far as they are some. A last frame that was cut off is left out."""
    reader = _Reader(cases)
    problem = ""
    try:
        at = 0
        while at < len(data):
            length = frame_length(data[at : at + 8])
            if length is None or at + length > len(data):
                if reader.ended:
                    raise WireError("bytes after the end of the record")
                break
            if int.from_bytes(data[at : at + 4], "big") > HEADER_BYTES:
                raise WireError("a header too large")
            reader.read(*decode(data[at : at + length]))
            at += length
    except WireError as error:
        problem = str(error)
    running = None if reader.running is None else str(reader.running)
    return DecodedAnswers(tuple(reader.answers), reader.ended, running, problem, reader.broken)


class _Reader:
    def __init__(self, cases: int) -> None:
        self._cases = cases
        self.answers: list[Answer] = []
        self.running: int | None = None
        self.ended = False
        self.broken = ""

    def read(self, header: Header, body: bytes) -> None:
        if self.ended or self.broken:
            raise WireError("a frame after the end of the record")
        event = header.pop("event", None)
        if body and event != "answer":
            raise WireError("a frame with a body it should not have")
        if event == "start":
            self._start(**expect(header, case=int))
        elif event == "answer":
            self._answer(header, body)
        elif event == "error":
            self._error(**expect(header, case=int, message=str))
        elif event == "end":
            self._end(**expect(header, cases=int))
        elif event == "broken":
            self._broken(**expect(header, message=str))
        else:
            raise WireError("a frame of no known kind")

    def _start(self, case: int) -> None:
        if self.running is not None or case != len(self.answers) or case >= self._cases:
            raise WireError("a case began out of turn")
        self.running = case

    def _answer(self, header: Header, body: bytes) -> None:
        expect(header, case=int, arrays=list)
        self._keep(header["case"], arrays_of(header["arrays"], body), "")

    def _error(self, case: int, message: str) -> None:
        if not message or len(message) > TEXT_CHARACTERS:
            raise WireError("an error without a text, or with one too long")
        self._keep(case, {}, message)

    def _keep(self, case: int, arrays: dict[str, Array], error: str) -> None:
        if case != self.running:
            raise WireError("an answer to a case that was not running")
        self.answers.append(Answer(case, arrays, error))
        self.running = None

    def _end(self, cases: int) -> None:
        if self.running is not None or cases != self._cases or len(self.answers) != cases:
            raise WireError("the end of a record that is not whole")
        self.ended = True

    def _broken(self, message: str) -> None:
        if self.answers or self.running is not None:
            raise WireError("a driver that broke after it had begun")
        self.broken = message or "for no known reason"
