"""Parse and print named integers: `hitRatio=80,timeout=900`."""

from collections.abc import Mapping
from typing import Final

MAX_DIGITS: Final = 20
"""Digits of an integer. The largest counter of memcached, 2⁶⁴ − 1, has 20."""


def parse_fields(text: str) -> dict[str, int]:
    """The integers by name. Raises ValueError if the text has another form, or a name twice."""
    values: dict[str, int] = {}
    for field in text.split(","):
        name, _, digits = field.partition("=")
        if not (name and digits.isascii() and digits.isdecimal() and len(digits) <= MAX_DIGITS) or name in values:
            raise ValueError("want distinct names with integers, such as a=1,b=2")
        values[name] = int(digits)
    return values


def render(fields: Mapping[str, int]) -> str:
    """The text from which `parse_fields` reads these integers, of which none is negative."""
    return ",".join(f"{name}={number}" for name, number in fields.items())
