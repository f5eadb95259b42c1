"""Why a submission is not taken in. (What is wrong inside one that is taken in is a value in its report.)

Rejected                     nothing was stored and no attempt used; `code` is stable, `message` says what to do
"""


class Rejected(Exception):
    """The upload cannot be taken in. `path` is the offending file's name as sent, made safe to show, or ''."""

    def __init__(self, code: str, message: str, path: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.path = path
