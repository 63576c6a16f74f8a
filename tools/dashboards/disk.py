"""The row of one cache about items on a disk. Its graphs are empty without `spec.cache.extstore`."""

from typing import Final

from dashboards import caches
from dashboards.grafana import BAD, GOOD, WARNING, Object, Thresholds, Unit, graph
from dashboards.selectors import SELECTED, rate, summed

POD: Final = "{{pod}}"
PRESSURE: Final[Thresholds] = ((None, GOOD), (80, WARNING), (90, BAD))
"""Of the memory that small items and headers use, in percent: the alert MemcachedExtstoreMemoryFull has 90."""
PROBE: Final = "memcached_agent_extstore_probe_seconds"
MISSING: Final = 'reason="missing"'
READ: Final = rate("memcached_extstore_gets_total")


def row() -> list[Object]:
    """The panels."""
    return [
        graph(
            "Used part of the disk",
            "Share of the pages of memcached's file that have items. A full disk is normal: then the items of the "
            "oldest pages leave it.",
            {POD: f"max by (pod) ({caches.DISK})"},
            Unit.SHARE,
        ),
        graph(
            "Gets from memory and disk",
            "Gets of all selected servers that found their item in memory, and those that read it from the disk. If "
            "most read the disk, more memory makes them faster.",
            {
                "memory": f"sum({rate('memcached_commands_total', caches.FOUND)}) - sum({READ})",
                "disk": f"sum({READ}) - sum({rate(caches.LOST)})",
            },
            Unit.REQUESTS,
            stacked=True,
        ),
        graph(
            "Gets whose item is lost",
            "Gets for which memcached found the key in memory, but whose item had left the disk, or could not be read. "
            "They are normal if the disk is full. `no memory`: the client got an error; raise `spec.cache.memory`.",
            {
                "{{pod}}": f"sum by (pod) ({rate(caches.LOST, MISSING)})",
                "{{pod}}, no memory": f"sum by (pod) ({rate('memcached_extstore_gets_oom_total')})",
            },
            Unit.REQUESTS,
        ),
        graph(
            "Bytes written to and read from the disk",
            "Bytes that memcached writes to its file and reads from it, with those of compaction.",
            {
                "written": f"sum({rate('memcached_extstore_bytes_written_total')})",
                "read": f"sum({rate('memcached_extstore_bytes_read_total')})",
            },
            Unit.BYTES_PER_SECOND,
        ),
        graph(
            "Pages evicted and compacted",
            "Pages whose items had to leave the full disk, pages that were freed because they were empty, and items "
            "that a compaction moved to another page.",
            {
                "pages evicted": f"sum({rate('memcached_extstore_pages_evicted_total')})",
                "pages freed": f"sum({rate('memcached_extstore_pages_reclaimed_total')})",
                "items compacted": f"sum({rate('memcached_extstore_compact_rescued_total')})",
            },
            Unit.EVENTS,
        ),
        graph(
            "Memory of headers",
            "Percent of the memory that small items, and the headers of items on the disk, use. Near 100, memcached "
            "evicts items although the disk has space: raise `spec.cache.memory`. memcached reports it from 1.6.34 on.",
            summed(f"memcached_extstore_memory_pressure_percent{{{SELECTED}}}", "pod"),
            thresholds=PRESSURE,
        ),
        graph(
            "Time of a write",
            "Average seconds in which the agent writes, syncs, and reads 4 KiB on the volume. A local disk needs some "
            "milliseconds. If it is slow, gets that need the disk are slow too.",
            {POD: f"sum by (pod) ({rate(f'{PROBE}_sum')}) / (sum by (pod) ({rate(f'{PROBE}_count')}) > 0)"},
            Unit.SECONDS,
        ),
        graph(
            "Writable disks",
            "1 while the agent can write to the volume of extstore, and 0 if not. Then memcached loses items, and the "
            "agent stops it if the disk refuses writes. The log of the agent names the reason. To replace the volume, "
            "delete the pod.",
            {POD: f"min by (pod) (memcached_agent_extstore_writable{{{SELECTED}}})"},
        ),
        graph(
            "Requests that wait for the disk",
            "Reads and writes in the queue of extstore. If they wait for long, the disk is too slow, or "
            "`spec.cache.extstore.threads` too few.",
            summed(f"memcached_extstore_io_queue_depth{{{SELECTED}}}", "pod"),
        ),
    ]
