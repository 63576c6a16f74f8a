"""The memory rule: full caches in containers of the derived limit. No process may be killed, no floor exceeded."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from corners import loads, tls, warm
from corners.containers import Container, container
from corners.disk import loads as disk_loads
from corners.disk import volume
from corners.loads import HALF, MEBIBYTE, UNREAD, Cache, Load, every_size, every_size_last, items_of, largest_items
from corners.options import COMBINATIONS
from corners.server import Server, started
from memcached_api.memcached.memory import DEFAULT_ITEM_SIZE
from memcached_api.quantity import parse_quantity

KIBIBYTE: Final = 1024


@dataclass(frozen=True)
class Case:
    """A cache and how it is used."""

    cache: Mapping[str, Any]
    load: Load
    options: str = ""
    """The name of its options in OPTIONS."""
    tls: str = ""
    """`clientAuth` of its TLS; empty: without TLS."""

    @property
    def name(self) -> str:
        """`SETTINGS/LOAD`."""
        return f"{self.settings}/{self.load.name}"

    @property
    def settings(self) -> str:
        """The settings in short."""
        extstore = {f"extstore.{key}": value for key, value in self.cache.get("extstore", {}).items()}
        fields = {key: value for key, value in self.cache.items() if key != "extstore"}
        named = {**fields, **extstore, "extraArgs": self.options, "clientAuth": self.tls}
        return " ".join(f"{key}={value}" for key, value in named.items() if value != "")

    @property
    def is_warm(self) -> bool:
        """Whether the items are in a file in memory."""
        return self.cache.get("warmRestart") is True

    @property
    def disk(self) -> int:
        """The size of the volume of `extstore`, bytes; 0: without one."""
        return int(parse_quantity(self.cache["extstore"]["size"])) if "extstore" in self.cache else 0

    @property
    def container(self) -> Container:
        """The container that the operator builds."""
        served: dict[str, Any] = {"tls": tls.SPECS[self.tls]} if self.tls else {}
        served |= {"identity": "Stable"} if self.is_warm or self.disk else {}
        return container({"cache": {**self.cache, "extraArgs": OPTIONS.get(self.options, ())}, **served})


@dataclass(frozen=True)
class Measurement:
    """The result of a case with a release of memcached; amounts in bytes. `problem`: empty if the case passed."""

    version: str
    settings: str
    load: str
    peak: int
    sockets: int
    floor: int
    limit: int
    problem: str = ""

    @property
    def name(self) -> str:
        """The release and the name of the case."""
        return f"{self.version}/{self.settings}/{self.load}"


def cases() -> Iterator[Case]:
    """The grid."""
    for memory in ("2Mi", "16Mi", "64Mi", "73Mi", "256Mi"):
        yield Case({"memory": memory}, every_size_last())
        yield Case({"memory": memory}, every_size())
    for size, text in SIZES.items():
        yield Case({"memory": "64Mi"}, items_of(size, text))
    for memory in ("64Mi", "72Mi", "73Mi", "80Mi", "144Mi"):
        yield Case({"memory": memory}, every_size(UNREAD, 950))
    yield from _settings()
    for options in OPTIONS:
        for memory in ("2Mi", "64Mi", "73Mi"):
            yield Case({"memory": memory}, every_size_last(), options)
            yield Case({"memory": memory}, every_size(), options)
    # One client is allowed, so the minimum limit contains the least for connections.
    for load in (every_size_last(), every_size()):
        yield Case({"memory": "2Mi", "maxConnections": 30}, load, options="most-memory")
    yield from _tls()
    yield from _warm()
    yield from _disk()
    for memory in ("590Mi", "1180Mi", "2350Mi"):
        yield Case({"memory": memory}, every_size())


def _settings() -> Iterator[Case]:
    """Caches with other settings than the defaults."""
    for size in (loads.SMALLEST, 1000, 100_000):
        yield Case({"memory": "64Mi", "evictions": False}, items_of(size))
    for memory, size in (("64Mi", "512Ki"), ("64Mi", "2Mi"), ("64Mi", "8Mi"), ("256Mi", "64Mi")):
        cache = {"memory": memory, "maxItemSize": size}
        yield Case(cache, largest_items())
        yield Case(cache, every_size())
    for threads in (1, 16, 64):
        cache = {"memory": "64Mi", "threads": threads, "maxConnections": 1500}
        yield Case(cache, every_size(UNREAD, 1000))
    for connections in (500, 5000):
        cache = {"memory": "64Mi", "maxConnections": connections + 50}
        yield Case(cache, every_size(UNREAD, connections))
        yield Case(cache, every_size(HALF, connections))
    yield Case({"memory": "16Mi", "maxConnections": 550}, every_size(UNREAD, 500))
    yield Case({"memory": "64Mi", "maxConnections": 550}, every_size(UNREAD, 500, 100 * KIBIBYTE))


def _tls() -> Iterator[Case]:
    """Clients that connect at once with TLS, with and without certificates."""
    for auth in tls.SPECS:
        for kind in (loads.IDLE, UNREAD, loads.LONG):
            cache = {"memory": "64Mi", "maxConnections": 1050}
            yield Case(cache, every_size(kind, 1000), tls=auth)
        yield Case({"memory": "64Mi", "maxConnections": 4050}, every_size(loads.LONG, 4000), tls=auth)
    yield Case({"memory": "2Mi", "maxConnections": 550}, every_size(loads.LONG, 500), tls="Require")


def _warm() -> Iterator[Case]:
    """Caches whose items are in a file. With 628Mi, the hash table doubles just before the cache is full."""
    for memory in ("64Mi", "256Mi", "628Mi"):
        cache = {"memory": memory, "warmRestart": True}
        yield Case(cache, items_of(loads.SMALLEST))
        yield Case(cache, every_size_last())
    cache = {"memory": "64Mi", "maxConnections": 1050, "warmRestart": True}
    yield Case(cache, every_size(HALF, 1000))


def _disk() -> Iterator[Case]:
    """Caches with items on a disk. The sizes of items are those with which the buffers have 4 to 64 MiB."""
    extstore = {"size": "1Gi", "itemAge": "0s"}
    for memory in ("64Mi", "73Mi"):
        yield Case({"memory": memory, "extstore": extstore}, disk_loads.small_items())
        yield Case({"memory": memory, "extstore": extstore}, disk_loads.every_buffer_first())
    for memory, size in (("64Mi", "2Mi"), ("128Mi", "4Mi"), ("256Mi", "8Mi"), ("2Gi", "64Mi")):
        cache = {"memory": memory, "maxItemSize": size, "extstore": {**extstore, "size": "2Gi"}}
        yield Case(cache, disk_loads.every_buffer())
    cache = {"memory": "64Mi", "threads": 64, "maxConnections": 1500, "extstore": {**extstore, "threads": 64}}
    yield Case(cache, every_size(UNREAD, 1000, 10 * KIBIBYTE))


OPTIONS: Final[Mapping[str, Sequence[str]]] = {
    "highest": COMBINATIONS[-1],
    "most-memory": (
        "-o hashpower=17",
        "-o idle_timeout=60",
        "-o track_sizes",
        "--slab-growth-factor=1.25",
        "--slab-min-size=48",
        "--listen-backlog=4096",
        "--max-reqs-per-event=20",
        "-o lru_crawler_tocrawl=0",
    ),
    "large-table": ("-o hashpower=22",),
}
"""Lists of extraArgs by name.

most-memory: the options that could need memory, with the values that need the most; a larger hash table is counted by
itself. large-table: one of 32 MiB.
"""

SIZES: Final = {
    32: "32 B",
    100: "100 B",
    KIBIBYTE: "1 KiB",
    10 * KIBIBYTE: "10 KiB",
    100 * KIBIBYTE: "100 KiB",
    1000 * KIBIBYTE: "1000 KiB",
}


def measure(case: Case, version: str, root: Path) -> Measurement:
    """Run a case with a release of memcached, whose directory is `root`."""
    made = case.container
    item_size = int(parse_quantity(case.cache.get("maxItemSize", DEFAULT_ITEM_SIZE)))
    with ExitStack() as stack:
        own_root, context = stack.enter_context(tls.prepared(root, case.tls))
        own_root = stack.enter_context(warm.prepared(own_root, made.cache)) if case.is_warm else own_root
        own_root, disk = stack.enter_context(volume.prepared(own_root, case.disk)) if case.disk else (own_root, None)
        server = stack.enter_context(started(own_root, made.command, made.local_port, made.limit))
        stack.enter_context(server.sampled())
        cache = Cache(server, made.cache // MEBIBYTE, item_size, made.port, context, disk)
        problem = server.problem() or _use(server, case.load, cache)
        if server.peak > made.floor and not problem:
            problem = f"used {mebibytes(server.peak)} MiB, more than the minimum limit of {mebibytes(made.floor)} MiB"
        found = server.peak, server.sockets
    return Measurement(version, case.settings, case.load.name, *found, made.floor, made.limit, problem)


def _use(server: Server, load: Load, cache: Cache) -> str:
    """Run a load; returns an empty string, or what went wrong."""
    problem = ""
    try:
        load.run(cache)
    except OSError as error:
        problem = f"{type(error).__name__}: {error}"
    if server.group.kills():
        return "the kernel ended memcached: it was at its memory limit"
    return problem or server.problem()


def mebibytes(amount: int) -> str:
    """An amount with one decimal."""
    return f"{amount / MEBIBYTE:.1f}"
