"""The eight things a user does, and the writes each of them takes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memcached_operator.appservice.controller import APPSERVICES
from memcached_operator.kube.resource import Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS

IMAGE, OTHER_IMAGE = "example.com/app:1", "example.com/app:2"
CREATED = ("create deployments", "create services", "patch {}/status", "patch {}/status")
CHANGED = ("migration_patch deployments", "apply deployments", "patch {}/status", "patch {}/status")


@dataclass(frozen=True)
class Workload:
    """From one spec to another. None for the first means that the object is made, for the second that it is deleted.

    `before` is an older spec still. `writes` are what the operator does about the last step, in their order.
    """

    name: str
    resource: Resource
    first: Mapping[str, Any] | None
    then: Mapping[str, Any] | None
    writes: tuple[str, ...]
    before: Mapping[str, Any] | None = field(default=None)

    def classes(self) -> list[tuple[str, int]]:
        """Each write, and how many of the same kind come before it."""
        named = [write.format(self.resource.plural) for write in self.writes]
        return [(write, named[:number].count(write)) for number, write in enumerate(named)]


def cache(**spec: Any) -> Mapping[str, Any]:
    """The spec of a Memcached with an image, as admission leaves it."""
    return {"image": IMAGE, **spec}


PORTS = {"ports": [{"port": 80, "name": "http"}]}

WORKLOADS = (
    Workload("create", MEMCACHEDS, None, cache(size=2), CREATED),
    Workload("scale-up", MEMCACHEDS, cache(size=1), cache(size=3), CHANGED),
    Workload("scale-down", MEMCACHEDS, cache(size=3), cache(size=1), CHANGED),
    Workload(
        "memory",
        MEMCACHEDS,
        cache(size=2, cache={"memory": "64Mi"}),
        cache(size=2, cache={"memory": "128Mi"}),
        CHANGED,
    ),
    Workload("image", MEMCACHEDS, cache(size=2), cache(size=2, image=OTHER_IMAGE), CHANGED),
    Workload(
        "ports-to-none",
        APPSERVICES,
        cache(size=2, **PORTS),
        cache(size=2),
        ("migration_patch deployments", "apply deployments", "delete services", "patch {}/status", "patch {}/status"),
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
    ("migration_patch deployments", "apply deployments", "migration_patch services", "apply services", *CREATED[2:]),
)
"""One more, for the one write that the eight do not need."""

BY_NAME = {workload.name: workload for workload in WORKLOADS}


def custom(resource: Resource, namespace: str, name: str, spec: Mapping[str, Any]) -> Object:
    """An object of one of our kinds."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": dict(spec),
    }


def replacing(old: Mapping[str, Any], new: Mapping[str, Any]) -> Mapping[str, Any]:
    """The merge patch from one spec to another."""
    return {**dict.fromkeys(old.keys() - new.keys()), **new}
