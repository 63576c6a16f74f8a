"""What the controllers of a cluster read and write."""

import hashlib
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from memcached_operator.engine.reporting.conditions import timestamp
from memcached_operator.kube.resource import Key, Object, Resource, controller_of, key_of, nested_list
from simulation.api.kinds import KINDS
from simulation.api.server import ApiServer, Request
from simulation.clock import now

REPLICA_SETS: Final = Resource("apps", "v1", "ReplicaSet", "replicasets")
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""The letters of generated names, as in k8s.io/apimachinery/pkg/util/rand."""
_RESOURCES: Final = {(resource.api_version, resource.kind): resource for resource in KINDS}


class Access:
    """The objects of an API server, for its controllers. `admit`: changes the new pods of StatefulSets."""

    def __init__(self, server: ApiServer, chance: random.Random) -> None:
        self.server, self.chance = server, chance
        self.admit: Callable[[Object], Object] = lambda pod: pod

    def get(self, key: Key) -> Object | None:
        """An object; None if it does not exist."""
        return self.server.objects.get(key)

    def put(self, obj: Object, subresource: str = "") -> Object:
        """Store an object or its status."""
        return self.server.put(obj, subresource)

    def put_status(self, obj: Object, status: Object) -> None:
        """Store another status, if it is another one."""
        if obj.get("status") != status:
            self.server.put({**obj, "status": status}, "status")

    def delete(self, key: Key, propagation: str = "Background") -> None:
        """Delete an object as a client does."""
        body = json.dumps({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}).encode()
        self.server.handle(Request("DELETE", key.resource.path(key.namespace or None, key.name), body=body))

    def remove(self, key: Key) -> None:
        """Remove an object finally."""
        self.server.remove(key)

    def keys(self, resource: Resource, namespace: str) -> list[Key]:
        """The keys of the objects of a resource in a namespace."""
        return [key for key in self.server.of(resource) if key.namespace == namespace]

    def owned(self, resource: Resource, owner: Object) -> Iterator[Object]:
        """The objects whose controller this is."""
        uid, namespace = owner["metadata"]["uid"], owner["metadata"]["namespace"]
        for key in self.keys(resource, namespace):
            obj = self.server.objects[key]
            if any(each.get("controller") and each["uid"] == uid for each in references(obj)):
                yield obj

    def adopt(self, resource: Resource, owner: Object) -> None:
        """Make an object the controller of those without one that its selector matches, as after `--cascade=orphan`."""
        wanted: dict[str, str] = owner["spec"]["selector"]["matchLabels"]
        for key in self.keys(resource, owner["metadata"]["namespace"]):
            obj = self.server.objects[key]
            if controller_of(obj) is None and not is_deleted(obj) and wanted.items() <= labels_of(obj).items():
                meta = {**obj["metadata"], "ownerReferences": [*references(obj), reference_to(owner)]}
                self.server.put({**obj, "metadata": meta})

    def key_of(self, obj: Object) -> Key:
        """The key of a stored object."""
        return key_of(_RESOURCES[obj["apiVersion"], obj["kind"]], obj)

    def letters(self, number: int) -> str:
        """The end of a generated name."""
        return "".join(self.chance.choice(_LETTERS) for _ in range(number))

    def time(self) -> str:
        """The time of the wall clock, as in an object."""
        return timestamp(now())


def labels_of(obj: Object) -> dict[str, str]:
    """The labels of an object."""
    return obj["metadata"].get("labels") or {}


def references(obj: Object) -> list[Object]:
    """The owner references of an object."""
    return obj["metadata"].get("ownerReferences") or []


def reference_to(owner: Object) -> Object:
    """The owner reference of an object that `owner` controls."""
    meta = owner["metadata"]
    named = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"]}
    return {**named, "controller": True, "blockOwnerDeletion": True}


def digest(value: Any) -> str:
    """The hash of a pod template, ten letters."""
    found = hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest()
    return "".join(_LETTERS[each % len(_LETTERS)] for each in found[:10])


def is_ready(pod: Object) -> bool:
    """Whether a pod is ready and not being deleted."""
    conditions = nested_list(pod, "status", "conditions")
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return ready and not is_deleted(pod)


def is_deleted(obj: Object) -> bool:
    """Whether an object is being deleted."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def amount(value: int | str | None, of: int, *, up: bool) -> int:
    """A number, or a percentage of `of`, rounded up or down."""
    if isinstance(value, str) and value.endswith("%"):
        whole = int(value[:-1]) * of
        return -(-whole // 100) if up else whole // 100
    return int(value or 0)


def with_condition(
    old: Sequence[Mapping[str, Any]], kind: str, status: str, reason: str, message: str, at: str
) -> list[Mapping[str, Any]]:
    """Conditions with one that may be new. `lastTransitionTime` changes with the status."""
    empty: Mapping[str, Any] = {}
    before = next((each for each in old if each["type"] == kind), empty)
    same = before.get("status") == status
    changed = (status, reason, message) != tuple(before.get(name) for name in ("status", "reason", "message"))
    new = {
        "type": kind,
        "status": status,
        "lastUpdateTime": at if changed else before["lastUpdateTime"],
        "lastTransitionTime": before["lastTransitionTime"] if same else at,
        "reason": reason,
        "message": message,
    }
    return [new if each["type"] == kind else each for each in old] + ([] if before else [new])
