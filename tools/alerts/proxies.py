"""The alerts of MemcachedProxies.

The controller has metrics of each of them. The agents of pods with monitoring report the servers that a proxy cannot
reach: whether a server is ready does not say whether a proxy reaches it, for example because of a NetworkPolicy.

Each alert has the labels `namespace` and `proxy`, or `cache` for a change of size that waits. As those of a
cache, the samples of agents are those of a container of any image: expressions aggregate by fixed labels.
"""

from typing import Final

from alerts.operators import OURS, OWN_RULES
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.alerts.caches import CACHE, grows
from memcached_operator.memcached.alerts.rules import Alert, Severity, alert_rule, unless
from memcached_operator.memcached.scaling.report import STUCK_SECONDS

GROUP: Final = "memcached-proxies"
PROXY: Final = ("namespace", "proxy")
_BY: Final = f"by ({', '.join(PROXY)})"
_NAME: Final = "{{ $labels.namespace }}/{{ $labels.proxy }}"


def _of_proxy(metric: str) -> str:
    """A gauge of the controller, with the namespace of the object instead of that of the controller."""
    return f'label_replace({metric}{{{OURS}}}, "namespace", "$1", "proxy_namespace", "(.+)")'


def _of_agents(vector: str) -> str:
    """A vector of agents, whose label `cache` is the name of the MemcachedProxy."""
    return f'label_replace({vector}, "proxy", "$1", "cache", "(.+)")'


_UNREACHABLE: Final = _of_agents('memcached_agent_proxy_servers_unreachable{cache!=""}')
_REFUSED: Final = _of_agents(grows('memcached_agent_proxy_scaling_refused_total{cache!=""}'))
_WAITS: Final = (
    f"label_replace(label_replace(memcached_operator_scaling_waiting_since_timestamp_seconds{{{OURS}}},"
    ' "namespace", "$1", "memcached_namespace", "(.+)"), "cache", "$1", "memcached", "(.+)")'
)

ALERTS: Final = (
    Alert(
        "MemcachedProxyDown",
        Severity.CRITICAL,
        "5m",
        f"max {_BY} ({_of_proxy('memcached_operator_proxy_ready_pods')}) == 0",
        "No proxy of a MemcachedProxy is ready",
        f"No proxy of {_NAME} is ready. Clients cannot connect to its address.",
    ),
    Alert(
        "MemcachedProxyNotUpToDate",
        Severity.WARNING,
        "30m",
        f"max {_BY} ({_of_proxy('memcached_operator_proxy_up_to_date')}) == 0"
        f" and max {_BY} ({_of_proxy('memcached_operator_proxy_ready_pods')}) > 0",
        "Proxies are missing, or do not use the slots of their cache",
        f"Pods of {_NAME} are not ready, or do not have its spec or the slots of its Memcached, or it is Degraded.",
    ),
    Alert(
        "MemcachedProxyServersUnreachable",
        Severity.WARNING,
        "5m",
        f"max {_BY} ({_UNREACHABLE}) > 0",
        "A proxy cannot reach servers of its cache",
        f"Servers that a proxy of {_NAME} cannot reach: {{{{ $value }}}}. Requests for their keys fail.",
    ),
    Alert(
        "MemcachedMoveStuck",
        Severity.WARNING,
        "1m",
        f"time() - max by ({', '.join(CACHE)}) ({_WAITS}) > {STUCK_SECONDS:.0f}",
        "A change of size waits for slots or proxies",
        "The change of size of {{ $labels.namespace }}/{{ $labels.cache }} has waited in a phase for"
        " {{ $value | humanizeDuration }}. Its status says what it waits for.",
    ),
    Alert(
        "MemcachedProxyWritesRefused",
        Severity.WARNING,
        "8m",
        f"max {_BY} ({_REFUSED}) > 0",
        "Writes fail during a change of size",
        f"Proxies of {_NAME} answer writes of keys that move with an error, because a slot does not confirm them.",
    ),
)


def rules() -> list[Object]:
    """The rules of the PrometheusRule of the operator, whose group has the marker."""
    return [alert_rule(alert, alert.expr) for alert in ALERTS]


def plain_rules() -> list[Object]:
    """The same rules for a plain file, silent where the PrometheusRule is in effect."""
    return [alert_rule(alert, unless(alert.expr, f"{OWN_RULES}{{{OURS}}}")) for alert in ALERTS]
