"""Parse the replies to memcached's `stats` commands. The format is described in memcached's doc/protocol.txt."""

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

MAX_NUMBER_LENGTH: Final = 32
"""Characters of a number. The largest that memcached prints is 2⁶⁴ − 1, with 20 digits."""
END: Final = b"END\r\n"
SLABS: Final = {str(slab): slab for slab in range(1, 64)}
"""The slab classes that memcached can have."""
WORDS: Final = {"yes": 1, "no": 0}
"""How `stats settings` prints most settings that are on or off."""
HITS: Final = ("get_hits", "touch_hits")
MISSES: Final = ("get_misses", "touch_misses")
"""Counters of the gets, with those that also set the time to live.

memcached 1.6.18 to 1.6.45 counts `gat` like `touch`, and the hits of `mg` with the flag T, but not its misses.
A `touch` therefore counts as a get. `cmd_get` and `cmd_touch` do not say which gets were hits.
"""
MISSING: Final = "miss_from_extstore"
"""The gets among those hits whose item extstore no longer had on its disk. memcached then removes the item."""
ABORTED: Final = "get_aborted_extstore"
"""The gets among those hits whose item extstore did not read."""
LOST: Final = (MISSING, ABORTED)
"""The gets among those hits that got no item.

memcached 1.6.18 to 1.6.45 counts a hit when it finds the header in memory, before it reads the disk. It does not start
reads if another key of the same request fails, or if the client closes the connection.
"""

_NUMBER: Final = re.compile(r"[0-9]+(\.[0-9]+)?", re.ASCII)

Stats = dict[str, str]
"""Values by name, as memcached prints them."""


class Gets(NamedTuple):
    """The gets since memcached started. None of these counters falls before `stats reset` or a restart.

    `counted_hits` and `counted_misses`: by memcached. `lost`: those among the hits that got no item.
    """

    counted_hits: int = 0
    counted_misses: int = 0
    lost: int = 0

    @property
    def total(self) -> int:
        """All gets."""
        return self.counted_hits + self.counted_misses

    @property
    def hits(self) -> int:
        """The gets that got an item. memcached counts a get before it is lost, so this can fall between two samples."""
        return max(0, self.counted_hits - self.lost)

    @property
    def misses(self) -> int:
        """The gets that got no item."""
        return self.total - self.hits

    def since(self, before: "Gets") -> "Gets":
        """The gets since an earlier sample."""
        return Gets(*(now - then for now, then in zip(self, before, strict=True)))


class Statistics(NamedTuple):
    """The replies to four commands, and to two more of a proxy.

    `items` and `slabs` have one entry for each slab class in use.
    """

    general: Stats
    """`stats`"""
    settings: Stats
    """`stats settings`"""
    items: Mapping[int, Stats]
    """`stats items`"""
    slabs: Mapping[int, Stats]
    """`stats slabs`, without its totals."""
    totals: Stats
    """The totals of `stats slabs`."""
    backends: Stats | None = None
    """`stats proxybe`: the servers that are marked as bad. None without a proxy, and if it replies with an error."""
    routes: Stats | None = None
    """`stats proxy`: counters of the proxy and of its routes. None as with `backends`."""


def is_proxy(general: Stats) -> bool:
    """Whether memcached is a proxy, by its reply to `stats`."""
    return "proxy_backend_total" in general


def parse_stats(reply: bytes) -> Stats:
    """The values in a reply, which includes its last line, `END`. Raises ValueError if it has another line."""
    *lines, last = reply.decode("ascii", "replace").removesuffix("\r\n").split("\r\n")
    if last != "END":
        raise ValueError("the last line is not END")
    values: dict[str, str] = {}
    for line in lines:
        head, _, rest = line.partition(" ")
        if head != "STAT" or not rest:
            raise ValueError(f"invalid line {line[:40]!r}")
        name, _, value = rest.partition(" ")
        values[name] = value
    return values


def statistics(general: bytes, settings: bytes, items: bytes, slabs: bytes) -> Statistics:
    """Parse the replies to `stats`, `stats settings`, `stats items` and `stats slabs`.

    Raises ValueError, as `parse_stats`.
    """
    by_class, totals = _by_class(parse_stats(slabs))
    return Statistics(parse_stats(general), parse_stats(settings), _by_class(parse_stats(items))[0], by_class, totals)


def number(text: str | None) -> float | None:
    """A number, or `yes` or `no` as 1 or 0. None if there is none, or if the text is neither."""
    if text is None or len(text) > MAX_NUMBER_LENGTH:
        return None
    if text.isdecimal() and text.isascii():
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else WORDS.get(text)


def gets(general: Stats) -> Gets:
    """The gets in a reply to `stats`. A missing value counts as 0."""
    return Gets(_total(general, HITS), _total(general, MISSES), _total(general, LOST))


def items_memory(statistics: Statistics) -> int:
    """The bytes of the items in memory. `bytes` of `stats` includes those on the disk of extstore."""
    return sum(_total(each, ("mem_requested",)) for each in statistics.items.values())


def _total(general: Stats, names: Iterable[str]) -> int:
    return sum(int(number(general.get(name)) or 0) for name in names)


def _by_class(stats: Stats) -> tuple[Mapping[int, Stats], Stats]:
    """Values such as `items:1:age` and `1:used_chunks` by slab class, and the values without a slab class."""
    classes: dict[int, dict[str, str]] = {}
    others: dict[str, str] = {}
    for name, value in stats.items():
        slab, separator, rest = name.removeprefix("items:").partition(":")
        if separator and slab in SLABS:
            classes.setdefault(SLABS[slab], {})[rest] = value
        else:
            others[name] = value
    return classes, others
