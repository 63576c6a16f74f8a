"""The options of memcached 1.6.18 to 1.6.45 that `spec.cache.extraArgs` accepts, and those that it denies.

An option is accepted only if the tested releases start with every value that its pattern admits, alone and together
with any other accepted option, and if it does not change what the operator guarantees: the memory limit, the listening
port, the health checks, and a container without privileges and without files. The patterns mean the same in Python and
RE2.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from memcached_api.memcached.denied_options import DENIED, SHORT_NAMES
from memcached_api.memcached.memory import MAX_HASHPOWER, MIN_HASHPOWER
from memcached_api.validation.common_rules import matches

MAX_ITEMS: Final = 32
MAX_ITEM_LENGTH: Final = 128


class Option(NamedTuple):
    """An accepted option. `pattern`: the regular expression of its value; empty if it takes none."""

    name: str
    """As in an item of the list: `--long-name` or `-o key`."""
    meaning: str
    pattern: str = ""
    values: str = ""
    """The values, for people: `16 to 20`."""

    @property
    def form(self) -> str:
        """The item for messages: `-o hashpower=<16 to 30>`."""
        return f"{self.name}=<{self.values}>" if self.pattern else self.name

    @property
    def item_pattern(self) -> str:
        """The regular expression of the whole item."""
        return f"{self.name}=({self.pattern})" if self.pattern else self.name


_FACTOR: Final = r"0\.0[1-9]|0\.[1-9][0-9]?|[1-9](\.[0-9]{1,2})?"

HASHPOWER: Final = "-o hashpower"

ALLOWED: Final = (
    Option("--disable-cas", "Store no CAS values, which saves 8 bytes per item. The command `cas` then never succeeds"),
    Option("--disable-dumping", "Reject `stats cachedump` and `lru_crawler metadump`, which list the keys"),
    Option("--disable-flush-all", "Reject `flush_all`"),
    Option("--disable-watch", "Reject `watch`"),
    Option(
        "--listen-backlog",
        "Connections that the kernel queues; memcached's default is 1024",
        "1[0-9]{3}|2[0-9]{3}|3[0-9]{3}|40[0-8][0-9]|409[0-6]",
        "1000 to 4096",
    ),
    Option(
        "--max-reqs-per-event",
        "Requests that a thread handles for one connection before it turns to the next; memcached's default is 20",
        "[1-9]|1[0-9]|20",
        "1 to 20",
    ),
    Option("--protocol", "Protocols of the port: `ascii` rejects the binary protocol", "ascii|auto", "ascii or auto"),
    Option(
        "--slab-growth-factor",
        "Ratio of the item sizes of successive slab classes; memcached's default is 1.25",
        r"1\.2[5-9]|1\.[3-9][0-9]?|[23](\.[0-9]{1,2})?|4(\.00?)?",
        "1.25 to 4",
    ),
    Option(
        "--slab-min-size",
        "Bytes for key, value and flags in the smallest slab class; memcached's default is 48",
        "4[89]|[5-9][0-9]|[1-9][0-9]{2}|10[01][0-9]|102[0-4]",
        "48 to 1024",
    ),
    Option(
        "-o hash_algorithm", "Hash function; the default is murmur3", "jenkins|murmur3|xxh3", "jenkins, murmur3 or xxh3"
    ),
    Option(
        HASHPOWER,
        "Initial size of the hash table, as an exponent of 2; the default is 16. The table takes 8 × 2ⁿ bytes, for "
        "which the memory limit must leave room",
        "1[6-9]|2[0-9]|30",
        f"{MIN_HASHPOWER} to {MAX_HASHPOWER}",
    ),
    Option(
        "-o hot_lru_pct",
        "Percentage of a slab class for new items; the default is 20",
        "[1-9]|[123][0-9]|40",
        "1 to 40",
    ),
    Option(
        "-o hot_max_factor",
        "New items leave the hot LRU when they are older than this factor times the age of the oldest item in the cold "
        "LRU; the default is 0.2",
        _FACTOR,
        "0.01 to 9.99",
    ),
    Option(
        "-o idle_timeout",
        "Seconds after which the connection of an idle client is closed; by default, it stays open",
        "[6-9][0-9]|[1-9][0-9]{2,3}|[1-7][0-9]{4}|8[0-5][0-9]{3}|86[0-3][0-9]{2}|86400",
        "60 to 86400",
    ),
    Option(
        "-o lru_crawler_sleep",
        "Microseconds that the crawler sleeps between items; the default is 100",
        "0|[1-9][0-9]{0,5}|1000000",
        "0 to 1000000",
    ),
    Option(
        "-o lru_crawler_tocrawl",
        "Items per slab class and run of the crawler; the default is 0, no limit",
        "0|[1-9][0-9]{0,8}",
        "0 to 999999999",
    ),
    Option("-o modern", "No effect in memcached 1.6; accepted because many configurations contain it"),
    Option("-o no_lru_crawler", "Do not remove expired items in the background"),
    Option(
        "-o slab_automove",
        "Move memory between slab classes: 0 never, 1 slowly (the default)",
        "[01]",  # with 2, memcached 1.6.38 crashes at the first eviction
        "0 or 1",
    ),
    Option(
        "-o slab_automove_ratio",
        "Move memory to a slab class when the age of its oldest item, divided by that of another class, falls below "
        "this value; the default is 0.8",
        r"0\.0[1-9]|0\.[1-9][0-9]?",
        "0.01 to 0.99",
    ),
    Option(
        "-o slab_automove_window",
        "Seconds over which those ages are averaged; the default is 30",
        "[3-9]|[1-9][0-9]|[1-9][0-9]{2}|1000",
        "3 to 1000",
    ),
    Option(
        "-o temporary_ttl",
        "Items with a shorter expiration time, in seconds, are not evicted; off by default",
        "[1-9]|[1-9][0-9]|[12][0-9]{2}|300",
        "1 to 300",
    ),
    Option("-o track_sizes", "Count the items of each size for `stats sizes`"),
    Option(
        "-o warm_lru_pct",
        "Percentage of a slab class for items in use; the default is 40",
        "[1-9]|[123][0-9]|40",
        "1 to 40",
    ),
    Option(
        "-o warm_max_factor",
        "Items in use leave the warm LRU when they are older than this factor times the age of the oldest item in the "
        "cold LRU; the default is 2",
        _FACTOR,
        "0.01 to 9.99",
    ),
)

PATTERN: Final = "^(" + "|".join(option.item_pattern for option in ALLOWED) + ")$"
"""The regular expression of an accepted item."""

_BY_NAME: Final = {option.name: option for option in ALLOWED}
_LONG_NAMES: Final = sorted(name for name in (*_BY_NAME, *DENIED) if name.startswith("--"))


def name_of(item: str) -> str:
    """The option of an item: the part before its value."""
    return item.partition("=")[0]


def hashpower_of(items: Sequence[str]) -> int:
    """The hashpower of valid items, otherwise the default."""
    valid = (item for item in items if name_of(item) == HASHPOWER and matches(PATTERN, item))
    return max((int(item.partition("=")[2]) for item in valid), default=MIN_HASHPOWER)


def arguments(items: Sequence[str]) -> list[str]:
    """The command-line arguments of valid items: `-o key=value` is two arguments, any other item is one.

    They must precede `-I`: after it, `-o track_sizes` would reserve an eighth of the item size limit, instead of 128Ki.
    """
    return [argument for item in items for argument in item.split(" ", 1)]


def explanation(item: str) -> str:
    """The message about an item that PATTERN does not match, with the remedy: `must …`, in one sentence."""
    if item.startswith("-o") and "," in item:
        return "must contain one option; write each option of a comma-separated list as a separate item"
    names = _meant(name_of(item))
    if len(names) > 1:
        return f"must be a complete name; write one of {', '.join(names)}"
    return correction(names[0]) if names else FORMS


def correction(name: str) -> str:
    """The message about an item with this option, which is accepted in another form or denied; with the remedy."""
    option = _BY_NAME.get(name)
    if option is None:
        return f"must not set {name}; {DENIED[name]}"
    return f"must be exactly {option.form}" + ("" if option.pattern else ", without a value")


def forms_pattern(name: str) -> str:
    """The regular expression of all items with which memcached reads a long option.

    These are its name and unambiguous abbreviations, each with or without a value, and everything after its short name.
    """
    unique = next(length for length in range(len("--x"), len(name) + 1) if _meant(name[:length]) == [name])
    optional = name[unique:]
    long = name[:unique] + "".join(f"({letter}" for letter in optional) + ")?" * len(optional)
    short = [f"|{short}.*" for short, long_name in SHORT_NAMES.items() if long_name == name]
    return f"^(?s:{long}(=.*)?{''.join(short)})$"


def _meant(name: str) -> Sequence[str]:
    """The options that a name can stand for: itself, the long names that start with it, or those of a short option."""
    if name in _BY_NAME or name in DENIED:
        return [name]
    if name.startswith("--"):
        return [long for long in _LONG_NAMES if len(name) > len("--") and long.startswith(name)]
    if name.startswith("-o "):
        return []
    short = name[:2]
    return [short] if short in DENIED else [SHORT_NAMES[short]] if short in SHORT_NAMES else []


FORMS: Final = (
    "must be a supported option of memcached, one per item: "
    + ", ".join(option.form for option in ALLOWED)
    + "; remove this item or correct it"
)
"""The message for an unknown item, with all accepted forms."""
