"""Why a command ends, each with its exit status; what to do is in the message."""


class Stop(Exception):
    """Ends a command with a message for its user; without one if all has been said already."""

    status = 1


class Failed(Stop):
    """The work is not right yet; what is wrong was printed already."""

    status = 1


class Usage(Stop):
    """The command cannot be meant so."""

    status = 2


class Blocked(Stop):
    """Another unit is to be built first."""

    status = 3


class Drift(Stop):
    """The file does not keep to the contract; where was printed already."""

    status = 4


class Ours(Stop):
    """Nothing is wrong with the work: the grader or the service failed."""

    status = 5


class Refused(Stop):
    """What was sent cannot be taken in."""

    status = 6


class NotStarted(Stop):
    """There is no file to work on yet."""

    status = 7
