"""Amounts as short texts for tables. An unknown amount is a dash."""

import re
from datetime import datetime
from typing import Final

UNKNOWN: Final = "-"
_UNITS: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi")
_THOUSANDS: Final = ("", "k", "M", "G", "T")
_TIMES: Final = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
_DURATION: Final = re.compile("".join(rf"(?:(\d{{1,6}}){unit})?" for unit, _ in _TIMES), re.ASCII)


def size(value: float | None) -> str:
    """A number of bytes: `256Mi`, `1.5Gi`. Three digits at most."""
    return UNKNOWN if value is None else _scaled(value, 1024, _UNITS)


def count(value: float | None) -> str:
    """A number: `12`, `1.5k`, `20M`. Three digits at most from 1,000."""
    return UNKNOWN if value is None else _scaled(value, 1000, _THOUSANDS)


def percent(value: float | None) -> str:
    """A share from 0 to 1: `87%`. Only the whole is 100%, and only nothing is 0%."""
    if value is None:
        return UNKNOWN
    rounded = round(value * 100)
    if rounded == 100 and value < 1:
        return ">99%"
    return "<1%" if rounded == 0 and value > 0 else f"{rounded}%"


def duration(seconds: float | None) -> str:
    """A time with its two largest units: `3h12m`, `5d4h`, `45s`."""
    if seconds is None:
        return UNKNOWN
    rest, parts = max(0, int(seconds)), list[str]()
    for unit, length in _TIMES:
        amount, rest = divmod(rest, length)
        if parts:
            return "".join([*parts, f"{amount}{unit}"] if amount else parts)
        if amount:
            parts.append(f"{amount}{unit}")
    return "".join(parts) or "0s"


def parsed_duration(text: str) -> float | None:
    """The seconds of a time as `duration` writes it: `1h30m`. None if it is not one."""
    if (found := _DURATION.fullmatch(text)) is None:
        return None
    return sum(float(number or 0) * length for number, (_, length) in zip(found.groups(), _TIMES, strict=True))


def seconds(time: str) -> float | None:
    """A time of the API server in seconds since 1970. None if there is none."""
    try:
        return datetime.fromisoformat(time).timestamp()
    except ValueError:
        return None


def _scaled(value: float, base: int, units: tuple[str, ...]) -> str:
    unit = 0
    while round(value) >= base and unit < len(units) - 1:
        value, unit = value / base, unit + 1
    digits = 1 if unit and value < 10 and round(value, 1) != round(value) else 0
    return f"{value:.{digits}f}{units[unit]}"
