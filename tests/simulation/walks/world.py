"""The world of a walk: a control plane, one or two operators, what users want, and all that has happened."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from faults.background import TimedOutError
from faults.election import Candidate, Election, Term
from faults.process import supervised
from faults.rules import ActiveRule, Rule
from faults.sandbox import Sandbox, Settings, create_namespace, user_of, wait_until
from faults.workloads import new_object
from memcached_operator.engine.runtime.leader_election import holder_of
from memcached_operator.kube.client import JSON_PATCH, ApiError
from memcached_operator.kube.resource import LEASES, Key, Object, nested_map
from simulation.cluster.kubelets import Kubelets
from simulation.in_place.checks import Checks
from simulation.plane import SimulatedPlane
from simulation.walks.specs import NAMESPACE, OWNERS, Spec, key_of_owner
from support.nodes import Nodes

FINALIZER: Final = "example.com/held"
USER: Final = user_of(NAMESPACE)
"""The operator's, at the API server."""
NAMES: Final = ("one", "two")
DELETION: Final = 30.0
"""Seconds until an object is deleted that nothing blocks."""


class Change(NamedTuple):
    """A change of an object. `user`: empty if a user or a controller of the cluster made it. `old`: None if it is new.

    `what`: ADDED, MODIFIED or DELETED.
    """

    at: float
    user: str
    what: str
    key: Key
    old: Object | None
    new: Object


@dataclass
class World:
    """What a step changes and a check reads.

    `wanted`: the last spec that a user chose for each object that exists. `foreign`: the uids of objects that have the
    names of children, and that are another owner's. `terminations`: the number of SIGTERMs.
    `unlisted`: the resources of which a list was empty by mistake. `running`: if containers run, their kubelets, and
    the checks of what the operator does to the pods.
    """

    plane: SimulatedPlane
    election: Election
    settings: Settings
    wanted: dict[str, Spec] = field(default_factory=dict[str, Spec])
    history: list[Change] = field(default_factory=list[Change])
    foreign: set[str] = field(default_factory=set[str])
    rules: list[ActiveRule] = field(default_factory=list[ActiveRule])
    terminations: int = 0
    unlisted: set[str] = field(default_factory=set[str])
    running: tuple[Kubelets, Checks] | None = None
    _latest: dict[Key, Object] = field(default_factory=dict[Key, Object])

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox of the first operator."""
        return self.election.sandbox

    @property
    def pods(self) -> Kubelets:
        """The kubelets. Raises AssertionError if no containers run."""
        assert self.running is not None
        return self.running[0]

    @property
    def updates(self) -> Checks:
        """The checks of updates in place. Raises AssertionError if no containers run."""
        assert self.running is not None
        return self.running[1]

    def run_containers(self, settings: Nodes | None = None) -> None:
        """Run the containers of all pods. `settings`: as of the cluster."""
        kubelets = self.plane.cluster.run_containers(settings)
        self.running = kubelets, Checks(self.plane, kubelets, USER)

    @property
    def candidates(self) -> Sequence[Candidate]:
        """The operators."""
        return list(self.election.candidates.values())

    @property
    def elects(self) -> bool:
        """Whether the operators take part in an election."""
        return len(self.candidates) > 1

    def candidate(self, number: int) -> Candidate:
        """One of the operators."""
        return self.candidates[number % len(self.candidates)]

    def get(self, key: Key) -> Object | None:
        """A stored object."""
        return self.plane.server.objects.get(key)

    def objects(self) -> list[tuple[Key, Object]]:
        """The objects of the namespace, in the order of their names."""
        found = [(key, obj) for key, obj in self.plane.server.objects.items() if key.namespace == NAMESPACE]
        return sorted(found, key=lambda each: (each[0].resource.plural, each[0].name))

    def inject(self, rule: Rule) -> None:
        """Inject a fault into the requests of all operators."""
        for each in self.candidates:
            self.rules += each.proxy.inject(rule)

    def record(self, what: str, obj: Object) -> None:
        """Remember a change, and who holds the Lease."""
        key = self.plane.cluster.access.key_of(obj)
        if key.namespace != NAMESPACE:
            return
        if key.resource == LEASES:
            holder = "" if what == "DELETED" else holder_of(obj)
            self.election.terms.append(Term(int(obj["metadata"]["resourceVersion"]), holder, _now()))
        self.history.append(Change(_now(), self.plane.server.user, what, key, self._latest.get(key), obj))
        self._latest[key] = obj
        if what == "DELETED":
            del self._latest[key]

    async def request(self, method: str, key: Key, body: Any, content_type: str = "application/json") -> Object | None:
        """A request of a user or of another client; None if it is rejected."""
        name = None if method == "POST" else key.name
        with suppress(ApiError):
            return await self.plane.client.request(method, key.resource.path(NAMESPACE, name), body, content_type)
        return None

    async def merge(self, key: Key, patch: Object) -> Object | None:
        """Send a merge patch."""
        return await self.request("PATCH", key, patch, "application/merge-patch+json")

    async def delete(self, key: Key, propagation: str = "Background") -> None:
        """Delete an object."""
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}
        await self.request("DELETE", key, options)

    async def put(self, name: str, spec: Spec) -> None:
        """Create an object, or replace its spec."""
        self.wanted[name] = spec
        key = key_of_owner(name)
        if self.get(key) is None:
            await self.request("POST", key, new_object(OWNERS[name], NAMESPACE, name, spec.of(name)))
        else:
            patch = [{"op": "replace", "path": "/spec", "value": spec.of(name)}]
            await self.request("PATCH", key, patch, JSON_PATCH)

    async def release(self, key: Key) -> None:
        """Remove the finalizer of another client."""
        finalizers: list[str] = nested_map(self.get(key) or {}, "metadata").get("finalizers") or []
        if FINALIZER in finalizers:
            kept = [each for each in finalizers if each != FINALIZER]
            await self.merge(key, {"metadata": {"finalizers": kept or None}})

    async def end_faults(self) -> None:
        """Let all requests pass, and have all operators run. With a short sync period, events need not pass."""
        for rule in self.rules:
            rule.stop()
        for each in self.candidates:
            each.operator.start()
        if not self.settings.sync_time:
            self.release_events()

    def release_events(self) -> None:
        """Let all events pass at once."""
        for each in self.candidates:
            each.proxy.pace = None
            each.proxy.release()

    async def end_users(self) -> None:
        """Let users repeat what has been rejected: an object that is wanted exists, as soon as its name is free."""

        async def poll() -> bool:
            return not any(is_deleted(self.get(key_of_owner(name))) for name in OWNERS)

        with suppress(TimedOutError):
            await wait_until(poll, DELETION, "no object is being deleted")
        for name in OWNERS:
            if (spec := self.wanted.get(name)) is not None:
                await self.put(name, spec)


@asynccontextmanager
async def world_of(seed: int, settings: Settings, operators: int) -> AsyncGenerator[World]:
    """A world whose operators have been started. With several, each takes part in an election."""
    plane = SimulatedPlane(seed)
    await create_namespace(plane.client, NAMESPACE)
    if operators > 1:
        settings = replace(settings, arguments=(*settings.arguments, "--leader-elect"))
    async with AsyncExitStack() as stack:
        candidates: dict[str, Candidate] = {}
        for name in NAMES[:operators]:
            relay, address = await stack.enter_async_context(plane.proxy(USER))
            operator = plane.operator(NAMESPACE, address, settings, name)
            relay.kill = operator.kill
            await stack.enter_async_context(supervised(operator))
            candidates[name] = Candidate(name, relay, operator)
        first = candidates[NAMES[0]]
        sandbox = Sandbox(NAMESPACE, plane.client, first.proxy, first.operator, settings)
        world = World(plane, Election(sandbox, candidates), settings)
        plane.server.subscribe(world.record)
        for each in candidates.values():
            each.operator.start()
        yield world


def is_deleted(obj: Object | None) -> bool:
    """Whether an object is being deleted."""
    return obj is not None and bool(obj["metadata"].get("deletionTimestamp"))


def _now() -> float:
    return asyncio.get_running_loop().time()
