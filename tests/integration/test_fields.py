"""Every field without an operator: the API server's responses to each step, and the children of the plan."""

import asyncio
from typing import Any

import pytest

from faults.sandbox import FailedError
from faults.state import CHILDREN
from faults.workloads import new_object
from integration.control_plane import ControlPlane, client_of
from memcached_operator.kube.client import JSON_PATCH, ApiClient, ApiError
from memcached_operator.kube.resource import CONFIG_MAPS, Object, Resource
from support.fields.leaves import Leaf, all_leaves
from support.fields.plan import PlanStage
from support.fields.run import run_steps
from support.fields.stage import denial_of
from support.fields.steps import actions
from support.kubernetes import LABEL_KEYS

pytestmark = pytest.mark.server

PARALLEL = 8


class ApiServerStage(PlanStage):
    """The API server accepts or denies the specs, and sets the defaults. `suffix`: of the names of its objects."""

    def __init__(self, client: ApiClient, namespace: str, suffix: int, resource: Resource) -> None:
        super().__init__(resource, namespace=namespace)
        self._client = client
        self._resource = resource
        self._suffix = suffix

    async def create(self, name: str, spec: Object) -> str:
        """Create an object."""
        obj = new_object(self._resource, self.namespace, self._stored_name(name), spec)
        return await self._send(name, "POST", self._resource.path(self.namespace), obj)

    async def replace(self, name: str, spec: Object) -> str:
        """Replace the spec of an object."""
        path = self._resource.path(self.namespace, self._stored_name(name))
        return await self._send(name, "PATCH", path, [{"op": "replace", "path": "/spec", "value": spec}], JSON_PATCH)

    async def apply(self, child: Object) -> Object:
        """The child as the API server would store it, with its defaults."""
        resource = next(each for each in (*CHILDREN, CONFIG_MAPS) if each.kind == child["kind"])
        return await self._client.request("POST", resource.path(self.namespace), child, params={"dryRun": "All"})

    async def _send(self, name: str, *request: Any) -> str:
        try:
            stored = await self._client.request(*request)
        except ApiError as error:
            return denial_of(error)
        return self.store(name, stored["spec"])

    def _stored_name(self, name: str) -> str:
        return f"{name}-{self._suffix}"


@pytest.mark.long(80)
def test_api_server_and_plan_meet_the_expectations(plane: ControlPlane, namespace: str, version: str) -> None:
    slots = asyncio.Semaphore(PARALLEL)
    # A version without the label keys of affinities stores another affinity than the plan's.
    leaves = [leaf for leaf in all_leaves() if LABEL_KEYS.applies(version) or leaf.path[-1] != "affinity"]
    selected = [(leaf, steps) for leaf in leaves for steps in actions(leaf).values()]

    async def error_of(client: ApiClient, number: int, leaf: Leaf, steps: Any) -> str:
        async with slots:
            try:
                await run_steps(ApiServerStage(client, namespace, number, leaf.resource), leaf, steps)
            except FailedError as error:
                return str(error)
        return ""

    async def errors() -> list[str]:
        async with client_of(plane.connection) as client:
            return await asyncio.gather(*(error_of(client, n, *each) for n, each in enumerate(selected)))

    assert list(filter(None, asyncio.run(errors()))) == []
