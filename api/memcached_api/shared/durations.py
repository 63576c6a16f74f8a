"""Times in hours, minutes and seconds, such as `1h30m`."""

import re
from typing import Final

_PARTS: Final = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")


def seconds(text: str) -> int:
    """The seconds of a valid time; 0 if it is not valid."""
    match = _PARTS.fullmatch(text)
    hours, minutes, rest = (int(part or 0) for part in match.groups()) if match else (0, 0, 0)
    return hours * 3600 + minutes * 60 + rest
