"""What is refused before any grading. (What is wrong inside a submission that is taken in is a value in its report.)

Rejected                     an upload: nothing was stored and no attempt used
LoadError                    a file of the course: its unit is left out, the others load
OracleError                  ours: a unit's oracle gave no cases, and nothing is known about the submission
├── OracleMissing            a package that it needs is not installed; says how to get it
└── OracleFailed             its process was lost, or raised
"""

from collections.abc import Sequence


class Rejected(Exception):
    """The upload cannot be taken in. `code` is stable, `message` says what to do; `path` is the offending file's name
    as sent, made safe to show, or ''."""

    def __init__(self, code: str, message: str, path: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.path = path


class LoadError(Exception):
    """A file of the course is wrong: `file` is relative to the course tree, `line` is 0 where none applies. `also` are
    others of the same unit that are wrong too."""

    def __init__(self, file: str, line: int, reason: str, also: "Sequence[LoadError]" = ()) -> None:
        super().__init__(f"{file}:{line}: {reason}" if line else f"{file}: {reason}")
        self.also = tuple(also)
        self.file = file
        self.line = line
        self.reason = reason


class OracleError(Exception):
    """A unit has an oracle, and it did not do its work; nothing is known about the submission."""


class OracleMissing(OracleError):
    """The oracle cannot start on this machine as it is set up."""


class OracleFailed(OracleError):
    """The oracle raised, or its process was lost; worth another try."""
