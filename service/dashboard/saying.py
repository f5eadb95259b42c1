"""A course's time zone goes in; numbers and times come out as a page says them."""

from dataclasses import dataclass
from datetime import UTC, datetime

from markupsafe import Markup

from grader.wording import escaped
from service import walltime


@dataclass(frozen=True)
class Saying:
    """How pages say times and numbers. `zone` is the IANA name of the zone whose clocks they show."""

    zone: str = "UTC"

    def when(self, time: float | datetime | None) -> Markup:
        """The day and minute, marked up as a time; a dash for none."""
        if time is None:
            return Markup("–")
        seconds = time.timestamp() if isinstance(time, datetime) else time
        there = walltime.show(seconds, self.zone)
        return Markup('<time datetime="{}">{}</time>').format(
            datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds"), walltime.said(there)
        )

    @staticmethod
    def line(text: str) -> str:
        """A text from outside as one line, with what controls a terminal or turns the direction made visible."""
        return escaped(text)

    @staticmethod
    def lines(text: str) -> str:
        """The same, line by line."""
        return "\n".join(escaped(line.expandtabs(4)) for line in text.splitlines())

    @staticmethod
    def percent(share: float | None) -> str:
        """Without rounding to 0 or 100 what is neither."""
        if share is None:
            return "–"
        whole = round(100 * share)
        if 0 < share < 1:
            whole = min(99, max(1, whole))
        return f"{whole} %"

    @staticmethod
    def duration(seconds: float | None) -> str:
        """In the two largest units that fit."""
        if seconds is None:
            return "–"
        if seconds < 10:
            return f"{seconds:.1f} s"
        if seconds < 60:
            return f"{seconds:.0f} s"
        minutes = round(seconds / 60)
        days, rest = divmod(minutes, 24 * 60)
        hours, minutes = divmod(rest, 60)
        if days:
            return f"{days} d {hours} h" if hours else f"{days} d"
        if hours:
            return f"{hours} h {minutes} min" if minutes else f"{hours} h"
        return f"{minutes} min"

    @staticmethod
    def count(number: int, one: str, many: str = "") -> str:
        """The number with its noun: "1 student", "2 students"."""
        return f"{number:,} {one if number == 1 else many or one + 's'}".replace(",", "\u202f")
