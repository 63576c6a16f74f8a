"""Where the value of a field must occur in a child: by default, at a path that ends with the field's own path."""

from collections.abc import Callable, Iterator
from typing import Any, cast

from memcached_api import quantity
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.alerts.caches import GROUP
from support.fields.leaves import Leaf, Path

VERBOSITY = {0: "memcached", 1: "-v", 2: "-vv"}
QUANTITIES = ("cpu", "memory", "divisor")
"""Last names of the fields whose values are compared as quantities."""
COMMAND: Path = ("command", "[]")
WARM_UP: Path = ("template", "metadata", "annotations", "memcached-operator.example.com/warm-up")
HIDDEN = object()
"""Instead of a value: no child shows it. Only the change from and to the field's other value is visible."""

RENAMED: dict[Path, Path] = {
    ("size",): ("replicas",),
    ("envs",): ("env",),
    **{("cache", name): COMMAND for name in ("memory", "maxItemSize", "maxConnections", "threads")},
    **{("cache", name): COMMAND for name in ("evictions", "verbosity")},
    ("cache", "extraArgs", "[]"): COMMAND,
    ("cache", "warmRestart"): ("containers", "[]", "name"),
    ("cache", "extstore", "size"): ("requests", "storage"),
    ("cache", "extstore", "volume"): ("emptyDir", "sizeLimit"),
    ("cache", "extstore", "storageClassName"): ("volumeClaimTemplate", "spec", "storageClassName"),
    **{("cache", "extstore", name): COMMAND for name in ("itemAge", "threads")},
    ("podTemplate",): ("template",),
    ("podDisruptionBudget", "enabled"): ("PodDisruptionBudget", "unhealthyPodEvictionPolicy"),
    ("podDisruptionBudget",): ("PodDisruptionBudget",),
    **{("rollout", name): ("rollingUpdate", name) for name in ("maxUnavailable", "maxSurge")},
    **{("rollout", "warmUp", name): WARM_UP for name in ("hitRatio", "timeout", "minRequests")},
    ("rollout", "restartedAt"): ("template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"),
    ("rollout",): ("Deployment",),
    ("networkPolicy", "metricsFrom"): ("NetworkPolicy", "ingress", "[]", "from"),
    ("networkPolicy",): ("NetworkPolicy", "ingress", "[]"),
    ("monitoring", "enabled"): ("ports", "[]", "containerPort"),
    ("monitoring", "podMonitor", "enabled"): ("PodMonitor", "podMetricsEndpoints", "[]", "port"),
    ("monitoring", "podMonitor", "interval"): ("PodMonitor", "podMetricsEndpoints", "[]", "interval"),
    ("monitoring", "podMonitor"): ("PodMonitor", "metadata"),
    ("monitoring", "rules", "enabled"): ("PrometheusRule", "groups", "[]", "name"),
    ("monitoring", "rules"): ("PrometheusRule", "metadata"),
    ("monitoring", "tls", "enabled"): COMMAND,
    ("monitoring", "insight", "enabled"): COMMAND,
    ("tls", "port"): ("Service", "ports", "[]", "port"),
    ("tls", "plaintext"): ("Service", "ports", "[]", "port"),
    **{("tls", name): COMMAND for name in ("clientAuth", "minVersion")},
    **{("tls", name): ("sources", "[]", "secret", "name") for name in ("secretName", "clientCASecretName")},
    ("auth",): ("secret",),
    ("agent",): ("containers", "[]"),
    ("service", "perPod"): ("Service-0", "publishNotReadyAddresses"),
    ("service",): ("Service", "metadata"),
    ("inheritedMetadata",): ("Deployment", "metadata"),
}
"""The beginnings of the paths of fields that have another name in a child. The first that fits is used."""


def _warm_up(hit_ratio: int = 80, timeout: int = 900, requests: int = 100) -> str:
    return f"hitRatio={hit_ratio},timeout={timeout},minRequests={requests}"


def _tls_options(mode: str = "", version: int = 2) -> str:
    """The item of the command with the options for TLS."""
    files = "ssl_chain_cert=/etc/memcached/tls/tls.crt,ssl_key=/etc/memcached/tls/tls.key"
    clients = f",ssl_ca_cert=/etc/memcached/tls/ca.crt,ssl_verify_mode={mode},ssl_session_cache" if mode else ""
    return f"{files}{clients},ssl_min_version={version}"


def _extstore(threads: int = 8, age: str = "") -> str:
    """The item of the command for a disk of 2Gi."""
    path = "ext_path=/extstore/items:1792m,ext_wbuf_size=4"
    return f"{path},ext_threads={threads},ext_max_sleep=10000,slab_automove_freeratio=0.1{age}"


DERIVED: dict[str, Callable[[Any], Any]] = {
    "memcacheds/cache.memory": lambda value: str(int(quantity.parse_quantity(value)) // 2**20),  # memcached -m, in MiB
    "memcacheds/cache.maxItemSize": lambda value: str(int(quantity.parse_quantity(value))),
    "memcacheds/cache.maxConnections": str,
    "memcacheds/cache.threads": str,
    # Without an option, only the program's name shows that there is a command.
    "memcacheds/cache.evictions": lambda value: "memcached" if value else "-M",
    "memcacheds/cache.verbosity": lambda value: VERBOSITY.get(value, ""),
    "memcacheds/cache.extraArgs[]": lambda value: str(value).split()[-1],
    "memcacheds/cache.warmRestart": lambda value: "agent" if value else HIDDEN,
    "memcacheds/scaling.warm.duration": lambda _: HIDDEN,
    "memcacheds/cache.extstore.volume": lambda value: "2Gi" if value == "EmptyDir" else HIDDEN,
    "memcacheds/cache.extstore.itemAge": lambda value: _extstore(age=f",ext_item_age={0 if value == '0s' else 86400}"),
    "memcacheds/cache.extstore.threads": lambda value: _extstore(threads=value),
    "memcacheds/podDisruptionBudget.enabled": lambda value: "AlwaysAllow" if value else HIDDEN,
    "memcacheds/monitoring.enabled": lambda value: 9150 if value else HIDDEN,
    "memcacheds/monitoring.podMonitor.enabled": lambda value: "metrics" if value else HIDDEN,
    "memcacheds/monitoring.rules.enabled": lambda value: GROUP if value else HIDDEN,
    "memcacheds/monitoring.tls.enabled": lambda value: "--metrics-tls" if value else HIDDEN,
    "memcacheds/monitoring.insight.enabled": lambda value: "--insight" if value else HIDDEN,
    "memcacheds/rollout.warmUp.hitRatio": lambda value: _warm_up(hit_ratio=value),
    "memcacheds/rollout.warmUp.timeout": lambda value: _warm_up(timeout={"5m": 300, "1h30m": 5400}[value]),
    "memcacheds/rollout.warmUp.minRequests": lambda value: _warm_up(requests=value),
    "memcacheds/tls.clientAuth": lambda value: _tls_options({"Request": "1", "Require": "2"}.get(value, "")),
    "memcacheds/tls.minVersion": lambda value: _tls_options(version={"1.2": 2, "1.3": 3}[value]),
    "memcacheds/tls.plaintext": lambda value: 11211 if value == "Enabled" else HIDDEN,
    "memcacheds/identity": lambda _: HIDDEN,  # it cannot be changed
    "memcacheds/service.perPod": lambda value: value or HIDDEN,
    "memcacheds/rollout.paused": lambda value: value or HIDDEN,  # the API server does not store false
}
"""How a child shows the value of a field, by its name, if not as it is."""


def missing(leaf: Leaf, spec: Object, children: Object) -> str:
    """The values of the field in a spec that no child shows, and what there is instead; empty if there are none."""
    place = place_of(leaf.path)
    wanted = [DERIVED.get(leaf.name, _unchanged)(value) for value in at(spec, leaf.path)]
    found = [value for path, value in parts(children) if path[-len(place) :] == place]
    absent = [value for value in wanted if value is not HIDDEN and not any(_equal(leaf, value, one) for one in found)]
    return f"{'.'.join(place)}: got {found}, want {absent}" if absent else ""


def place_of(path: Path) -> Path:
    """The end of a path in a child."""
    for old, new in RENAMED.items():
        if path[: len(old)] == old:
            return (*new, *path[len(old) :])
    return path


def at(value: Any, path: Path) -> list[Any]:
    """The values at a path, one for each item of its lists."""
    if not path:
        return [value]
    if path[0] == "[]":
        return [found for item in value for found in at(item, path[1:])]
    return at(value[path[0]], path[1:]) if path[0] in value else []


def parts(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value within a value, with its path: the maps and lists, and what they contain."""
    yield path, value
    if isinstance(value, dict):
        for name, inner in cast("Object", value).items():
            yield from parts(inner, (*path, name))
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from parts(item, (*path, "[]"))


def _equal(leaf: Leaf, one: Any, other: Any) -> bool:
    """Whether a child has a value. A map may have further fields there, such as the selector of a constraint."""
    if leaf.path[-1] in QUANTITIES and leaf.name not in DERIVED:
        return one == other or quantity.parse_quantity(one) == quantity.parse_quantity(other)
    if isinstance(one, dict) and isinstance(other, dict):
        given, found = cast("Object", one), cast("Object", other)
        return {name: found.get(name) for name in given} == given
    return one == other


def _unchanged(value: Any) -> Any:
    return value
