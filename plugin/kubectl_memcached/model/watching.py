"""Lines of memcached's command `watch`, as in its doc/protocol.txt and logger.c. Keys are URI-encoded."""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote_to_bytes

_STORED: Final = re.compile(rb"type=item_store key=(\S+) ")
_READ: Final = re.compile(rb"type=item_get key=(\S+) status=\w+(?:[^\n]* size=(\d+))?")


def stored(lines: bytes) -> Iterator[bytes]:
    """The keys in lines of `watch mutations`, decoded. Requests that stored nothing, such as `add`, are included."""
    return (unquote_to_bytes(key) for key in _STORED.findall(lines))


def requested(lines: bytes) -> Iterator[tuple[bytes, int]]:
    """The keys in lines of `watch fetchers`, still encoded, and the bytes of their values. 0: not found, or unknown."""
    return ((key, int(size or 0)) for key, size in _READ.findall(lines))


def readable(key: bytes) -> str:
    """An encoded key as a text for terminals: decoded only if all its characters are printable."""
    try:
        text = unquote_to_bytes(key).decode()
    except ValueError:
        return key.decode("ascii", "replace")
    return text if text.isprintable() else key.decode("ascii", "replace")
