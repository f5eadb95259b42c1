"""A multipart body goes in, counted as it arrives; its files and its text fields come out.

Nothing is written to disk, and a body over the limit is refused when it passes it, whatever Content-Length said.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass

from fastapi import Request
from python_multipart.exceptions import FormParserError
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect

from grader.submission import Upload
from service import wording
from service.problems import Problem

MAX_FILES = 1000
MAX_FIELDS = 16
MAX_FIELD_BYTES = 64 * 2**10
PAUSE_SECONDS = 15.0  # without a single byte
SLOW_SECONDS = 20.0  # after which an upload must have made LEAST_BYTES_PER_SECOND
LEAST_BYTES_PER_SECOND = 1024


@dataclass(frozen=True)
class Form:
    """`files` and `fields` by name, each in the order sent."""

    files: Mapping[str, tuple[Upload, ...]]
    fields: Mapping[str, tuple[str, ...]]


class _InMemory(MultiPartParser):
    spool_max_size = 2**31  # the body's own limit is far below: never spool to disk
    ended = False

    def on_end(self) -> None:
        self.ended = True


async def read_form(request: Request, max_body_bytes: int, max_seconds: float) -> Form:
    """Read the body as multipart/form-data; raises Problem 400, 408, 411, 413 or 415."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "multipart/form-data":
        raise Problem(
            415,
            "unsupported_media_type",
            wording.media_type_wrong(media_type),
        )
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared[:18]) > max_body_bytes:
        raise _too_large(max_body_bytes)
    parser = _InMemory(
        request.headers,
        _counted(request, max_body_bytes, lambda: parser.ended),
        max_files=MAX_FILES,
        max_fields=MAX_FIELDS,
        max_part_size=MAX_FIELD_BYTES,
    )
    try:
        async with asyncio.timeout(max_seconds):
            form = await parser.parse()
    except TimeoutError as error:
        raise _too_slow(wording.upload_too_slow(max_seconds)) from error
    except ClientDisconnect as error:
        raise Problem(400, "upload_broken", wording.UPLOAD_BROKEN) from error
    except (MultiPartException, FormParserError) as error:
        message = getattr(error, "message", "") or str(error)
        raise Problem(400, "bad_multipart", wording.multipart_unreadable(message)) from error
    files: dict[str, tuple[Upload, ...]] = {}
    fields: dict[str, tuple[str, ...]] = {}
    for name, value in form.multi_items():
        if isinstance(value, UploadFile):
            upload = Upload(value.filename or "", await value.read())
            files[name] = (*files.get(name, ()), upload)
        else:
            fields[name] = (*fields.get(name, ()), value)
    await form.close()
    return Form(files, fields)


async def _counted(request: Request, max_body_bytes: int, ended: Callable[[], bool]) -> AsyncGenerator[bytes, None]:
    """The body's chunks; at its end `ended` tells whether the parser has seen the last boundary."""
    seen, begun_at = 0, time.monotonic()
    chunks = request.stream()
    while True:
        try:
            async with asyncio.timeout(PAUSE_SECONDS):
                chunk = await anext(chunks)
        except StopAsyncIteration:
            break
        except TimeoutError as error:
            raise _too_slow(wording.upload_stalled(PAUSE_SECONDS)) from error
        seen += len(chunk)
        seconds = time.monotonic() - begun_at
        if seconds > SLOW_SECONDS and seen < seconds * LEAST_BYTES_PER_SECOND:
            raise _too_slow(wording.upload_stalled(SLOW_SECONDS))
        if seen > max_body_bytes:
            raise _too_large(max_body_bytes)
        yield chunk
    if not ended():
        # The parser drops a part that does not end: what is left would be graded as if it were all.
        raise Problem(400, "upload_broken", wording.UPLOAD_BROKEN)


def _too_slow(message: str) -> Problem:
    return Problem(408, "upload_too_slow", message, headers={"Connection": "close"})


def _too_large(max_body_bytes: int) -> Problem:
    return Problem(413, "too_large", wording.upload_too_large(max_body_bytes), headers={"Connection": "close"})
