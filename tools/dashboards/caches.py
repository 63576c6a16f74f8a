"""Expressions that the dashboards of all caches and of one cache share, and their descriptions."""

from typing import Final

from dashboards.grafana import BAD, CERTIFICATE, GOOD, NOTES, PROBLEMS, WARNING, Object, Unit, stat
from dashboards.selectors import AGENT, SELECTED, false, rate
from memcached_operator.memcached.alerts import caches

GETS: Final = rate("memcached_commands_total", caches.GETS)
LOST: Final = caches.LOST
FOUND: Final = f'{caches.GETS},status="hit"'
"""Conditions of the gets that memcached counts as hits: it found the key in memory."""
HITS: Final = f"{rate('memcached_commands_total', FOUND)} or -{rate(LOST)}"
"""Two vectors without a common series: the second one has the gets that the first one should not count."""
EVICTIONS: Final = rate("memcached_items_evicted_total")
REFUSED: Final = rate("memcached_connections_rejected_total")
ITEMS: Final = f"(memcached_agent_items_bytes{{{SELECTED}}} or memcached_current_bytes{{{SELECTED}}})"
"""Bytes of the items in memory. The second metric, of earlier agents, includes those that extstore has on a disk."""
MEMORY: Final = f"{ITEMS} / memcached_limit_bytes{{{SELECTED}}}"
DISK: Final = (
    f"memcached_extstore_pages_used{{{SELECTED}}}"
    f" / (memcached_extstore_pages_used{{{SELECTED}}} + memcached_extstore_pages_free{{{SELECTED}}})"
)
"""The used share of the file of extstore. Only servers with extstore have these metrics."""
CONNECTIONS: Final = f"memcached_current_connections{{{SELECTED}}} / memcached_agent_usable_connections{{{SELECTED}}}"
EVICTED_AGE: Final = (
    f"memcached_slab_items_evicted_time_seconds{{{SELECTED}}} and ({rate('memcached_slab_items_evicted_total')} > 0)"
)
"""Seconds from the last use of an item to its eviction, for each slab class that evicts now."""
STATES: Final = "|".join(
    f"memcached_agent_{name}" for name in ("last_reload_successful", "memory_target_reached", "arguments_in_effect")
)
STATE: Final = f'{{__name__=~"{STATES}",{SELECTED}}}'
"""The metrics of agents that are 1 if all is well, and 0 if not."""

AGES: Final = ((None, BAD), (60, WARNING), (3600, GOOD))
"""Of the age of evicted items, in seconds: a cache that cannot keep items for a minute is too small for its clients."""
EVICTED_AGE_TEXT: Final = (
    "Seconds from the last use of an item to its eviction, in the slab class where this is shortest. Only while items "
    "are evicted. Evictions of items that were not used for hours are normal. Items that were used a minute ago are "
    "missed by clients: give the cache more memory."
)
LIMIT_TEXT: Final = (
    "memcached needs 5 connections for each thread, and 9 others, itself: it refuses clients a little below 100 %. "
    "Raise `spec.cache.maxConnections`, or use fewer connections."
)
REFUSED_TEXT: Final = (
    "New connections that memcached refuses at its connection limit: clients see errors. Raise "
    "`spec.cache.maxConnections`, or use fewer connections."
)


def health() -> list[Object]:
    """The panels that answer whether users are served, without the first one."""
    return [
        stat(
            "Servers down",
            "memcached processes that did not reply to their agent (`memcached_up` is 0). Clients get nothing from "
            "them. The log of the agent names the reason.",
            false("memcached_up"),
            thresholds=PROBLEMS,
        ),
        stat(
            "Agents down",
            "Agents that Prometheus cannot scrape. memcached may work, but nothing is known about it. Look at the "
            "pod, its NetworkPolicy, and the targets of Prometheus.",
            f'sum(up{{container="{AGENT}",{SELECTED}}} == bool 0)',
            thresholds=PROBLEMS,
        ),
        stat(
            "Cold servers",
            "Servers that are still warming up after a restart without their items. Rollouts and drains wait for "
            "them. Only with `identity: Stable`.",
            false("memcached_agent_warm"),
            thresholds=NOTES,
            empty="none",
        ),
        stat(
            "Problems of agents",
            "Certificates, users, memory or arguments that are not in effect. memcached keeps the last good ones. The "
            "path `/healthz` of the agent, and its log, name the reason and the remedy.",
            f"count({STATE}) - sum({STATE})",
            thresholds=PROBLEMS,
            empty="none",
        ),
        stat(
            "Certificate expires in",
            "Time until the first certificate that memcached serves expires. Clients with TLS cannot connect "
            "afterwards.",
            f"min(memcached_agent_certificate_expiration_timestamp_seconds{{{SELECTED}}}) - time()",
            Unit.SECONDS,
            thresholds=CERTIFICATE,
            empty="no TLS",
        ),
    ]
