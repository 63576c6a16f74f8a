"""The engine runs a kind with children of other types than Memcached: support/widget_controller.py."""

import asyncio
from collections import Counter
from collections.abc import Iterator

import pytest

from crds.crd import definition
from integration.control_plane import CRDS, ControlPlane, eventually, is_served, until
from integration.test_manager import run_operator, wait_until_ready
from memcached_operator.kube.client import ApiClient
from memcached_operator.kube.resource import (
    CONFIG_MAPS,
    Key,
    Object,
)
from support.monitors import monitor_crd
from support.widget import WIDGET
from support.widget_controller import MONITORS, WIDGETS, widget

KINDS = (widget(),)
CREATED = {
    "create statefulsets": 1,
    "create services": 2,
    "create poddisruptionbudgets": 1,
    "create configmaps": 1,
}
MONITOR_CRD = monitor_crd(MONITORS)


@pytest.fixture(scope="module")
def widgets(plane: ControlPlane) -> Iterator[ControlPlane]:
    """A control plane that serves the kind."""
    crd = definition(WIDGET)
    plane.create(CRDS, crd)
    until(lambda: plane.call(lambda client: is_served(client, WIDGETS.path())))
    yield plane
    plane.delete(Key(CRDS, "", crd["metadata"]["name"]))


class World:
    """A Widget, and what its user sees and does. All requests have another user agent than the operator's."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.plane, self.namespace = plane, namespace
        self.audit = plane.audit()

    def key(self, resource: object = WIDGETS, name: str = "app") -> Key:
        """The key of an object in the namespace."""
        assert isinstance(resource, type(WIDGETS))
        return Key(resource, self.namespace, name)

    async def create(self, **spec: object) -> None:
        """Create the Widget."""
        obj = {
            "apiVersion": WIDGETS.api_version,
            "kind": WIDGETS.kind,
            "metadata": {"name": "app", "namespace": self.namespace},
            "spec": spec,
        }
        await asyncio.to_thread(self.plane.create, WIDGETS, obj)

    async def change(self, key: Key, patch: Object) -> None:
        """Merge a patch into an object."""
        self.audit = self.plane.audit()
        await asyncio.to_thread(self.plane.change, key, patch)

    async def spec(self, client: ApiClient, **spec: object) -> dict[str, int]:
        """Change the Widget's spec and wait until it is ready; return the operator's writes of children."""
        await self.change(self.key(), {"spec": spec})
        await wait_until_ready(client, self.namespace, "app", WIDGETS)
        return self.child_writes()

    def child_writes(self) -> dict[str, int]:
        """The operator's writes since the last action, without those of statuses."""
        return {what: count for what, count in self.writes().items() if not what.endswith("/status")}

    def writes(self) -> "Counter[str]":
        """All writes of the operator since the last action."""
        return self.audit.writes(self.namespace)


def test_children_of_every_type_are_created_changed_and_deleted(widgets: ControlPlane, namespace: str) -> None:
    world = World(widgets, namespace)

    async def scenario(client: ApiClient) -> None:
        await world.create(size=2, settings="a=1")
        found = await wait_until_ready(client, namespace, "app", WIDGETS)
        assert found["status"]["nodes"] == ["app-0", "app-1"]
        assert world.child_writes() == CREATED
        assert world.writes()["patch widgets/status"] <= 1 + 2  # one for each number of ready pods
        assert await world.spec(client, size=3) == {"patch statefulsets": 1}
        assert await world.spec(client, settings="a=2") == {"patch configmaps": 2}  # transfer and apply
        assert await world.spec(client, settings="a=3") == {"patch configmaps": 1}
        config = await client.get(world.key(CONFIG_MAPS))
        assert config is not None
        assert config["data"] == {"settings": "a=3"}
        assert await world.spec(client, settings="") == {"delete configmaps": 1}

    run_operator(widgets, (namespace,), scenario, kinds=KINDS)


def test_optional_api_is_noticed(widgets: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memcached_operator.kube.reflector.MISSING_PERIOD", 1.0)
    world, crd = World(widgets, namespace), Key(CRDS, "", MONITOR_CRD["metadata"]["name"])

    async def scenario(client: ApiClient) -> None:
        await world.create(size=1)
        await wait_until_ready(client, namespace, "app", WIDGETS)
        assert "create servicemonitors" not in world.writes()
        await asyncio.to_thread(widgets.create, CRDS, MONITOR_CRD)
        await eventually(lambda: client.get(world.key(MONITORS)))
        world.audit = widgets.audit()
        await asyncio.to_thread(widgets.delete, crd)
        await eventually(lambda: is_gone(client))
        await asyncio.to_thread(world.audit.wait_until_quiet, 1.0, namespace)
        await wait_until_ready(client, namespace, "app", WIDGETS)
        # The controller may notice the deletion of the object before that of its API.
        assert sum(world.child_writes().values()) <= 2

    async def is_gone(client: ApiClient) -> bool:
        return not await is_served(client, MONITORS.path())

    run_operator(widgets, (namespace,), scenario, kinds=KINDS)
