"""The dashboard of all caches."""

from typing import Final

from dashboards import caches
from dashboards.model import CONNECTIONS, PROBLEMS, Column, Dashboard, Graph, Query, Row, Stat, Table, Unit, Variable
from dashboards.selectors import FLEET, SELECTED, per_cache, rate

TOP: Final = 10
"""Series of a graph: with more caches, it shows those with the highest values, or the lowest hit ratios."""
LEGEND: Final = "{{namespace}}/{{cache}}"


def top(expr: str, *, lowest: bool = False) -> list[Query]:
    """The query for the caches with the highest, or lowest, values."""
    return [Query(f"{'bottomk' if lowest else 'topk'}({TOP}, {expr})", LEGEND)]


HIT_RATIO: Final = f"{per_cache('sum', caches.HITS)} / ({per_cache('sum', caches.GETS)} > 0)"
MEMORY: Final = per_cache("max", caches.MEMORY)
USED_CONNECTIONS: Final = per_cache("max", caches.CONNECTIONS)
EVICTIONS: Final = per_cache("sum", caches.EVICTIONS)
REQUESTS: Final = per_cache("sum", rate("memcached_commands_total"))
MISSING: Final = per_cache("sum", f"memcached_up{{{SELECTED}}} == bool 0")

HEALTH: Final = Row(
    "Are all caches fine?",
    [
        Stat(
            "Caches",
            "Memcached objects with monitoring.",
            expr=f"count({per_cache('count', f'memcached_up{{{SELECTED}}}')})",
        ),
        *caches.health(),
        Table(
            "Caches",
            "One line per Memcached; the name opens its dashboard. Memory and connections are those of the fullest "
            "server.",
            labels=("namespace", "cache"),
            columns=(
                Column("Servers", per_cache("count", f"memcached_up{{{SELECTED}}}")),
                Column("Not replying", MISSING, thresholds=PROBLEMS),
                Column("Hit ratio", HIT_RATIO, Unit.SHARE),
                Column("Memory", MEMORY, Unit.SHARE),
                Column("Connections", USED_CONNECTIONS, Unit.SHARE, CONNECTIONS),
                Column("Evictions", EVICTIONS, Unit.ITEMS),
                Column("Requests", REQUESTS, Unit.REQUESTS),
            ),
            sort="Not replying",
            link="/d/memcached-cache?var-namespace=${__data.fields.namespace}&var-cache=${__value.raw}&${__url_time_range}",
        ),
    ],
)
SATURATION: Final = Row(
    "Saturation",
    [
        Graph(
            "Memory, fullest server",
            "Share of the memory for items that is used, of the fullest server of each cache. A full cache is normal: "
            "then it evicts items. See the age of evicted items.",
            12,
            queries=top(MEMORY),
            unit=Unit.SHARE,
        ),
        Graph(
            "Connections, fullest server",
            f"Share of the connection limit that is used, of the fullest server of each cache. {caches.LIMIT_TEXT}",
            12,
            queries=top(USED_CONNECTIONS),
            unit=Unit.SHARE,
            thresholds=CONNECTIONS,
        ),
    ],
)
EFFECTIVENESS: Final = Row(
    "Effectiveness",
    [
        Graph(
            "Lowest hit ratios",
            "Share of the gets that found an item, of the caches where it is lowest. Compare it with its usual value.",
            queries=top(HIT_RATIO, lowest=True),
            unit=Unit.SHARE,
        ),
        Graph(
            "Evictions",
            "Items that were removed before they expired, to store others. They are normal in a full cache.",
            queries=top(EVICTIONS),
            unit=Unit.ITEMS,
        ),
        Graph(
            "Youngest evicted items",
            caches.EVICTED_AGE_TEXT,
            queries=top(per_cache("min", caches.EVICTED_AGE), lowest=True),
            unit=Unit.SECONDS,
            thresholds=caches.AGES,
        ),
    ],
)
TRAFFIC: Final = Row(
    "Traffic",
    [
        Graph(
            "Requests",
            "Requests of all kinds, of the caches with most of them.",
            queries=top(REQUESTS),
            unit=Unit.REQUESTS,
        ),
        Graph(
            "Network",
            "Bytes from and to the clients of all caches.",
            queries=[
                Query(f"sum({rate('memcached_read_bytes_total')})", "received"),
                Query(f"sum({rate('memcached_written_bytes_total')})", "sent"),
            ],
            unit=Unit.BYTES_PER_SECOND,
        ),
        Graph(
            "Items",
            "Stored items, of the caches with most of them.",
            queries=top(per_cache("sum", f"memcached_current_items{{{SELECTED}}}")),
        ),
    ],
)
DETAILS: Final = Row(
    "Details",
    [
        Graph(
            "Refused connections",
            caches.REFUSED_TEXT,
            6,
            queries=top(per_cache("sum", caches.REFUSED)),
            unit=Unit.EVENTS,
        ),
        Graph(
            "Items that were not stored",
            "Items that memcached refused: they were larger than `spec.cache.maxItemSize`, or no memory was free.",
            6,
            queries=[
                Query(f"sum({rate('memcached_item_too_large_total')})", "too large"),
                Query(f"sum({rate('memcached_item_no_memory_total')})", "no memory"),
            ],
            unit=Unit.ITEMS,
        ),
        Graph(
            "Restarts, last hour",
            "Restarts of memcached in a running pod, during the last hour, without those that kept the items.",
            6,
            queries=top(per_cache("sum", f"resets(memcached_uptime_seconds{{{SELECTED}}}[1h])")),
        ),
        Graph(
            "Versions",
            "Servers by version of memcached, and agents by their version.",
            6,
            queries=[
                Query(f"count by (version) (memcached_version{{{SELECTED}}})", "memcached {{version}}"),
                Query(f"count by (version) (memcached_agent_info{{{SELECTED}}})", "agent {{version}}"),
            ],
        ),
    ],
)
IS_PROXY: Final = f"and on (namespace, pod) memcached_proxy_backend_total{{{SELECTED}}}"
"""Only the pods of proxies have this metric."""
UNREACHABLE: Final = f"memcached_agent_proxy_servers_unreachable{{{SELECTED}}}"
PROXIES: Final = Row(
    "Proxies",
    [
        Graph(
            "Proxies that reply",
            "Pods of each MemcachedProxy with monitoring whose memcached replies to its agent. Each of them serves all "
            "keys. Compare it with `spec.size`.",
            6,
            queries=top(per_cache("count", f"memcached_proxy_backend_total{{{SELECTED}}}")),
        ),
        Graph(
            "Requests of proxies",
            "Requests that clients send to the proxies, of the MemcachedProxies with most of them.",
            6,
            queries=top(per_cache("sum", rate("memcached_proxy_conn_requests_total"))),
            unit=Unit.REQUESTS,
        ),
        Graph(
            "Unreachable servers",
            "Servers that a proxy has marked as bad, of the proxy with most of them. Requests for their keys fail. "
            "Look at the pods of the Memcached, and at NetworkPolicies. The second series counts how often they were "
            "marked.",
            6,
            queries=[
                Query(f"topk({TOP}, {per_cache('max', UNREACHABLE)})", LEGEND),
                Query(
                    f"topk({TOP}, {per_cache('sum', rate('memcached_proxy_backend_marked_bad_total'))} > 0)",
                    f"{LEGEND}, marked/s",
                ),
            ],
            thresholds=PROBLEMS,
        ),
        Graph(
            "Connections of proxies",
            "Open connections of clients, of the MemcachedProxies with most of them. Each proxy accepts "
            "`spec.maxConnections`. For more clients, add proxies.",
            6,
            queries=top(per_cache("sum", f"memcached_current_connections{{{SELECTED}}} {IS_PROXY}")),
        ),
    ],
)
DASHBOARD: Final = Dashboard(
    "memcached-fleet",
    "Memcached: all caches",
    "All caches with monitoring, of memcached-operator.",
    FLEET,
    [Variable("namespace", "Namespace", "memcached_up", "namespace", several=True)],
    [HEALTH, SATURATION, EFFECTIVENESS, TRAFFIC, PROXIES, DETAILS],
)
