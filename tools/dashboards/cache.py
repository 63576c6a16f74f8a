"""The dashboard of one cache."""

from typing import Final

from dashboards import caches
from dashboards.model import CONNECTIONS, Column, Dashboard, Graph, Query, Row, Stat, Table, Unit, Variable
from dashboards.selectors import CACHE, ONE_CACHE, SELECTED, SUFFIX, rate
from memcached_operator.memcached.alerts.caches import weighted

POD: Final = "{{pod}}"
LARGEST: Final = 8
"""Slab classes of a graph: those that use most memory."""


def by_pod(vector: str, legend: str = POD) -> list[Query]:
    """The query for a sum of each pod."""
    return [Query(f"sum by (pod) ({vector})", legend)]


PREDICTED: Final = f"max by (pod, memory) (memcached_agent_predicted_hit_ratio{{{SELECTED}}})"
GAIN: Final = (
    f"({PREDICTED} - on (pod) group_left ()"
    f' max by (pod) (memcached_agent_predicted_hit_ratio{{memory="1",{SELECTED}}}))'
)
GETS_BY_POD: Final = f"sum by (pod) ({caches.GETS})"


HEALTH: Final = Row(
    "Is the cache fine?",
    [
        Stat(
            "Hit ratio",
            "Share of the gets that found an item, of all selected servers. Compare it with its usual value.",
            expr=f"sum({caches.HITS}) / (sum({caches.GETS}) > 0)",
            unit=Unit.SHARE,
            empty="no gets",
        ),
        *caches.health(),
    ],
)
SATURATION: Final = Row(
    "Saturation",
    [
        Graph(
            "Memory of items",
            "Memory that the items of each server use, and the limit. A full cache is normal: then it evicts items.",
            queries=[
                *by_pod(caches.ITEMS),
                Query(f"min(memcached_limit_bytes{{{SELECTED}}})", "lowest limit"),
            ],
            unit=Unit.BYTES,
        ),
        Graph(
            "Connections",
            f"Share of the connection limit that is used. {caches.LIMIT_TEXT}",
            queries=[Query(f"max by (pod) ({caches.CONNECTIONS})", POD)],
            unit=Unit.SHARE,
            thresholds=CONNECTIONS,
        ),
        Graph(
            "CPU of memcached",
            "Processors that memcached uses. It has `spec.cache.threads` threads, 4 by default.",
            queries=by_pod(
                f"{rate('memcached_process_user_cpu_seconds_total')}"
                f" + {rate('memcached_process_system_cpu_seconds_total')}"
            ),
            unit=Unit.PROCESSORS,
        ),
    ],
)
EFFECTIVENESS: Final = Row(
    "Effectiveness",
    [
        Graph(
            "Hit ratio of each server",
            "Share of the gets that found an item. A server that was restarted without its items starts at 0.",
            queries=[Query(f"sum by (pod) ({caches.HITS}) / (sum by (pod) ({caches.GETS}) > 0)", POD)],
            unit=Unit.SHARE,
        ),
        Graph(
            "Evictions",
            "Items that were removed before they expired, to store others. They are normal in a full cache.",
            queries=by_pod(caches.EVICTIONS),
            unit=Unit.ITEMS,
        ),
        Graph(
            "Youngest evicted items",
            caches.EVICTED_AGE_TEXT,
            queries=[Query(f"min by (pod) ({caches.EVICTED_AGE})", POD)],
            unit=Unit.SECONDS,
            thresholds=caches.AGES,
        ),
    ],
)
TRAFFIC: Final = Row(
    "Traffic",
    [
        Graph(
            "Requests by command",
            "Requests of all selected servers, by command and result.",
            queries=[
                Query(f"sum by (command, status) ({rate('memcached_commands_total')}) > 0", "{{command}} {{status}}")
            ],
            unit=Unit.REQUESTS,
            stacked=True,
        ),
        Graph(
            "Requests of each server",
            "A server with far more requests than the others has a popular key, or some clients do not know the "
            "others.",
            queries=by_pod(rate("memcached_commands_total")),
            unit=Unit.REQUESTS,
        ),
        Graph(
            "Network",
            "Bytes from and to the clients.",
            queries=[
                Query(f"sum({rate('memcached_read_bytes_total')})", "received"),
                Query(f"sum({rate('memcached_written_bytes_total')})", "sent"),
            ],
            unit=Unit.BYTES_PER_SECOND,
        ),
    ],
)
DETAILS: Final = Row(
    "Details",
    [
        Graph("Items", "Stored items of each server.", queries=by_pod(f"memcached_current_items{{{SELECTED}}}")),
        Graph(
            "Memory by size of items",
            f"Memory of the {LARGEST} slab classes that use most. Each holds items up to its chunk size.",
            queries=[
                Query(
                    f"topk({LARGEST}, sum by (slab) (memcached_slab_chunks_used{{{SELECTED}}}"
                    f" * memcached_slab_chunk_size_bytes{{{SELECTED}}}))",
                    "class {{slab}}",
                )
            ],
            unit=Unit.BYTES,
            stacked=True,
        ),
        Graph(
            "Items that were not stored",
            "Items that memcached refused: they were larger than `spec.cache.maxItemSize`, or no memory was free in "
            "their slab class.",
            queries=[
                Query(f"sum({rate('memcached_item_too_large_total')})", "too large"),
                Query(
                    f"sum by (slab) ({rate('memcached_slab_items_outofmemory_total')}) > 0", "no memory, class {{slab}}"
                ),
            ],
            unit=Unit.ITEMS,
        ),
        Table(
            "Predicted hit ratio",
            "Hit ratio that the cache would have with so many times its memory, and how much this is above the present "
            "one (`1`). Each server counts by its gets. Only with `spec.monitoring.insight`, while items are evicted. "
            "If a larger memory brings little, look for another cause of misses. `smaller` is the memory without the "
            "items that are evicted next: if their hits are few, the cache may be too large.",
            labels=["memory"],
            columns=[
                Column("Size", f"avg by (memory) (memcached_agent_predicted_memory_bytes{{{SELECTED}}})", Unit.BYTES),
                Column("Hit ratio", weighted(PREDICTED, GETS_BY_POD), Unit.SHARE),
                Column("Gain", weighted(GAIN, GETS_BY_POD), Unit.SHARE),
            ],
            sort="Size",
            width=8,
        ),
        Graph("Refused connections", caches.REFUSED_TEXT, queries=by_pod(caches.REFUSED), unit=Unit.EVENTS),
        Graph(
            "Restarts, last hour",
            "Restarts of memcached in a running pod during the last hour: those that kept the items, and the others.",
            queries=[
                *by_pod(f"resets(memcached_uptime_seconds{{{SELECTED}}}[1h])", "{{pod}}, items lost"),
                *by_pod(
                    f'increase(memcached_agent_memcached_restarts_total{{{SELECTED},items="kept"}}[1h])',
                    "{{pod}}, items kept",
                ),
            ],
        ),
    ],
)
DASHBOARD: Final = Dashboard(
    "memcached-cache",
    "Memcached: one cache",
    "The servers of one Memcached.",
    ONE_CACHE,
    [
        Variable("namespace", "Namespace", "memcached_up", "namespace"),
        Variable("cache", "Cache", 'memcached_up{namespace="$namespace"}', "pod", pattern=CACHE),
        Variable(
            "pod",
            "Pod",
            f'memcached_up{{namespace="$namespace",pod=~"$cache-{SUFFIX}"}}',
            "pod",
            several=True,
        ),
    ],
    [HEALTH, SATURATION, EFFECTIVENESS, TRAFFIC, DETAILS],
)
