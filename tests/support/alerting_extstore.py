"""Series of caches with extstore for which alerts fire or stay silent, as in support.alerting."""

from collections.abc import Mapping
from typing import Final

from support.alerting import CACHE, POD, Case, Series

SERVER: Final = {**CACHE, "pod": "sessions-0"}
"""The labels of an alert about a server."""


def _volume(free: int, used: int = 100) -> Series:
    """A volume for a file of 896 MiB. `free`, `used`: MiB."""
    gauges = {"extstore_bytes_limit": 896, "agent_extstore_file_bytes": used, "agent_extstore_volume_free_bytes": free}
    return {f"memcached_{name}{{{POD}}}": f"{each * 2**20}+0x60" for name, each in gauges.items()}


def _disk(missing: str = "0+0x60", evicted: int = 0, bad: str = "0+0x60") -> Series:
    """A disk whose gets lose items, or return wrong checksums. `evicted`: pages until now."""
    return {
        f'memcached_extstore_lost_gets_total{{reason="missing",{POD}}}': missing,
        f'memcached_extstore_lost_gets_total{{reason="aborted",{POD}}}': "0+1x60",
        f"memcached_extstore_pages_evicted_total{{{POD}}}": f"{evicted}+0x60",
        f"memcached_extstore_bad_checksums_total{{{POD}}}": bad,
    }


def _probes(total: str, count: str) -> Series:
    """Probes of a volume. `total`: their seconds."""
    metric = "memcached_agent_extstore_probe_seconds"
    return {f"{metric}_sum{{{POD}}}": total, f"{metric}_count{{{POD}}}": count}


def _pressure(percent: str, evicted: str) -> Series:
    """The share of headers, of the memory that is in use, and evicted items."""
    return {
        f"memcached_extstore_memory_pressure_percent{{{POD}}}": percent,
        f"memcached_items_evicted_total{{{POD}}}": evicted,
    }


def _gauge(name: str, values: str) -> Series:
    return {f"memcached_{name}{{{POD}}}": values}


FIRING: Final[Mapping[str, Case]] = {
    "the disk of a server is read-only": Case(
        _gauge("agent_extstore_writable", "0+0x60"),
        10,
        {
            "MemcachedExtstoreNotWritable": (
                SERVER,
                "The agent cannot write to the volume of extstore of shop/sessions-0. Its log has the reason.",
            )
        },
    ),
    "a volume is smaller than its file": Case(
        _volume(free=746),
        30,
        {
            "MemcachedExtstoreVolumeTooSmall": (
                SERVER,
                "The volume of shop/sessions-0 has 50MiB less than the file of its items needs.",
            )
        },
    ),
    **{
        name: Case(
            series,
            40,
            {
                "MemcachedExtstoreLosesItems": (
                    SERVER,
                    "shop/sessions-0 does not find items again that it has written to its disk.",
                )
            },
        )
        for name, series in {
            "items are not on the disk": _disk(missing="0+1x60"),
            "items on the disk have wrong checksums": _disk(missing="0+1x60", evicted=9, bad="0+1x60"),
        }.items()
    },
    "headers fill the memory": Case(
        _pressure("99.6+0x60", "0+1x60"),
        40,
        {
            "MemcachedExtstoreMemoryFull": (
                SERVER,
                "shop/sessions-0 evicts items. Small ones and headers use 100% of its memory.",
            )
        },
    ),
    "no memory to read the disk": Case(
        _gauge("extstore_gets_oom_total", "0+1x60"),
        30,
        {
            "MemcachedExtstoreReadsFail": (
                SERVER,
                "Gets from shop/sessions-0 fail with SERVER_ERROR out of memory.",
            )
        },
    ),
    **{
        name: Case(
            series,
            40,
            {
                "MemcachedExtstoreSlow": (
                    SERVER,
                    "Gets from shop/sessions-0 wait for its disk, or a write of 4 KiB takes more than 0.5 s.",
                )
            },
        )
        for name, series in {
            "gets wait for the disk": _gauge("extstore_io_queue_depth", "33+0x60"),
            "probes are slow": _probes("0+6x60", "0+10x60"),
        }.items()
    },
}
SILENT: Final[Mapping[str, Case]] = {
    "a disk works": Case(_gauge("agent_extstore_writable", "1+0x60"), 30),
    "a volume as large as its file": Case(_volume(free=796), 30),
    "a full file": Case(_volume(free=0, used=896), 30),
    "items have left the disk with their page": Case(_disk(missing="0+1x60", evicted=1), 40),
    "items were not on the disk for a while": Case(_disk(missing="0+1x10 10+0x60"), 40),
    "headers use much of the memory": Case(_pressure("89+0x60", "0+1x60"), 40),
    "headers use all of the memory that is in use": Case(_pressure("100+0x60", "9+0x60"), 40),
    "a disk without waiting gets": Case(_gauge("extstore_io_queue_depth", "32+0x60"), 40),
    "probes take half a second": Case(_probes("0+5x60", "0+10x60"), 40),
    "probes hang": Case(_probes("6+0x60", "10+0x60"), 40),
}
