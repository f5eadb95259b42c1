"""What is refused before any grading. (What is wrong inside a submission that is taken in is a value in its report.)

Rejected                     an upload: nothing was stored and no attempt used
LoadError                    a file of the course: its unit is left out, the others load
"""


class Rejected(Exception):
    """The upload cannot be taken in. `code` is stable, `message` says what to do; `path` is the offending file's name
    as sent, made safe to show, or ''."""

    def __init__(self, code: str, message: str, path: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.path = path


class LoadError(Exception):
    """A file of the course is wrong: `file` is relative to the course tree, `line` is 0 where none applies."""

    def __init__(self, file: str, line: int, reason: str) -> None:
        super().__init__(f"{file}:{line}: {reason}" if line else f"{file}: {reason}")
        self.file = file
        self.line = line
        self.reason = reason
