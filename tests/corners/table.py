"""The corner table: specs at and around every limit of `spec.cache`.

A spec that admission accepts must start and still reply after 5 s, with each release of memcached and the command that
the operator makes of it. So a spec with which memcached exits, or never replies, must be denied. Each entry also says
which of both is expected, so that a limit is neither too low nor too high.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from math import ceil
from typing import Any, Final, NamedTuple

from corners.containers import Spec
from corners.options import ALLOWED_ITEMS, COMBINATIONS, DENIED_ITEMS
from memcached_api.memcached import extstore, memory
from memcached_api.memcached.types import MEMCACHED
from support.memcached import memcached

MEBIBYTE: Final = memory.MEBIBYTE
KIBIBYTE: Final = 1024
SEED: Final = 16
RANDOM_SPECS: Final = 150
RANDOM_DISKS: Final = 60
NO_AUTOMOVE: Final = "-o slab_automove=0"
DISK_ITEMS: Final = tuple(item for item in dict.fromkeys(ALLOWED_ITEMS) if item != NO_AUTOMOVE)
"""The options that are accepted with items on a disk."""


class Entry(NamedTuple):
    """A spec. `valid`: whether admission accepts it; None: not known in advance."""

    name: str
    spec: Spec
    valid: bool | None


def entries() -> list[Entry]:
    """The table. Names are unique."""
    return [
        *_memory(),
        *_limits(),
        *_item_sizes(),
        *_threads(),
        *_connections(),
        *_switches(),
        *_warm_restarts(),
        *_disks(),
        *_options(),
        *_together(),
        *_random(),
        *_random_disks(),
    ]


def errors(entry: Entry) -> list[str]:
    """What the webhook's validation finds in a spec; empty if it is accepted."""
    return [str(each) for each in MEMCACHED.validate(memcached("default", **entry.spec))]


def cache(name: str, valid: bool | None, **fields: Any) -> Entry:
    """An entry that sets only fields of the cache."""
    return Entry(name, {"cache": fields}, valid)


def _memory() -> Iterator[Entry]:
    valid = ("2Mi", "3Mi", "2097152", 2097152, "2100k", "2.5Mi", "64Mi", "100M", "0.5Gi", "1Gi", "1023Gi", "1Ti", "1Pi")
    invalid = ("0", "1Mi", "2047Ki", "2097151", "1999k", "64", "-64Mi", "64MB", "", "1125899906842625", "2Pi", "1E")
    for value in valid:
        yield cache(f"memory {value!r}", True, memory=value)
    for value in invalid:
        yield cache(f"memory {value!r}", False, memory=value)


def _limits() -> Iterator[Entry]:
    """Limits at the floor and just below it, and limits from which the cache is derived."""
    for text in ("2Mi", "16Mi", "64Mi", "72Mi", "100Mi", "590Mi", "8Gi"):
        floor = ceil(memory.exact_minimum(memory.cache_bytes(text)))
        for limit, valid in ((floor, True), (floor - 1, False)):
            yield _limited(f"memory {text} in {limit}", valid, limit, memory=text)
    for threads, connections in ((1, 100), (64, 65536), (16, 5000)):
        settings = memory.Settings(connections, threads)
        floor = ceil(memory.exact_minimum(64 * MEBIBYTE, settings))
        fields = {"memory": "64Mi", "threads": threads, "maxConnections": connections}
        for limit, valid in ((floor, True), (floor - 1, False)):
            yield _limited(f"{threads} threads, {connections} connections in {limit}", valid, limit, **fields)
    smallest = ceil(memory.exact_limit_for(memory.MIN_CACHE))
    for limit, valid in (
        (smallest, True),
        (smallest - 1, False),
        (64 * MEBIBYTE, True),
        (2**33, True),
        (MEBIBYTE, False),
    ):
        yield _limited(f"derived from {limit}", valid, limit)


def _limited(name: str, valid: bool, limit: int, **fields: Any) -> Entry:
    return Entry(name, {"cache": fields, "resources": {"limits": {"memory": str(limit)}}}, valid)


def _item_sizes() -> Iterator[Entry]:
    for size in ("512Ki", "1Mi", "1536Ki", "1.5Mi", "2Mi", "8Mi", "64Mi", "512Mi", "1Gi", 1048576):
        yield cache(f"item {size!r} in 2Gi", True, memory="2Gi", maxItemSize=size)
    for half in (512, 1024, 1536, 4096, 65536, 524288, 1048576):
        yield from _half(half)
    outside = ("0", "1k", "1Ki", "100k", "256Ki", "300k", "511Ki", "512k", "524287", "524289", "600k", "1023Ki")
    beyond = ("1025Ki", "1100k", "1.2Mi", "1M", "1048575Ki", "1048577Ki", "1049088Ki", "1025Mi", "2Gi", "-1Mi", "big")
    for size in (*outside, *beyond):
        yield cache(f"item {size!r} in 8Gi", False, memory="8Gi", maxItemSize=size)


def _half(kibibytes: int) -> Iterator[Entry]:
    """Caches of twice the item size, and a little less. memcached uses whole mebibytes of the cache."""
    for less, unit in ((0, "Ki"), (1, "Ki"), (1024, "Ki")):
        amount = 2 * kibibytes - less
        whole = amount // KIBIBYTE
        valid = whole >= 2 and 2 * kibibytes <= whole * KIBIBYTE
        if amount > 0:
            yield cache(
                f"item {kibibytes}Ki in {amount}{unit}", valid, memory=f"{amount}{unit}", maxItemSize=f"{kibibytes}Ki"
            )


def _threads() -> Iterator[Entry]:
    for threads in (-1, 0, 1, 2, 3, 4, 5, 8, 16, 31, 32, 63, 64, 65, 128, 2**31):
        yield cache(f"{threads} threads", 1 <= threads <= memory.MAX_THREADS, threads=threads)


def _connections() -> Iterator[Entry]:
    for threads in (1, 2, 3, 4, 5, 8, 16, 32, 48, 64):
        least = memory.minimum_connections(threads)
        for connections in (least - 2, least - 1, least, least + 1):
            fields = {"threads": threads, "maxConnections": connections}
            yield cache(f"{connections} connections, {threads} threads", connections >= least, **fields)
    least = memory.minimum_connections(memory.DEFAULT_THREADS)
    for connections in (-1, 0, 1, 10, least - 1, least, 1023, 1024, 1025, 5000, 20000, 65535, 65536, 65537, 2_000_000):
        valid = least <= connections <= memory.MAX_CONNECTIONS
        yield cache(f"{connections} connections", valid, maxConnections=connections)


def _switches() -> Iterator[Entry]:
    for evictions in (True, False):
        yield cache(f"evictions {evictions}", True, evictions=evictions)
    for verbosity in (-1, 0, 1, 2, 3):
        yield cache(f"verbosity {verbosity}", 0 <= verbosity <= 2, verbosity=verbosity)


def _warm_restarts() -> Iterator[Entry]:
    yield cache("warm restart without slots", False, warmRestart=True)
    yield cache("no warm restart in 2Mi", True, warmRestart=False, memory="2Mi")
    for text, valid in (("2Mi", False), ("65535Ki", False), ("64Mi", True), ("64.5Mi", True), ("1Gi", True)):
        yield _slots(cache(f"warm restart in {text}", valid, warmRestart=True, memory=text))
    yield _slots(cache("warm restart in the default", True, warmRestart=True))
    smallest = ceil(memory.exact_limit_for(memory.MIN_WARM_CACHE))
    for limit, valid in ((smallest, True), (smallest - 1, False)):
        yield _slots(_limited(f"warm restart derived from {limit}", valid, limit, warmRestart=True))


def _slots(entry: Entry) -> Entry:
    return entry._replace(spec={**entry.spec, "identity": "Stable"})


def _disk(name: str, valid: bool | None, size: str = "4Gi", /, **fields: Any) -> Entry:
    """An entry with items on a disk. Each field of the cache is its own; `extstore` has further fields of the disk."""
    section = {"size": size, **fields.pop("extstore", {})}
    return _slots(cache(f"disk: {name}", valid, **{"memory": "256Mi", **fields, "extstore": section}))


def _disks() -> Iterator[Entry]:
    yield cache("disk: without slots", False, memory="256Mi", extstore={"size": "4Gi"})
    yield from _disk_fields()
    yield from _disk_memory()
    for item in DISK_ITEMS:
        yield _disk(f"option {item}", True, extraArgs=[item])
    for number, items in enumerate(COMBINATIONS):
        moving = [item for item in items if item != NO_AUTOMOVE]
        yield _disk(f"all options {number}", True, extraArgs=moving)
        yield _disk(f"all options {number}, no automove", False, extraArgs=[*moving, NO_AUTOMOVE])
    for threads in (1, 4, 64):
        least = memory.minimum_connections(threads) + memory.EXTSTORE_CONNECTIONS
        for connections, valid in ((least, True), (least - 1, False)):
            fields = {"threads": threads, "maxConnections": connections}
            yield _disk(f"{connections} connections, {threads} threads", valid, **fields)
    for setting in ({"warmRestart": True}, {"evictions": False}, {"extraArgs": [NO_AUTOMOVE]}):
        yield _disk(f"with {setting}", False, **setting)
    for setting in ({"warmRestart": False}, {"evictions": True}, {"verbosity": 2}, {"threads": 1}, {"threads": 64}):
        yield _disk(f"with {setting}", True, **setting)


def _disk_fields() -> Iterator[Entry]:
    """The fields of the disk at their limits."""
    for size, valid in (("1Gi", True), ("1073741823", False), ("1.5Gi", True), ("2T", True), ("4Ti", True)):
        yield _disk(size, valid, size, memory="9Gi")
    for size in ("4398046511105", "0", "-4Gi", "4GB", ""):
        yield _disk(f"{size!r}", False, size, memory="9Gi")
    for threads in (-1, 0, 1, 8, 64, 65):
        yield _disk(f"{threads} threads", 1 <= threads <= extstore.MAX_THREADS, extstore={"threads": threads})
    for age, valid in (("0s", True), ("1s", True), ("24h", True), ("86400s", True), ("86401s", False), ("0", False)):
        yield _disk(f"items of {age}", valid, extstore={"itemAge": age})
    for fields, valid in (
        ({"volume": extstore.CLAIM, "storageClassName": "fast"}, True),
        ({"volume": extstore.EMPTY_DIR}, True),
        ({"volume": extstore.EMPTY_DIR, "storageClassName": "fast"}, False),
    ):
        yield _disk(f"{fields}", valid, extstore=fields)


def _disk_memory() -> Iterator[Entry]:
    """The least memory for a disk, and for its items, whose size determines that of memcached's buffers."""
    for size, text, valid in (("1Gi", "64Mi", True), ("1Gi", "65535Ki", False), ("100Gi", "205Mi", True)):
        yield _disk(f"{size} with {text}", valid, size, memory=text)
    yield _disk("100Gi with 204Mi", False, "100Gi", memory="204Mi")
    for item, text in (("512Ki", 64), ("1Mi", 64), ("2Mi", 64), ("2560Ki", 80), ("4Mi", 128), ("4608Ki", 144)):
        yield from _disk_items(item, text)
    for item, text in (("8Mi", 256), ("8704Ki", 272), ("16Mi", 512), ("63.5Mi", 2032), ("64Mi", 2048)):
        yield from _disk_items(item, text)
    yield _disk("items of 64.5Mi", False, memory="4Gi", maxItemSize="64.5Mi")
    for extra in ({}, {"threads": 64}):
        settings = memory.Settings(disk=extstore.memory_of(Decimal(2**32), memory.MEBIBYTE, extra.get("threads")))
        floor = ceil(memory.exact_minimum(256 * MEBIBYTE, settings))
        for limit, valid in ((floor, True), (floor - 1, False)):
            entry = _disk(f"{extra} in {limit}", valid, extstore=extra)
            yield entry._replace(spec={**entry.spec, "resources": {"limits": {"memory": str(limit)}}})


def _disk_items(item: str, least: int) -> Iterator[Entry]:
    for mebibytes, valid in ((least, True), (least - 1, False)):
        name = f"items of {item} with {mebibytes}Mi"
        yield _disk(name, valid, memory=f"{mebibytes}Mi", maxItemSize=item)


def _options() -> Iterator[Entry]:
    for item in dict.fromkeys(ALLOWED_ITEMS):
        yield cache(f"option {item}", True, extraArgs=[item])
    for item in DENIED_ITEMS:
        yield cache(f"option {item!r}", False, extraArgs=[item])
    for number, items in enumerate(COMBINATIONS):
        yield cache(f"all options {number}", True, extraArgs=list(items))
    yield cache("an option twice", False, extraArgs=["-o modern", "-o modern"])
    yield cache("33 options", False, extraArgs=["-o modern"] * 33)
    yield cache("no options", True, extraArgs=[])


def _together() -> Iterator[Entry]:
    """All fields at their limits."""
    lowest = {"memory": "2Mi", "maxItemSize": "512Ki", "threads": 1, "evictions": False, "verbosity": 0}
    highest = {"memory": "1Pi", "maxItemSize": "1Gi", "threads": 64, "evictions": True, "verbosity": 2}
    for number, items in enumerate(COMBINATIONS):
        low = {"maxConnections": memory.minimum_connections(1), "extraArgs": list(items)}
        high = {"maxConnections": memory.MAX_CONNECTIONS, "extraArgs": list(items)}
        yield cache(f"all lowest {number}", True, **lowest, **low)
        yield cache(f"all highest {number}", True, **highest, **high)
        # Most machines allow so many open files.
        yield cache(f"all highest {number}, 5000 connections", True, **highest, **{**high, "maxConnections": 5000})


CHOICES: Final[Mapping[str, Sequence[Any]]] = {
    "memory": ("1Mi", "2Mi", "16Mi", "64Mi", "2Gi", "4Gi", None),
    "maxItemSize": ("512Ki", "1Mi", "1536Ki", "2Mi", "32Mi", "1Gi", "1000Ki", None, None, None, None),
    "maxConnections": (14, 15, 30, 90, 330, 1024, 5000, 20000, None, None, None),
    "threads": (1, 2, 4, 16, 64, 65, None, None, None),
    "evictions": (True, False, None),
    "verbosity": (0, 1, 2, None),
    "extraArgs": ([ALLOWED_ITEMS[0]], list(COMBINATIONS[0]), list(COMBINATIONS[-1]), ["-h"], None, None, None, None),
}


def _random() -> Iterator[Entry]:
    """Combinations of values at the limits; the same ones in every run."""
    chosen = random.Random(SEED)  # noqa: S311 (not for security)
    for number in range(RANDOM_SPECS):
        values = {name: chosen.choice(choices) for name, choices in CHOICES.items()}
        yield cache(f"random {number}", None, **{name: each for name, each in values.items() if each is not None})


DISK_CHOICES: Final[Mapping[str, Sequence[Any]]] = {
    "size": ("1Gi", "1500M", "100Gi", "4Ti"),
    "itemAge": ("0s", "24h", None),
    "threads": (1, 64, None),
}


def _random_disks() -> Iterator[Entry]:
    """Combinations of values of the disk and of the cache, most of them valid; the same ones in every run."""
    chosen = random.Random(SEED)  # noqa: S311 (not for security)
    for number in range(RANDOM_DISKS):
        section = {name: each for name in DISK_CHOICES if (each := chosen.choice(DISK_CHOICES[name])) is not None}
        values = {
            "memory": chosen.choice(("64Mi", "2Gi", "9Gi", "9Gi")),
            "maxItemSize": chosen.choice((None, None, "512Ki", "2Mi", "3.5Mi", "64Mi")),
            "maxConnections": chosen.choice((None, 332, 1024, 5000)),
            "threads": chosen.choice((None, 1, 64)),
            "verbosity": chosen.choice((None, 2)),
            "extraArgs": chosen.sample(DISK_ITEMS, 4),
        }
        fields = {name: each for name, each in values.items() if each is not None}
        yield _disk(f"random {number}", None, str(section.pop("size")), extstore=section, **fields)
