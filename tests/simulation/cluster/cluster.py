"""Has each controller act a moment after the objects that concern it have changed."""

import asyncio
import random
from collections.abc import Callable
from functools import partial
from typing import Final

from memcached_operator.kube.resource import (
    DEPLOYMENTS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    STATEFULSETS,
    Key,
    Object,
    Resource,
    controller_of,
)
from simulation.api.server import ApiServer
from simulation.cluster import budgets, deployments, garbage, nodes, statefulsets
from simulation.cluster.access import REPLICA_SETS, Access, references
from simulation.cluster.kubelets import Kubelets
from support.nodes import Nodes

DELAY: Final = 0.003
"""Seconds until a controller acts: less than until the operator does."""
COLLECTION: Final = 0.1
"""Seconds until the garbage collector acts."""
NAMESPACES: Final = Resource("", "v1", "Namespace", "namespaces")
CONTROLLERS: Final[dict[Resource, Callable[[Access, Key], float | None]]] = {
    DEPLOYMENTS: deployments.sync,
    REPLICA_SETS: deployments.sync_replica_set,
    STATEFULSETS: statefulsets.sync,
    PODS: nodes.sync,
    POD_DISRUPTION_BUDGETS: budgets.sync,
    NAMESPACES: garbage.sync_namespace,
}
"""What acts upon a change of an object. It returns the seconds until it acts again, or None."""
BY_KIND: Final = {resource.kind: resource for resource in CONTROLLERS}


class Cluster:
    """Acts upon every change of an API server's objects. It must be made within the event loop."""

    def __init__(self, server: ApiServer, chance: random.Random) -> None:
        self.access = Access(server, chance)
        self._controllers = dict(CONTROLLERS)
        self._due: dict[tuple[str, Key], asyncio.TimerHandle] = {}
        self._owners: dict[Key, set[str]] = {}
        server.subscribe(self._changed)

    def run_containers(self, settings: Nodes | None = None) -> Kubelets:
        """Run the containers of new pods from now on. `settings`: by default, pods start and stop as in a cluster."""
        found = Kubelets(settings or Nodes(reaction=3.0, stop=6.0), self._wake_pods)
        self._controllers[PODS] = found.sync
        return found

    def _wake_pods(self) -> None:
        for key in self.access.server.of(PODS):
            self._wake(key)

    def _changed(self, change: str, obj: Object) -> None:
        key = self.access.key_of(obj)
        if change == "DELETED":
            self._later("owned", key, lambda: garbage.after_deletion(self.access, obj), COLLECTION)
        elif obj["metadata"].get("deletionTimestamp"):
            self._later("deleted", key, lambda: garbage.while_deleting(self.access, key), COLLECTION)
        elif references(obj):
            self._later("dependent", key, lambda: garbage.without_owner(self.access, key), COLLECTION)
        for each in self._left(key, obj):
            self._later(f"left {each}", key, partial(garbage.without_dependent, self.access, each), COLLECTION)
        for each in self._concerned(key, obj):
            self._wake(each)

    def _left(self, key: Key, obj: Object) -> list[str]:
        """The uids of the owners that an object has no more. blockOwnerDeletion of the others never changes."""
        owners = garbage.owners_of(obj)
        left = self._owners.get(key, owners) - owners
        self._owners[key] = owners
        return sorted(left)

    def _concerned(self, key: Key, obj: Object) -> list[Key]:
        """The objects whose controllers act: itself, its controller, and for a pod the budgets of the namespace."""
        found = [key] if key.resource in CONTROLLERS else []
        owner = controller_of(obj)
        if owner is not None and owner["kind"] in BY_KIND:
            found.append(Key(BY_KIND[owner["kind"]], key.namespace, owner["name"]))
        if key.resource == PODS:
            found += self.access.keys(POD_DISRUPTION_BUDGETS, key.namespace)
        if key.resource != NAMESPACES and obj["metadata"].get("deletionTimestamp"):
            found.append(Key(NAMESPACES, "", key.namespace))
        return found

    def _wake(self, key: Key, seconds: float = DELAY) -> None:
        def act() -> None:
            again = self._controllers[key.resource](self.access, key)
            if again is not None:
                self._wake(key, again)

        self._later("sync", key, act, seconds)

    def _later(self, what: str, key: Key, act: Callable[[], None], seconds: float = DELAY) -> None:
        """Act after a moment; once, if more changes happen until then."""
        loop = asyncio.get_running_loop()
        known = self._due.get((what, key))
        if known is not None and known.when() <= loop.time() + seconds:
            return
        if known is not None:
            known.cancel()

        def due() -> None:
            del self._due[what, key]
            act()

        self._due[what, key] = loop.call_later(seconds, due)
