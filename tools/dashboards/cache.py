"""The dashboard of one cache."""

from typing import Final

from dashboards import caches, disk
from dashboards.grafana import CONNECTIONS, Column, Dashboard, Rows, Unit, Variable, graph, stat, table
from dashboards.selectors import CACHE, ONE_CACHE, SELECTED, SUFFIX, rate, summed
from memcached_operator.memcached.alerts.caches import weighted

POD: Final = "{{pod}}"
LARGEST: Final = 8
"""Slab classes of a graph: those that use most memory."""


PREDICTED: Final = f"max by (pod, memory) (memcached_agent_predicted_hit_ratio{{{SELECTED}}})"
GAIN: Final = (
    f"({PREDICTED} - on (pod) group_left ()"
    f' max by (pod) (memcached_agent_predicted_hit_ratio{{memory="1",{SELECTED}}}))'
)
CPU: Final = " + ".join(rate(f"memcached_process_{mode}_cpu_seconds_total") for mode in ("user", "system"))
KEPT: Final = f'memcached_agent_memcached_restarts_total{{{SELECTED},items="kept"}}'
GETS_BY_POD: Final = f"sum by (pod) ({caches.GETS})"


ROWS: Final[Rows] = {
    "Is the cache fine?": [
        stat(
            "Hit ratio",
            "Share of the gets that found an item, of all selected servers. Compare it with its usual value.",
            f"sum({caches.HITS}) / (sum({caches.GETS}) > 0)",
            Unit.SHARE,
            empty="no gets",
        ),
        *caches.health(),
    ],
    "Saturation": [
        graph(
            "Memory of items",
            "Memory that the items of each server use, and the limit. A full cache is normal: then it evicts items.",
            {**summed(caches.ITEMS, "pod"), "lowest limit": f"min(memcached_limit_bytes{{{SELECTED}}})"},
            Unit.BYTES,
        ),
        graph(
            "Connections",
            f"Share of the connection limit that is used. {caches.LIMIT_TEXT}",
            {POD: f"max by (pod) ({caches.CONNECTIONS})"},
            Unit.SHARE,
            thresholds=CONNECTIONS,
        ),
        graph(
            "CPU of memcached",
            "Processors that memcached uses. It has `spec.cache.threads` threads, 4 by default.",
            summed(CPU, "pod"),
            Unit.PROCESSORS,
        ),
    ],
    "Effectiveness": [
        graph(
            "Hit ratio of each server",
            "Share of the gets that found an item. A server that was restarted without its items starts at 0.",
            {POD: f"sum by (pod) ({caches.HITS}) / (sum by (pod) ({caches.GETS}) > 0)"},
            Unit.SHARE,
        ),
        graph(
            "Evictions",
            "Items that were removed before they expired, to store others. They are normal in a full cache.",
            summed(caches.EVICTIONS, "pod"),
            Unit.ITEMS,
        ),
        graph(
            "Youngest evicted items",
            caches.EVICTED_AGE_TEXT,
            {POD: f"min by (pod) ({caches.EVICTED_AGE})"},
            Unit.SECONDS,
            thresholds=caches.AGES,
        ),
    ],
    "Traffic": [
        graph(
            "Requests by command",
            "Requests of all selected servers, by command and result.",
            {"{{command}} {{status}}": f"sum by (command, status) ({rate('memcached_commands_total')}) > 0"},
            Unit.REQUESTS,
            stacked=True,
        ),
        graph(
            "Requests of each server",
            "A server with far more requests than the others has a popular key, or some clients do not know the "
            "others.",
            summed(rate("memcached_commands_total"), "pod"),
            Unit.REQUESTS,
        ),
        graph(
            "Network",
            "Bytes from and to the clients.",
            {
                "received": f"sum({rate('memcached_read_bytes_total')})",
                "sent": f"sum({rate('memcached_written_bytes_total')})",
            },
            Unit.BYTES_PER_SECOND,
        ),
    ],
    "Details": [
        graph("Items", "Stored items of each server.", summed(f"memcached_current_items{{{SELECTED}}}", "pod")),
        graph(
            "Memory by size of items",
            f"Memory of the {LARGEST} slab classes that use most. Each holds items up to its chunk size.",
            {
                "class {{slab}}": f"topk({LARGEST}, sum by (slab) (memcached_slab_chunks_used{{{SELECTED}}}"
                f" * memcached_slab_chunk_size_bytes{{{SELECTED}}}))"
            },
            Unit.BYTES,
            stacked=True,
        ),
        graph(
            "Items that were not stored",
            "Items that memcached refused: they were larger than `spec.cache.maxItemSize`, or no memory was free in "
            "their slab class.",
            {
                "too large": f"sum({rate('memcached_item_too_large_total')})",
                "no memory, class {{slab}}": f"sum by (slab) ({rate('memcached_slab_items_outofmemory_total')}) > 0",
            },
            Unit.ITEMS,
        ),
        table(
            "Predicted hit ratio",
            "Hit ratio that the cache would have with so many times its memory, and how much this is above the present "
            "one (`1`). Each server counts by its gets. Only with `spec.monitoring.insight`, while items are evicted. "
            "If a larger memory brings little, look for another cause of misses. `smaller` is the memory without the "
            "items that are evicted next: if their hits are few, the cache may be too large.",
            ["memory"],
            [
                Column("Size", f"avg by (memory) (memcached_agent_predicted_memory_bytes{{{SELECTED}}})", Unit.BYTES),
                Column("Hit ratio", weighted(PREDICTED, GETS_BY_POD), Unit.SHARE),
                Column("Gain", weighted(GAIN, GETS_BY_POD), Unit.SHARE),
            ],
            sort="Size",
            width=8,
        ),
        graph("Refused connections", caches.REFUSED_TEXT, summed(caches.REFUSED, "pod"), Unit.EVENTS),
        graph(
            "Restarts, last hour",
            "Restarts of memcached in a running pod during the last hour: those that kept the items, and the others.",
            {
                "{{pod}}, items lost": f"sum by (pod) (resets(memcached_uptime_seconds{{{SELECTED}}}[1h]))",
                "{{pod}}, items kept": f"sum by (pod) (increase({KEPT}[1h]))",
            },
        ),
    ],
    "Disk": disk.row(),
}
DASHBOARD: Final = Dashboard(
    "memcached-cache",
    "Memcached: one cache",
    "The servers of one Memcached.",
    ONE_CACHE,
    [
        Variable("namespace", "Namespace", "memcached_up", "namespace"),
        Variable("cache", "Cache", 'memcached_up{namespace="$namespace"}', "pod", pattern=CACHE),
        Variable("pod", "Pod", f'memcached_up{{namespace="$namespace",pod=~"$cache-{SUFFIX}"}}', "pod", several=True),
    ],
    ROWS,
)
