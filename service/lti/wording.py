"""Every sentence of learning platforms that a person reads. Each says what to do next."""

SHOWN_CHARS = 200

PLATFORM_INCOMPLETE = (
    "A platform needs an issuer and a client id. Both are shown where the tool was added in the platform."
)
PLATFORM_KNOWN = (
    "A platform with this issuer and client id is registered already. Change that one, or take another client id."
)
PLATFORM_UNKNOWN = "There is no such platform. The list of platforms has the ids."
ANSWER_TOO_LONG = "the answer was too long or took too long"

LOGIN_INCOMPLETE = (
    "The learning platform did not say who it is. Open the activity again from the course page of your learning "
    "platform."
)
LOGIN_UNKNOWN = (
    "This learning platform is not registered here, or no longer. Tell an administrator of this service its issuer and "
    "client id."
)
LOGIN_LOST = (
    "This launch was begun in another browser, a while ago, or was used already. Open the activity again from the "
    "course page of your learning platform."
)
MESSAGE_REFUSED = (
    "What the learning platform sent cannot be trusted. Open the activity again from the course page; if that does not "
    "help, tell the course staff the number of the request."
)
CANCELLED = "The learning platform ended the launch. Open the activity again from its course page."
NO_COOKIES = "Your browser keeps no cookies for pages inside other pages. Open this page in a window of its own."
ROLE_UNKNOWN = (
    "Your role in this course has no view here. Ask the course staff to make you a student or a teacher of the course."
)
ADMIN_SIGNS_IN = (
    "This is an administrator's account here, which no learning platform opens. Sign in with your password instead."
)
ACCOUNT_CLOSED = "Your account here was closed. Ask the course staff."
TEACHERS_PICK = "Only teachers of a course pick what it offers. Ask the course staff."
CHOOSE_UNIT = "Choose a unit."
CONTEXT_MISSING = (
    "The learning platform did not say from which course you come. Open the activity from inside a course."
)
COURSE_NOT_CONNECTED = "This activity is not set up yet. Your teacher has to open it once and choose what it is for."
UNIT_GONE = (
    "The unit that this activity stood for is not offered here any more. Tell your teacher, who can choose another."
)
UNIT_NOT_CHOSEN = "This activity is not set up yet. Your teacher has to open it once and choose its unit."
KEYS_AWAY = (
    "The learning platform did not show its public keys, so that we cannot tell whether the launch is its own. "
    "Try again in a minute."
)
PICK_EXPIRED = "This choice is too old. Open the selection again from your learning platform."
COURSE_NOT_YOURS = (
    "Choose a course that you teach here, a new one, or type the code that the settings of a course give you. A code "
    "works once, for a week."
)
INVITATION_USED = (
    "This link to register a platform was used already, or is too old. An administrator can make another one."
)
REGISTRATION_FAILED = "The platform did not complete the registration: "
MEMBERS_NOT_OFFERED = (
    "The platform offers no list of members for this course. Switch its names and roles service on for this tool, and "
    "open an activity of the course again."
)
CONTEXT_UNKNOWN = "There is no such course of a platform here. It appears when a teacher opens one of its activities."
NOT_A_PLATFORM = "what stands at the address of its configuration is not that of a learning platform"
COLUMN_WITHOUT_ADDRESS = "the platform made a grade column and did not say where it is"
COLUMNS_NOT_OFFERED = (
    "The platform lets us make no grade columns in this course. Make the activity one with a grade there, and open it "
    "again."
)
COLUMN_MADE = "The platform made a grade column. Grades go there from now on."
LINK_UNKNOWN = "There is no such activity of this course. It appears when it is opened in the platform."
LIST_UNREADABLE = "the platform's list of members cannot be read"
LIST_TOO_LONG = "the platform's list of members does not end"


def members_read(listed: int, changed: int, left: int) -> str:
    return (
        f"The platform lists {listed} people with a part in the course; {changed} were added or changed, {left} left."
    )


def members_not_read(reason: str) -> str:
    return f"The members were not read, and nothing was changed: {reason}"


def column_not_made(reason: str) -> str:
    return f"The grade column was not made: {reason}"


def list_elsewhere(url: str) -> str:
    return f"the list of members goes on at another place, where no token goes: {_short(url)!r}"


def deployment_waiting(deployment: str) -> str:
    return (
        f"The deployment {_short(deployment)} of this learning platform has not been let in yet. An administrator of "
        "this service finds it on the page of the platform and can allow it there."
    )


def address_refused(what: str, url: str) -> str:
    return f"{what} must be an https address, got {_short(url)!r}"


def origin_refused(origin: str) -> str:
    return f"frame_origin must be like https://platform.example, without a path, got {_short(origin)!r}"


def redirected(url: str) -> str:
    return f"{_short(url)} sends on to another address, where no token goes; register the final one"


def refused_us(status: int, said: str) -> str:
    text = " ".join(said.split())
    return f"the platform answered {status}" + (f": {_short(text)}" if text else "")


def not_reached(error: object) -> str:
    return f"the platform was not reached: {_short(str(error)) or type(error).__name__}"


def _short(text: str) -> str:
    printable = "".join(c if c.isprintable() else "�" for c in text)
    return printable if len(printable) <= SHOWN_CHARS else printable[: SHOWN_CHARS - 1] + "…"
