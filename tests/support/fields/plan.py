"""Stages for the steps of a field without an operator: the children are those of the operator's plan."""

from collections.abc import Callable
from datetime import UTC, datetime

from faults.workloads import new_object
from memcached_api.images import Images
from memcached_operator.appservice.controller import APPSERVICES, appservice
from memcached_operator.engine.kind import Plan
from memcached_operator.kube.client import ApiError
from memcached_operator.kube.resource import Key, Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS, memcached
from memcached_operator.world.snapshot import Snapshot
from support.fields.stage import pruned, result

DEFAULT_IMAGE = "example.com/memcached:default"
KINDS = {MEMCACHEDS: memcached(Images(DEFAULT_IMAGE)), APPSERVICES: appservice()}


MAX_PLANS = 2
"""Plans until the children are as the spec says."""


def unchanged(spec: Object) -> Object:
    """The spec itself."""
    return spec


class PlanStage:
    """Accepts and stores every spec. `seen`: the spec as the plan sees it."""

    def __init__(
        self, resource: Resource, seen: Callable[[Object], Object] = unchanged, namespace: str = "default"
    ) -> None:
        self.namespace = namespace
        self._kind = KINDS[resource]
        self._seen = seen
        self._specs: dict[str, Object] = {}
        self._children: dict[Key, Object] = {}

    async def create(self, name: str, spec: Object) -> str:
        """Store a spec."""
        return self.store(name, spec)

    async def replace(self, name: str, spec: Object) -> str:
        """Store a spec."""
        return self.store(name, spec)

    async def delete(self, name: str) -> None:
        """Forget the object and its children."""
        del self._specs[name]
        self._children = {}

    async def applied(self, name: str) -> tuple[Object, Object]:
        """The stored spec and the planned children. A plan that is to be repeated is, as the operator does."""
        obj = new_object(self._kind.resource, self.namespace, name, self._seen(self._specs[name]))
        problem = ""
        for _ in range(MAX_PLANS):
            plan = self._kind.plan(Snapshot(obj, self._children), datetime.now(UTC))
            problem = await self._apply_all(plan)
            if plan.requeue_after is None and plan.requeue_if_applied is None:
                break
        return self._specs[name], result(self._children.values(), name, problem)

    async def _apply_all(self, plan: Plan) -> str:
        """Store the children of a plan; returns its problems, or why a child is denied."""
        try:
            stored = [await self.apply(child) for child in plan.children or ()]
        except ApiError as error:
            return str(error)
        if plan.children is not None:
            self._children = {self._kind.key_of(child): child for child in stored}
        return "; ".join(each.message for each in plan.problems)

    async def apply(self, child: Object) -> Object:
        """A child as stored: without empty fields. Raises ApiError if it is denied."""
        return pruned(child)

    def store(self, name: str, spec: Object) -> str:
        """Store an accepted spec; returns no message."""
        self._specs[name] = spec
        return ""
