"""Counters and metrics of all pods of a cache."""

from collections.abc import Callable

from kubectl_memcached.cluster.caches import Cache, Secrets
from kubectl_memcached.cluster.kubectl import Kubectl
from kubectl_memcached.cluster.sessions import Session, for_each, session
from kubectl_memcached.errors import PluginError
from kubectl_memcached.model.pods import Pod
from kubectl_memcached.model.statistics.metrics import AgentMetrics, agent_metrics
from kubectl_memcached.model.statistics.replies import Stats, parse_stats
from kubectl_memcached.model.statistics.rows import Reading

HEALTHY = "ok"
"""The response of the agent's /healthz without a problem."""


def readings(kubectl: Kubectl, cache: Cache, done: Callable[[], None]) -> list[Reading]:
    """Read memcached and the agent of each pod. A failed read is a problem of its reading, never an error."""
    secrets = Secrets(kubectl)
    return for_each(cache.pods, lambda pod: read(kubectl, pod, secrets), done)


def read(kubectl: Kubectl, pod: Pod, secrets: Secrets) -> Reading:
    """Read memcached and the agent of a pod.

    memcached is first: kubectl may exit at the first port without a listener.
    """
    try:
        with session(kubectl, pod, secrets, agent=True) as opened:
            stats, settings, problem = _counters(opened)
            metrics, health, agent_problem = _agent(opened)
            return Reading(pod, stats, settings, problem, metrics, agent_problem, health)
    except PluginError as error:
        return Reading(pod, problem=str(error), agent_problem="not read")


def _counters(opened: Session) -> tuple[Stats, Stats, str]:
    try:
        with opened.memcached() as memcached:
            return memcached.statistics(), parse_stats(memcached.lines("stats settings")), ""
    except PluginError as error:
        return {}, {}, str(error)


def _agent(opened: Session) -> tuple[AgentMetrics, str, str]:
    try:
        metrics, health = opened.agent("/metrics"), opened.agent("/healthz").strip()
    except PluginError as error:
        return AgentMetrics(), "", str(error)
    return agent_metrics(metrics), "" if health == HEALTHY else health, ""
