"""The operator's annotations in a file of the downward API."""

from collections.abc import Collection, Iterable
from typing import Final

PREFIX: Final = "memcached-operator.example.com/"
MAX_QUOTED: Final = 64
"""Characters of an invalid value that become part of a message."""

_START: Final = PREFIX.encode()


def whole_number(name: str, value: str, lowest: int, highest: int, unit: str) -> int:
    """The number in the value of an annotation. Raises ValueError, with one sentence, if it is invalid.

    `name`: without PREFIX. `unit`: in words, for the sentence.
    """
    is_number = value.isascii() and value.isdecimal() and len(value) <= len(str(highest))
    if not is_number or not lowest <= int(value) <= highest:
        text = f"the annotation {PREFIX}{name} is invalid and has no effect: {value[:MAX_QUOTED]!r}"
        raise ValueError(f"{text}; use whole {unit} from {lowest} to {highest}")
    return int(value)


def find(pieces: Iterable[bytes], names: Collection[str]) -> dict[str, str]:
    """The values of these annotations, whose names are without PREFIX. What the file does not have is left out.

    `pieces`: the lines of the file, of which long ones may be split; only the first piece of a value is returned. The
    kubelet writes one annotation per line, as `name="value"`, and escapes as Go does. A valid value needs no escapes;
    an invalid one is returned with them.
    """
    values: dict[str, str] = {}
    complete = True
    for piece in pieces:
        if complete and piece.startswith(_START):
            name, separator, value = piece.removeprefix(_START).decode("utf-8", "replace").partition('="')
            if separator and name in names:
                values.setdefault(name, value.rstrip("\n").removesuffix('"'))
        complete = piece.endswith(b"\n")
    return values
