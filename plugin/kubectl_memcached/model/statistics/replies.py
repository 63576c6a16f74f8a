"""Replies of memcached. The format is described in memcached's doc/protocol.txt."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kubectl_memcached.errors import ExitCode, PluginError

Stats = dict[str, str]
"""Values by name, as memcached prints them."""

MAX_KEY: Final = 250
"""Bytes of a key: memcached's KEY_MAX_LENGTH."""
LIMIT_REACHED: Final = "ERROR Too many open connections"
UNAUTHENTICATED: Final = "CLIENT_ERROR unauthenticated"

BLOCKED: Final = {
    "CLIENT_ERROR flush_all not allowed": "--disable-flush-all",
    "CLIENT_ERROR stats cachedump not allowed": "--disable-dumping",
    "ERROR metadump not allowed": "--disable-dumping",
    "ERROR mgdump not allowed": "--disable-dumping",
    "CLIENT_ERROR watch commands not allowed": "--disable-watch",
}
"""Replies of 1.6.18 and 1.6.38 to commands that an option blocks."""

HITS: Final = ("get_hits", "touch_hits")
GETS: Final = (*HITS, "get_misses", "touch_misses")
"""Counters of the gets, with those that also set the time to live, as the agent and the rules count them.

memcached 1.6.18 to 1.6.45 counts `gat` like `touch`, and the hits of `mg` with the flag T, but not its misses.
A `touch` therefore counts as a get.
"""
LOST: Final = ("miss_from_extstore", "get_aborted_extstore")
"""Gets among those hits that got no item: extstore no longer had it on its disk, or did not read it."""
EXTSTORE: Final = "extstore_limit_maxbytes"
"""A counter that only a memcached with extstore has."""
IN_MEMORY: Final = "mem_requested"
"""Bytes of items in memory, in `stats items`. `bytes` of `stats` includes the items on the disk."""

_PAIR: Final = re.compile(r"(\w+)=(\S+)")


def blocked(reply: str) -> str:
    """The option that blocks a command, as a sentence. Empty if none does."""
    name = BLOCKED.get(reply.strip(), "")
    remedy = "remove it from spec.cache.extraArgs. Without spec.cache.warmRestart, the items are then lost"
    return f"memcached runs with {name}: {remedy}" if name else ""


def parse_stats(reply: str) -> Stats:
    """The values in a reply to a `stats` command. Lines of another form are left out."""
    values: Stats = {}
    for line in reply.split("\r\n"):
        head, _, rest = line.partition(" ")
        name, separator, value = rest.partition(" ")
        if head == "STAT" and separator:
            values[name] = value
    return values


def by_class(stats: Stats) -> dict[int, Stats]:
    """The values of `stats items` and `stats slabs` by slab class: `items:1:age` and `1:used_chunks`."""
    classes: dict[int, Stats] = {}
    for name, value in stats.items():
        slab, separator, rest = name.removeprefix("items:").partition(":")
        if separator and slab.isdecimal():
            classes.setdefault(int(slab), {})[rest] = value
    return dict(sorted(classes.items()))


def number(stats: Mapping[str, str], name: str) -> float | None:
    """A number by its name, or None."""
    value = stats.get(name, "")
    return float(value) if re.fullmatch(r"\d{1,20}(\.\d{1,20})?", value, re.ASCII) else None


def hits(stats: Mapping[str, str]) -> float | None:
    """The gets that got an item."""
    found = summed(stats, *HITS)
    return None if found is None else max(0.0, found - (summed(stats, *LOST) or 0))


def used_memory(stats: Mapping[str, str]) -> float | None:
    """The bytes of the items in memory, with extstore only of `with_items`."""
    return number(stats, IN_MEMORY if EXTSTORE in stats else "bytes")


def used_disk(stats: Mapping[str, str]) -> float | None:
    """The bytes of the items on the disk; None without extstore."""
    return number(stats, "extstore_bytes_used")


def with_items(stats: Stats, items: Stats) -> Stats:
    """The values of `stats`, with the sum of those of `stats items` that `used_memory` needs."""
    return stats | {IN_MEMORY: str(sum(int(number(each, IN_MEMORY) or 0) for each in by_class(items).values()))}


def summed(stats: Mapping[str, str], *names: str) -> float | None:
    """The sum of numbers by their names. A missing one counts as 0. None if all are missing."""
    known = [value for name in names if (value := number(stats, name)) is not None]
    return sum(known) if known else None


@dataclass(frozen=True)
class Item:
    """An item, as `me` describes it.

    `size`: bytes of memory, with key and header. `ttl`: seconds until it expires. None: never. `idle`: seconds since it
    was last accessed. `fetched`: whether it was ever read. `slab`: its slab class.
    """

    size: int
    ttl: int | None
    idle: int
    fetched: bool
    slab: int


def parse_item(reply: str) -> Item | None:
    """The item in a reply to `me KEY`, or None. Raises ValueError for another reply.

    1.6.18 writes the remaining time with the opposite sign.
    """
    if reply.strip() == "EN":
        return None
    values = dict(_PAIR.findall(reply))
    if not reply.startswith("ME ") or not {"exp", "la", "size", "cls"} <= values.keys():
        raise ValueError(reply.strip()[:80])
    expires = int(values["exp"])
    ttl = None if expires == -1 else abs(expires)
    return Item(int(values["size"]), ttl, int(values["la"]), values.get("fetch") == "yes", int(values["cls"]))


def check_key(key: str) -> None:
    """Raise PluginError if memcached cannot have this key."""
    try:
        encoded = key.encode()
    except UnicodeEncodeError:  # Python reads other bytes of the command line as surrogates
        raise PluginError("The key is not valid UTF-8: `find` does not support such keys.", ExitCode.USAGE) from None
    if not 0 < len(encoded) <= MAX_KEY or any(byte <= 0x20 or byte == 0x7F for byte in encoded):
        raise PluginError(
            f"A key has 1 to {MAX_KEY} bytes without spaces and control characters. This one has {len(encoded)} bytes.",
            ExitCode.USAGE,
        )


def users(content: bytes) -> list[tuple[bytes, bytes]]:
    """The users and passwords in the file of memcached's option `-Y`: lines of the form `user:password`.

    A carriage return at the end of a line is ignored, as by the agent and by memcached 1.6.38.
    """
    lines = [line.removesuffix(b"\r").partition(b":") for line in content.split(b"\n")]
    return [(user, password) for user, separator, password in lines if user and separator]
