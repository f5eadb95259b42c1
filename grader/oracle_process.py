"""Runs one unit's oracle in a process of its own: source and seeds come in as frames, cases and what is expected leave.

    grader -> oracle                            oracle -> grader, over one socket, which is its standard input
    oracle {}          body: the source         ready {} | missing {module} | failed {error}
    ask    {seed}                               trial {case, case_arrays, case_bytes, expected, expected_arrays} body …
                                                … then end {}; or failed {error} at any point

Started by `grader.oracle` with an empty environment. End of file ends it. What the oracle prints goes to its log.
"""

import os
import socket
from collections.abc import Iterator
from typing import Any

import numpy as np

from sandbox.arrays import Array, described
from sandbox.wire import Frames, encode

CHUNK_BYTES = 1 << 18
TEXT_CHARACTERS = 2000


def main() -> None:
    connection = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    frames = Frames()
    oracle: dict[str, Any] = {}
    while data := connection.recv(CHUNK_BYTES):
        for header, body in frames.feed(data):
            if header["frame"] == "oracle":
                connection.sendall(loaded(oracle, body))
            else:
                for answer in trials(oracle, header["seed"]):
                    connection.sendall(answer)


def loaded(oracle: dict[str, Any], source: bytes) -> bytes:
    """Execute the source and try one seed, which imports whatever the oracle needs; how that went, as a frame."""
    try:
        oracle["__name__"] = "oracle"
        exec(compile(source, "oracle.py", "exec", dont_inherit=True), oracle)
        for case in oracle["cases"](0):
            oracle["expected"](case)
    except ModuleNotFoundError as error:
        return encode({"frame": "missing", "module": str(error.name)})
    except Exception as error:
        return failed(error)
    return encode({"frame": "ready"})


def trials(oracle: dict[str, Any], seed: int) -> Iterator[bytes]:
    try:
        for case in oracle["cases"](seed):
            yield trial(case, oracle["expected"](case))
        yield encode({"frame": "end"})
    except Exception as error:
        yield failed(error)


def trial(case: dict[str, Any], expected: dict[str, dict[str, Any]]) -> bytes:
    case_arrays, case_body = described({name: array_of(array) for name, array in case["arrays"].items()})
    arrays, body = described({name: array_of(said["array"]) for name, said in expected.items()})
    header = {
        "frame": "trial",
        "case": {name: value for name, value in case.items() if name != "arrays"},
        "case_arrays": case_arrays,
        "case_bytes": len(case_body),
        "expected": {name: {**said, "array": None} for name, said in expected.items()},
        "expected_arrays": arrays,
    }
    return encode(header, case_body + body)


def array_of(array: Any) -> Array:
    array = np.asarray(array)
    return Array(array.dtype.name, array.shape, array.tobytes())


def failed(error: Exception) -> bytes:
    return encode({"frame": "failed", "error": f"{type(error).__name__}: {error}"[:TEXT_CHARACTERS]})


if __name__ == "__main__":
    main()
