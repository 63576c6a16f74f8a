"""The alerts of MemcachedProxies.

The controller has metrics of each of them. The agents of pods with monitoring report the servers that a proxy cannot
reach: whether a server is ready does not say whether a proxy reaches it, for example because of a NetworkPolicy.

Each alert has the labels `namespace` and `proxy`. As those of a cache, the samples of agents are those of a container
of any image: expressions aggregate by fixed labels.
"""

from typing import Final

from alerts.operators import OURS, OWN_RULES
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.alerts.rules import Alert, Severity, alert_rule, unless

GROUP: Final = "memcached-proxies"
PROXY: Final = ("namespace", "proxy")
_BY: Final = f"by ({', '.join(PROXY)})"
_NAME: Final = "{{ $labels.namespace }}/{{ $labels.proxy }}"


def _of_proxy(metric: str) -> str:
    """A gauge of the controller, with the namespace of the object instead of that of the controller."""
    return f'label_replace({metric}{{{OURS}}}, "namespace", "$1", "proxy_namespace", "(.+)")'


_UNREACHABLE: Final = (
    'label_replace(memcached_agent_proxy_servers_unreachable{cache!=""}, "proxy", "$1", "cache", "(.+)")'
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
)


def rules() -> list[Object]:
    """The rules of the PrometheusRule of the operator, whose group has the marker."""
    return [alert_rule(alert, alert.expr) for alert in ALERTS]


def plain_rules() -> list[Object]:
    """The same rules for a plain file, silent where the PrometheusRule is in effect."""
    return [alert_rule(alert, unless(alert.expr, f"{OWN_RULES}{{{OURS}}}")) for alert in ALERTS]
