"""One row of `status` for each pod: counters of memcached and metrics of its agent."""

from dataclasses import dataclass, field
from typing import Any, Final

from kubectl_memcached.model.pods import Pod, is_stuck
from kubectl_memcached.model.statistics.metrics import AgentMetrics
from kubectl_memcached.model.statistics.replies import (
    EXTSTORE,
    GETS,
    Stats,
    hits,
    number,
    summed,
    used_disk,
    used_memory,
)

RESERVED: Final = 9
"""Connections that memcached keeps free at most, besides those in `reserved_fds` (docs/sizing.md)."""


@dataclass(frozen=True)
class Reading:
    """The replies of one pod. `problem`, `agent_problem`: the reason if there are none, otherwise empty.

    `health`: the problems that the agent reports, one sentence per line.
    """

    pod: Pod
    stats: Stats = field(default_factory=dict[str, str])
    settings: Stats = field(default_factory=dict[str, str])
    problem: str = ""
    metrics: AgentMetrics = field(default_factory=AgentMetrics)
    agent_problem: str = ""
    health: str = ""


@dataclass(frozen=True)
class Row:
    """A pod. Times are in seconds, amounts in bytes, shares from 0 to 1. None: not known.

    `hit_ratio`: the share of the gets since the start that found an item. `stuck`: whether its containers may not start
    by themselves.
    """

    pod: str
    node: str
    ready: bool
    version: str | None
    uptime: float | None
    memory_used: float | None
    memory_limit: float | None
    disk_used: float | None
    disk_limit: float | None
    hit_ratio: float | None
    evictions: float | None
    connections: float | None
    max_connections: float | None
    usable_connections: float | None
    warm: float | None
    certificate_days: int | None
    restarts: int
    stuck: bool
    problem: str
    agent_problem: str

    @property
    def memory_share(self) -> float | None:
        """The used share of the memory for items."""
        return ratio(self.memory_used, self.memory_limit)

    @property
    def disk_share(self) -> float | None:
        """The used share of the file on the disk."""
        return ratio(self.disk_used, self.disk_limit)

    @property
    def connections_share(self) -> float | None:
        """The used share of the connections that memcached leaves for clients."""
        return ratio(self.connections, self.usable_connections)


def row(reading: Reading, now: float) -> Row:
    """The row of a pod. `now`: seconds since 1970."""
    pod, stats = reading.pod, reading.stats
    limit = number(stats, "max_connections") or number(reading.settings, "maxconns")
    return Row(
        pod.name,
        pod.node,
        pod.ready,
        stats.get("version"),
        number(stats, "uptime"),
        used_memory(stats),
        number(stats, "limit_maxbytes"),
        used_disk(stats),
        number(stats, EXTSTORE),
        ratio(hits(stats), summed(stats, *GETS)),
        number(stats, "evictions"),
        number(stats, "curr_connections"),
        limit,
        usable_connections(limit, number(stats, "reserved_fds")),
        reading.metrics.warm,
        reading.metrics.certificate_days(now),
        pod.memcached.restarts,
        is_stuck(pod, now),
        reading.problem,
        reading.agent_problem,
    )


def usable_connections(limit: float | None, reserved: float | None) -> float | None:
    """The connections that may be open at once. `reserved`: for memcached's threads. None if it is not known."""
    return None if limit is None or reserved is None else max(0, limit - reserved - RESERVED)


def ratio(part: float | None, whole: float | None) -> float | None:
    """A share. None if it is not known."""
    return None if part is None or not whole else part / whole


def document(row: Row) -> dict[str, Any]:
    """A row as JSON."""
    return {
        "pod": row.pod,
        "node": row.node,
        "ready": row.ready,
        "version": row.version,
        "uptimeSeconds": row.uptime,
        "memoryUsedBytes": row.memory_used,
        "memoryLimitBytes": row.memory_limit,
        "diskUsedBytes": row.disk_used,
        "diskLimitBytes": row.disk_limit,
        "hitRatio": row.hit_ratio,
        "evictions": row.evictions,
        "connections": row.connections,
        "maxConnections": row.max_connections,
        "usableConnections": row.usable_connections,
        "warm": row.warm,
        "certificateDaysLeft": row.certificate_days,
        "restarts": row.restarts,
        "problem": row.problem,
        "agentProblem": row.agent_problem,
    }
