"""The dashboard of all caches."""

from typing import Final

from dashboards import caches
from dashboards.grafana import CONNECTIONS, PROBLEMS, Column, Dashboard, Rows, Unit, Variable, graph, stat, table
from dashboards.selectors import FLEET, SELECTED, per_cache, rate

TOP: Final = 10
"""Series of a graph: with more caches, it shows those with the highest values, or the lowest hit ratios."""
LEGEND: Final = "{{namespace}}/{{cache}}"


def top(expr: str, *, lowest: bool = False) -> dict[str, str]:
    """The query for the caches with the highest, or lowest, values."""
    return {LEGEND: f"{'bottomk' if lowest else 'topk'}({TOP}, {expr})"}


HIT_RATIO: Final = f"{per_cache('sum', caches.HITS)} / ({per_cache('sum', caches.GETS)} > 0)"
MEMORY: Final = per_cache("max", caches.MEMORY)
DISK: Final = per_cache("max", caches.DISK)
USED_CONNECTIONS: Final = per_cache("max", caches.CONNECTIONS)
EVICTIONS: Final = per_cache("sum", caches.EVICTIONS)
REQUESTS: Final = per_cache("sum", rate("memcached_commands_total"))
MISSING: Final = per_cache("sum", f"memcached_up{{{SELECTED}}} == bool 0")

IS_PROXY: Final = f"and on (namespace, pod) memcached_proxy_backend_total{{{SELECTED}}}"
"""Only the pods of proxies have this metric."""
MARKED_BAD: Final = per_cache("sum", rate("memcached_proxy_backend_marked_bad_total"))
UNREACHABLE: Final = f"memcached_agent_proxy_servers_unreachable{{{SELECTED}}}"
SCALING: Final = "memcached_agent_proxy_scaling"
"""The prefix of the metrics of proxies about keys that move. They exist only during a change of size in phases."""
MOVED: Final = per_cache("sum", rate(f"{SCALING}_hits_total", 'place="new"'))
HITS_OF_MOVING: Final = per_cache("sum", rate(f"{SCALING}_hits_total"))
ROWS: Final[Rows] = {
    "Are all caches fine?": [
        stat(
            "Caches",
            "Memcached objects with monitoring.",
            f"count({per_cache('count', f'memcached_up{{{SELECTED}}}')})",
        ),
        *caches.health(),
        table(
            "Caches",
            "One line per Memcached; the name opens its dashboard. Memory, disk and connections are those of the "
            "fullest server. The disk is that of `spec.cache.extstore`.",
            ("namespace", "cache"),
            (
                Column("Servers", per_cache("count", f"memcached_up{{{SELECTED}}}")),
                Column("Not replying", MISSING, thresholds=PROBLEMS),
                Column("Hit ratio", HIT_RATIO, Unit.SHARE),
                Column("Memory", MEMORY, Unit.SHARE),
                Column("Disk", DISK, Unit.SHARE),
                Column("Connections", USED_CONNECTIONS, Unit.SHARE, CONNECTIONS),
                Column("Evictions", EVICTIONS, Unit.ITEMS),
                Column("Requests", REQUESTS, Unit.REQUESTS),
            ),
            sort="Not replying",
            link="/d/memcached-cache?var-namespace=${__data.fields.namespace}&var-cache=${__value.raw}&${__url_time_range}",
        ),
    ],
    "Saturation": [
        graph(
            "Memory, fullest server",
            "Share of the memory for items that is used, of the fullest server of each cache. A full cache is normal: "
            "then it evicts items. See the age of evicted items.",
            top(MEMORY),
            Unit.SHARE,
            width=12,
        ),
        graph(
            "Connections, fullest server",
            f"Share of the connection limit that is used, of the fullest server of each cache. {caches.LIMIT_TEXT}",
            top(USED_CONNECTIONS),
            Unit.SHARE,
            thresholds=CONNECTIONS,
            width=12,
        ),
    ],
    "Effectiveness": [
        graph(
            "Lowest hit ratios",
            "Share of the gets that found an item, of the caches where it is lowest. Compare it with its usual value.",
            top(HIT_RATIO, lowest=True),
            Unit.SHARE,
        ),
        graph(
            "Evictions",
            "Items that were removed before they expired, to store others. They are normal in a full cache.",
            top(EVICTIONS),
            Unit.ITEMS,
        ),
        graph(
            "Youngest evicted items",
            caches.EVICTED_AGE_TEXT,
            top(per_cache("min", caches.EVICTED_AGE), lowest=True),
            Unit.SECONDS,
            thresholds=caches.AGES,
        ),
    ],
    "Traffic": [
        graph("Requests", "Requests of all kinds, of the caches with most of them.", top(REQUESTS), Unit.REQUESTS),
        graph(
            "Network",
            "Bytes from and to the clients of all caches.",
            {
                "received": f"sum({rate('memcached_read_bytes_total')})",
                "sent": f"sum({rate('memcached_written_bytes_total')})",
            },
            Unit.BYTES_PER_SECOND,
        ),
        graph(
            "Items",
            "Stored items, of the caches with most of them.",
            top(per_cache("sum", f"memcached_current_items{{{SELECTED}}}")),
        ),
    ],
    "Proxies": [
        graph(
            "Proxies that reply",
            "Pods of each MemcachedProxy with monitoring whose memcached replies to its agent. Each of them serves all "
            "keys. Compare it with `spec.size`.",
            top(per_cache("count", f"memcached_proxy_backend_total{{{SELECTED}}}")),
            width=6,
        ),
        graph(
            "Requests of proxies",
            "Requests that clients send to the proxies, of the MemcachedProxies with most of them.",
            top(per_cache("sum", rate("memcached_proxy_conn_requests_total"))),
            Unit.REQUESTS,
            width=6,
        ),
        graph(
            "Unreachable servers",
            "Servers that a proxy has marked as bad, of the proxy with most of them. Requests for their keys fail. "
            "Look at the pods of the Memcached, and at NetworkPolicies. The second series counts how often they were "
            "marked.",
            {
                LEGEND: f"topk({TOP}, {per_cache('max', UNREACHABLE)})",
                f"{LEGEND}, marked/s": f"topk({TOP}, {MARKED_BAD} > 0)",
            },
            thresholds=PROBLEMS,
            width=6,
        ),
        graph(
            "Connections of proxies",
            "Open connections of clients, of the MemcachedProxies with most of them. Each proxy accepts "
            "`spec.maxConnections`. For more clients, add proxies.",
            top(per_cache("sum", f"memcached_current_connections{{{SELECTED}}} {IS_PROXY}")),
            width=6,
        ),
    ],
    "Changes of size": [
        graph(
            "Hits of keys that move",
            "Hits of proxies for keys that move to another slot, by the slot that had the item. Hits of the old one "
            "are misses after the change. Only during a change of size with `spec.scaling.warm` of the Memcached.",
            {
                f"{LEGEND}, {place}": f"topk({TOP}, {per_cache('sum', rate(f'{SCALING}_hits_total', condition))})"
                for place, condition in (("new slot", 'place="new"'), ("old slot", 'place="old"'))
            },
            Unit.REQUESTS,
            width=6,
        ),
        graph(
            "Moved share",
            "Share of these hits that the new slot had: the hits that remain after the change. If it stops rising "
            "below 100 %, clients only read or touch the rest. A longer `spec.scaling.warm.duration` keeps them only "
            "until they expire.",
            top(f"{MOVED} / ({HITS_OF_MOVING} > 0)", lowest=True),
            Unit.SHARE,
            width=6,
        ),
        graph(
            "Misses of keys that move",
            "Gets for keys that move, and that neither slot has. They are misses without a change of size, too.",
            top(per_cache("sum", rate(f"{SCALING}_misses_total"))),
            Unit.REQUESTS,
            width=6,
        ),
        graph(
            "Writes that fail",
            "Writes of keys that move, which proxies answer with an error, because a slot did not confirm them. Look "
            "at the pods of the Memcached: one of its slots does not reply.",
            top(per_cache("sum", rate(f"{SCALING}_refused_total"))),
            Unit.REQUESTS,
            thresholds=PROBLEMS,
            width=6,
        ),
    ],
    "Details": [
        graph("Refused connections", caches.REFUSED_TEXT, top(per_cache("sum", caches.REFUSED)), Unit.EVENTS, width=6),
        graph(
            "Items that were not stored",
            "Items that memcached refused: they were larger than `spec.cache.maxItemSize`, or no memory was free.",
            {
                "too large": f"sum({rate('memcached_item_too_large_total')})",
                "no memory": f"sum({rate('memcached_item_no_memory_total')})",
            },
            Unit.ITEMS,
            width=6,
        ),
        graph(
            "Restarts, last hour",
            "Restarts of memcached in a running pod, during the last hour, without those that kept the items.",
            top(per_cache("sum", f"resets(memcached_uptime_seconds{{{SELECTED}}}[1h])")),
            width=6,
        ),
        graph(
            "Versions",
            "Servers by version of memcached, and agents by their version.",
            {
                "memcached {{version}}": f"count by (version) (memcached_version{{{SELECTED}}})",
                "agent {{version}}": f"count by (version) (memcached_agent_info{{{SELECTED}}})",
            },
            width=6,
        ),
    ],
}
DASHBOARD: Final = Dashboard(
    "memcached-fleet",
    "Memcached: all caches",
    "All caches with monitoring, of memcached-operator.",
    FLEET,
    [Variable("namespace", "Namespace", "memcached_up", "namespace", several=True)],
    ROWS,
)
