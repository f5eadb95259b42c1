"""One run of a drive: a driver of ours calls the unit under test, case by case; frames leave through a descriptor.

    {"event": "start", "case"}                      a case begins: if nothing follows, the run ended in it
    {"event": "answer", "case", "arrays"}  body     what the driver returned for it (`sandbox.arrays`)
    {"event": "error", "case", "message"}           an exception that left the driver, or the unit's import
    {"event": "end", "cases"}                       the last frame of a run that was not cut short
    {"event": "broken", "message"}                  the only frame of a driver that cannot be loaded

The unit is imported inside the first case, so that whatever it does there belongs to a case. The driver shares its
process with the unit, so nothing it knows may be worth knowing, and nothing it sends is believed without comparing.
"""

import importlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy

from sandbox.arrays import ITEM_BYTES, Array, arrays_of, described
from sandbox.inside.recorder import Place, message_of
from sandbox.wire import decode, encode

Write = Callable[[bytes], None]


def run_drive(source: bytes, filename: str, unit: str, cases: Sequence[bytes], place: Place, write: Write) -> None:
    """Call the driver's `drive(unit, case)` for every case; a case is a frame {"case": {...}, "arrays"} with a body."""
    try:
        drive = driver_of(source, filename)
        decoded = [case_of(case) for case in cases]
    except Exception as error:
        write(encode({"event": "broken", "message": message_of(error, place)}))
        return
    pid = os.getpid()
    for number, case in enumerate(decoded):
        write(encode({"event": "start", "case": number}))
        answer = answer_of(drive, unit, case, number, place)
        if os.getpid() != pid:
            os._exit(1)  # a fork that the unit made and that fell out of its call
        write(answer)
    write(encode({"event": "end", "cases": len(decoded)}))


def driver_of(source: bytes, filename: str) -> Callable[[Any, Any], Any]:
    """The driver's function, in a namespace that belongs to no module."""
    namespace: dict[str, Any] = {"__name__": "driver"}
    exec(compile(source, filename, "exec", dont_inherit=True), namespace)
    drive: Callable[[Any, Any], Any] = namespace["drive"]
    return drive


def case_of(frame: bytes) -> dict[str, Any]:
    header, body = decode(frame)
    arrays = arrays_of(header["arrays"], body)
    return {**header["case"], "arrays": {name: numpy_of(array) for name, array in arrays.items()}}


def numpy_of(array: Array) -> Any:
    """A writable array of its own."""
    return numpy.frombuffer(bytearray(array.data), dtype=array.dtype).reshape(array.shape)


def answer_of(drive: Callable[[Any, Any], Any], unit: str, case: dict[str, Any], number: int, place: Place) -> bytes:
    """The frame that answers a case. SystemExit and KeyboardInterrupt are the unit's failures like any other."""
    try:
        returned = drive(importlib.import_module(unit), case)
        description, body = described(dict(plain(returned)))
        return encode({"event": "answer", "case": number, "arrays": description}, body)
    except BaseException as error:
        return encode({"event": "error", "case": number, "message": message_of(error, place)})


def plain(returned: Mapping[str, Any]) -> Iterator[tuple[str, Array]]:
    """What a driver returned, as bytes; TypeError for what is no plain array of the dtypes that may leave."""
    for name, array in returned.items():
        if type(array) is not numpy.ndarray or array.dtype.name not in ITEM_BYTES or not array.dtype.isnative:
            raise TypeError(f"the driver returned a {type(array).__name__} for {name}")
        yield name, Array(array.dtype.name, array.shape, array.tobytes())
