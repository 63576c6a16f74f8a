"""The eight user actions, and the writes that each of them causes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memcached_operator.appservice.controller import APPSERVICES
from memcached_operator.kube.resource import Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.memcachedproxy.controller import MEMCACHEDPROXIES

IMAGE, OTHER_IMAGE = "example.com/app:1", "example.com/app:2"
CREATE_WRITES = ("create deployments", "create services", "patch {}/status", "patch {}/status")
CHANGE_WRITES = ("migrate deployments", "apply deployments", "patch {}/status", "patch {}/status")
SCALE_WRITES = ("patch deployments", "patch {}/status", "patch {}/status")


@dataclass(frozen=True)
class Beside:
    """An object that a workload's own one names. It is created first.

    `then`: what a user changes its spec to, instead of a change of the workload's own object; None: it stays.
    """

    resource: Resource
    name: str
    first: Mapping[str, Any]
    then: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Workload:
    """A change from one spec to another. `first` None: the object is created; `then` None: it is deleted.

    `before`: an earlier spec. `writes`: what the operator writes after the last change, in order. `beside`: an object
    that this one names.
    """

    name: str
    resource: Resource
    first: Mapping[str, Any] | None
    then: Mapping[str, Any] | None
    writes: tuple[str, ...]
    before: Mapping[str, Any] | None = field(default=None)
    beside: Beside | None = None

    def numbered_writes(self) -> list[tuple[str, int]]:
        """Each write, and the number of equal ones before it."""
        named = [write.format(self.resource.plural) for write in self.writes]
        return [(write, named[:number].count(write)) for number, write in enumerate(named)]


def cache(**spec: Any) -> Mapping[str, Any]:
    """The spec of an object with an image, as admission stores it."""
    return {"image": IMAGE, **spec}


PORTS = {"ports": [{"port": 80, "name": "http"}]}

WORKLOADS = (
    Workload("create", MEMCACHEDS, None, cache(size=2), CREATE_WRITES),
    Workload("scale-up", MEMCACHEDS, cache(size=1), cache(size=3), SCALE_WRITES),
    Workload("scale-down", MEMCACHEDS, cache(size=3), cache(size=1), SCALE_WRITES),
    Workload(
        "memory",
        MEMCACHEDS,
        cache(size=2, cache={"memory": "64Mi"}),
        cache(size=2, cache={"memory": "128Mi"}),
        CHANGE_WRITES,
    ),
    Workload("image", MEMCACHEDS, cache(size=2), cache(size=2, image=OTHER_IMAGE), CHANGE_WRITES),
    Workload(
        "ports-to-none",
        APPSERVICES,
        cache(size=2, **PORTS),
        cache(size=2),
        ("migrate deployments", "apply deployments", "delete services", "patch {}/status", "patch {}/status"),
    ),
    Workload(
        "ports-back",
        APPSERVICES,
        cache(size=2),
        cache(size=2, **PORTS),
        ("apply deployments", "create services", "patch {}/status", "patch {}/status"),
        before=cache(size=2, **PORTS),
    ),
    Workload("delete", MEMCACHEDS, cache(size=2), None, ()),
)

PORT = Workload(
    "port",
    MEMCACHEDS,
    cache(size=2),
    cache(size=2, containerPort=11212),
    ("migrate deployments", "apply deployments", "migrate services", "apply services", *CREATE_WRITES[2:]),
)
"""For the write that the eight workloads do not cause."""

ANYWHERE = {"ipBlock": {"cidr": "0.0.0.0/0"}}
GUARDS: Object = {"podDisruptionBudget": {}, "networkPolicy": {}}
"""The fields with which a Memcached has all children that need no agent."""
MONITORED: Object = {**GUARDS, "monitoring": {"podMonitor": {}, "rules": {}}}
"""The same with a PodMonitor and a PrometheusRule."""
OTHER_GUARDS: Object = {
    "podDisruptionBudget": {"maxUnavailable": 2},
    "networkPolicy": {"from": [{"podSelector": {}}, ANYWHERE]},
}

SLOTS: Object = {"identity": "Stable", "service": {"perPod": True}}
"""The fields with which a Memcached has slots, each with a Service."""

GUARDS_ON = Workload(
    "guards-on",
    MEMCACHEDS,
    cache(size=2),
    cache(size=2, **GUARDS),
    ("create poddisruptionbudgets", "create networkpolicies", "patch {}/status"),
)
GUARDS_CHANGED = Workload(
    "guards-changed",
    MEMCACHEDS,
    cache(size=2, **GUARDS),
    cache(size=2, **OTHER_GUARDS),
    (
        "migrate poddisruptionbudgets",
        "apply poddisruptionbudgets",
        "migrate networkpolicies",
        "apply networkpolicies",
        "patch {}/status",
    ),
)
GUARDS_OFF = Workload(
    "guards-off",
    MEMCACHEDS,
    cache(size=2, **GUARDS),
    cache(size=2),
    ("delete poddisruptionbudgets", "delete networkpolicies", "patch {}/status"),
)
GUARDS_SCALED = Workload("guards-scaled", MEMCACHEDS, cache(size=2, **GUARDS), cache(size=3, **GUARDS), SCALE_WRITES)
"""For the children that the eight workloads do not have."""

SLOT_WORKLOADS = (
    Workload(
        "stable-create",
        MEMCACHEDS,
        None,
        cache(size=2, **SLOTS),
        ("create statefulsets", "create services", "create configmaps", "patch {}/status", "patch {}/status"),
    ),
    Workload(
        "stable-image",
        MEMCACHEDS,
        cache(size=2, **SLOTS),
        cache(size=2, **SLOTS, image=OTHER_IMAGE),
        ("migrate statefulsets", "apply statefulsets", "patch {}/status", "patch {}/status"),
    ),
    Workload(
        "stable-scale-down",
        MEMCACHEDS,
        cache(size=3, **SLOTS),
        cache(size=1, **SLOTS),
        ("patch statefulsets", "patch {}/status"),
    ),
)
"""The same actions for a Memcached with slots."""

SERVED = "slots"
"""The name of the Memcached that a MemcachedProxy names."""
PROXY: Object = {"memcachedRef": {"name": SERVED}}
"""The field with which a MemcachedProxy names it."""


def slots(size: int, then: int | None = None) -> Beside:
    """A Memcached with slots for a MemcachedProxy. `then`: its later size."""
    after = None if then is None else cache(size=then, **SLOTS)
    return Beside(MEMCACHEDS, SERVED, cache(size=size, **SLOTS), after)


FRONT = cache(size=2, **PROXY)
PROXY_GROW = Workload(
    "proxy-grow",
    MEMCACHEDPROXIES,
    FRONT,
    FRONT,
    ("patch {}/status", "migrate deployments", "apply deployments"),
    beside=slots(3, 4),
)
PROXY_SHRINK = Workload(
    "proxy-shrink",
    MEMCACHEDPROXIES,
    FRONT,
    FRONT,
    ("migrate deployments", "apply deployments", "patch {}/status", "patch statefulsets"),
    beside=slots(4, 3),
)
PROXY_WORKLOADS = (PROXY_GROW, PROXY_SHRINK)
"""A MemcachedProxy in front of a Memcached whose size changes."""

BY_NAME = {workload.name: workload for workload in (*WORKLOADS, *SLOT_WORKLOADS, *PROXY_WORKLOADS)}


def new_object(resource: Resource, namespace: str, name: str, spec: Mapping[str, Any]) -> Object:
    """An object of one of our kinds."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": dict(spec),
    }


def merge_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> Mapping[str, Any]:
    """The merge patch from one spec to another."""
    return {**dict.fromkeys(old.keys() - new.keys()), **new}
