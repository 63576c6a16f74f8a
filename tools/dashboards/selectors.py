"""Selectors of series by the labels that a PodMonitor or a ServiceMonitor adds: namespace, pod and container.

`SELECTED` in an expression stands for the selector of its dashboard.
"""

from typing import Final

SELECTED: Final = "SELECTED"
AGENT: Final = "agent"
"""The container of the agents: operator/memcached_operator/parts/agent.py."""

_HASH: Final = "[4-9bcdf]{1,10}"
"""The hash of a ReplicaSet: a decimal number in the alphabet of Kubernetes' package `rand`."""
_LETTER: Final = "[b-df-hj-np-tv-xz24-9]"
"""A letter of that alphabet, which has no vowels and no digits like them."""
SUFFIX: Final = f"(?:{_HASH}-{_LETTER}{{5}}|[0-9]+|{_LETTER}{{10,15}})"
"""The rest of a pod's name after that of its Memcached and a hyphen.

That of a Deployment's pod, of a slot, and of a Deployment's pod whose name Kubernetes has cut to 63 characters: it then
has the beginning of the hash and, without a hyphen, 5 random letters.
"""
CACHE: Final = f"(.+?)-{SUFFIX}"
"""The name of a pod; its group is the name of the Memcached. The shortest possible name is the right one."""

FLEET: Final = 'namespace=~"$namespace"'
"""All caches of the selected namespaces."""
ONE_CACHE: Final = f'namespace="$namespace",pod=~"$cache-{SUFFIX}",pod=~"$pod"'
"""The selected pods of a cache. The first condition on the pod includes pods that are younger than the open page."""
OPERATOR: Final = 'namespace="$namespace",pod=~".*memcached-operator-(?:controller-manager|webhook)-.+"'
"""The pods of the controller and of admission. Other operators in their namespace have metrics of the same names."""


def per_cache(aggregation: str, vector: str) -> str:
    """An aggregation of a vector by Memcached: by the labels `namespace` and, from the name of the pod, `cache`."""
    return f'{aggregation} by (namespace, cache) (label_replace({vector}, "cache", "$1", "pod", "{CACHE}"))'


def rate(metric: str, labels: str = "") -> str:
    """The increase per second of a counter, over the interval that Grafana chooses. `labels`: further conditions."""
    condition = f",{labels}" if labels else ""
    return f"rate({metric}{{{SELECTED}{condition}}}[$__rate_interval])"


def false(metric: str) -> str:
    """How many series of a metric that is 0 or 1 are 0. No value if there are none."""
    return f"sum({metric}{{{SELECTED}}} == bool 0)"


def summed(vector: str, *labels: str) -> dict[str, str]:
    """The query for the sum of a vector by labels, whose values are the names of the series."""
    return {" ".join(f"{{{{{each}}}}}" for each in labels): f"sum by ({', '.join(labels)}) ({vector})"}
