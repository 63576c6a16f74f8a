"""Texts of others in messages: always short and on one line, and quoted where they could be taken for the message.

Everyone who can create an object, an Event or a webhook, or who runs a registry, writes some of them.
"""

import json
import re
from itertools import accumulate
from typing import Final

MAX_NAME: Final = 100
"""Default maximum characters of a name."""

MAX_TEXT: Final = 1000
"""Default maximum characters of a sentence, so that the remedy after it fits into a condition with two other ones."""

_NAME: Final = re.compile(r"[-\w.:/@+~\[\]]+", re.ASCII)
"""One word with the characters of names, images, times, and paths of fields."""

_SENTENCES: Final = re.compile(
    r"[.;!?][\"'`)\]]*\s|kubectl|[|&`]|\$\(|(?-i:[a-z][.;!?][A-Z])|[^\0-\x7f…]", re.IGNORECASE
)
"""The end of a sentence before another one, or a command. Other scripts have characters that look like these. A text
without any is one clause."""

_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
"""A text as JSON."""


def name(text: str, length: int = MAX_NAME) -> str:
    """A name: unchanged if it is one word of at most `length` characters, otherwise as `quoted`."""
    return text if len(text) <= length and _NAME.fullmatch(text) else quoted(text, length)


def clause(text: str, length: int = MAX_TEXT) -> str:
    """The message of another program: unchanged if it is one clause of at most `length` characters.

    Otherwise as `quoted`, so that it does not look like further sentences or commands of this operator.
    """
    text = text.strip()
    is_clause = len(text) <= length and text.isprintable() and not _SENTENCES.search(text)
    # Errors of the API server end with the cause, after the whole value.
    return text if is_clause else quoted(text, length, length // 4)


def kept(text: str, length: int) -> str:
    """A message of this operator that others can change where it is kept. It may contain quoted texts.

    Unchanged if it is one clause besides these, otherwise quoted, with at most `length` characters in all.
    """
    is_clause = len(text) <= length and text.isprintable() and not _SENTENCES.search(_QUOTED.sub("", text))
    return text if is_clause else quoted(text, length - len('""…'))


def quoted(text: str, length: int, tail: int = 0) -> str:
    """A text as JSON of at most `length` characters, besides its quotes and the `…` in a longer one.

    `tail`: as many of these are from the end of a longer one.
    """
    if _fitting(text, length) == len(text):
        return f'"{_escaped(text)}"'
    begin, end = _fitting(text, length - tail), _fitting(text[: -tail - 1 : -1], tail)
    return f'"{_escaped(text[:begin])}…{_escaped(text[len(text) - end :])}"'


def line(text: str) -> str:
    """A whole message on one line. Other control characters are replaced, too."""
    return text if text.isprintable() else "".join(char if char.isprintable() else _escape(char) for char in text)


def _fitting(text: str, length: int) -> int:
    """The number of the first characters that take at most `length` characters as JSON."""
    ends = accumulate(len(_escape(char)) for char in text[:length])
    return sum(end <= length for end in ends)


def _escaped(text: str) -> str:
    return "".join(map(_escape, text))


def _escape(char: str) -> str:
    return char if char.isprintable() and char not in '"\\' else json.dumps(char)[1:-1]
