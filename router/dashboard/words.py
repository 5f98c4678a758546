"""Texts, numbers and times as one viewer wants them: language and time zone."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from router.dashboard import english, russian
from router.dashboard.markup import Markup, el

if TYPE_CHECKING:
    from collections.abc import Mapping

LANGUAGES: Final[Mapping[str, Mapping[str, str]]] = {"en": english.TEXTS, "ru": russian.TEXTS}
LANGUAGE_NAMES: Final[Mapping[str, str]] = {"en": "English", "ru": "Русский"}
DASH: Final = "–"  # what is unknown is never 0


def language_of(accept: str) -> str:
    """The first language of an Accept-Language header that there are texts for."""
    for part in accept.lower().split(","):
        name = part.partition(";")[0].strip()[:2]
        if name in LANGUAGES:
            return name
    return "en"


def zone_of(name: str) -> tzinfo:
    """The zone of that IANA name; UTC for an unknown one."""
    try:
        return ZoneInfo(name) if name not in ("", "utc") else UTC
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


@dataclass(frozen=True, slots=True)
class Words:
    """One viewer's language and zone."""

    language: str = "en"
    zone: tzinfo = field(default=UTC)

    def __call__(self, key: str, **values: Any) -> str:
        """The text of `key`, filled in.

        Raises:
            KeyError: there is no such text.
        """
        return LANGUAGES[self.language][key].format_map(_Filled(values))

    def known(self, key: str, otherwise: str) -> str:
        """The text of `key`, or `otherwise`: for names that configurations invent."""
        return LANGUAGES[self.language].get(key, otherwise)

    def number(self, value: float | None, digits: int = 0) -> str:
        """A number with the language's separators; unknown is a dash."""
        if value is None:
            return DASH
        text = f"{value:,.{digits}f}".replace("-", "−")
        if self.language == "ru":
            return text.replace(",", "\u00a0").replace(".", ",")
        return text

    def signed(self, value: float) -> str:
        """A weight: two digits and always its sign."""
        return f"{'−' if value < 0 else '+'}{self.number(abs(value), 2)}"

    def ratio(self, value: float | None) -> str:
        """A speed-up: two digits."""
        return self.number(value, 2)

    def percent(self, value: float | None, digits: int = 0) -> str:
        """A share of 1 in per cent."""
        return DASH if value is None else f"{self.number(100 * value, digits)}\u00a0%"

    def duration(self, seconds: float | None) -> str:
        """Milliseconds to hours, whatever reads best."""
        if seconds is None:
            return DASH
        size = abs(seconds)
        if size == 0:
            return self._with(0.0, 0, "unit_s")
        if size < 1:
            return self._with(1000 * seconds, 0 if size >= 0.1 else 1, "unit_ms")
        if size < 120:
            return self._with(seconds, 1 if size < 100 else 0, "unit_s")
        if size < 7200:
            return self._with(seconds / 60, 1, "unit_min")
        return self._with(seconds / 3600, 1, "unit_h")

    def _with(self, value: float, digits: int, unit: str) -> str:
        return f"{self.number(value, digits)}\u00a0{self(unit)}"

    def clock(self, at: float, *, seconds: bool = True) -> str:
        """Time of day."""
        return self._moment(at).strftime("%H:%M:%S" if seconds else "%H:%M")

    def day_and_clock(self, at: float) -> str:
        """Month, day and time of day, short."""
        return self._moment(at).strftime("%m-%d %H:%M")

    def day(self, at: float) -> str:
        """Date and time of day, with the zone."""
        return self._moment(at).strftime("%Y-%m-%d %H:%M:%S %Z")

    def moment(self, at: float) -> Markup:
        """A time element: today's clock, the whole date for machines and on hovering."""
        moment = self._moment(at)
        text = moment.strftime("%m-%d %H:%M:%S")
        return el("time", text, datetime=moment.isoformat(timespec="seconds"), title=self.day(at))

    def _moment(self, at: float) -> datetime:
        return datetime.fromtimestamp(at, self.zone)


class _Filled(dict[str, Any]):
    """Values that a happening does not have are empty."""

    def __missing__(self, key: str) -> str:
        return ""
