import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest

from integration.control_plane import NAMESPACES, ControlPlane, client_of, eventually
from memcached_operator.kube.client import ApiError, Client
from memcached_operator.kube.resource import DEPLOYMENTS, SERVICES, Key, Object
from memcached_operator.memcached.controller import MEMCACHEDS, memcached
from memcached_operator.reconcile.manager import Manager

IMAGE = "example.com/memcached:1"
RELIST = 2.0
CLOSING = 0.3
COLLECTED = 60.0
"""Seconds: the garbage collector looks for kinds that are new every 30, and ours are new to it."""
Scenario = Callable[[Client], Awaitable[None]]


def running(plane: ControlPlane, namespaces: tuple[str, ...], scenario: Scenario, relist: float = 600) -> None:
    """Run a scenario while the operator works in some namespaces; both in this process."""

    async def run() -> None:
        connection, stop = plane.connection, asyncio.Event()
        async with client_of(connection) as client, asyncio.timeout(90):
            manager = asyncio.create_task(Manager(client, [memcached(IMAGE)], namespaces, relist).run(stop))
            work = asyncio.ensure_future(scenario(client))
            try:
                await asyncio.wait((manager, work), return_when=asyncio.FIRST_COMPLETED)
                assert work.done(), manager.exception()
                work.result()
            finally:
                work.cancel()
                stop.set()
                await manager
                # A TLS connection takes a moment to close after its session.
                await asyncio.sleep(CLOSING)

    asyncio.run(run())


def cache(namespace: str, name: str = "cache", **spec: Any) -> Object:
    """A Memcached."""
    return {
        "apiVersion": MEMCACHEDS.api_version,
        "kind": MEMCACHEDS.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def keys(namespace: str, name: str = "cache") -> tuple[Key, Key]:
    """The children of a Memcached."""
    return Key(DEPLOYMENTS, namespace, name), Key(SERVICES, namespace, name)


async def make(client: Client, *objects: Object) -> None:
    """Create Memcacheds."""
    for obj in objects:
        await client.request("POST", MEMCACHEDS.path(obj["metadata"]["namespace"]), obj)


async def settled(client: Client, namespace: str, name: str = "cache") -> Object:
    """Wait until a Memcached is available, done and well."""

    async def get_live() -> Object | None:
        found = await client.get(Key(MEMCACHEDS, namespace, name))
        assert found is not None
        conditions = found.get("status", {}).get("conditions", [])
        current = all(each["observedGeneration"] == found["metadata"]["generation"] for each in conditions)
        well = {each["type"]: each["status"] for each in conditions} == {
            "Available": "True",
            "Progressing": "False",
            "Degraded": "False",
        }
        return found if well and current else None

    found = await eventually(get_live)
    assert found is not None
    return found


async def changed(client: Client, key: Key, patch: Object) -> None:
    """Merge a patch into an object, as somebody who is not the operator."""
    path = key.resource.path(key.namespace, key.name)
    await client.request("PATCH", path, patch, "application/merge-patch+json", {"fieldManager": "kubectl"})


async def deleted(client: Client, key: Key) -> str:
    """Delete an object; its uid."""
    found = await client.get(key)
    assert found is not None
    await client.request("DELETE", key.resource.path(key.namespace, key.name))
    return found["metadata"]["uid"]


async def another(client: Client, key: Key, uid: str) -> bool:
    """Whether there is an object of this name with another uid."""
    found = await client.get(key)
    return found is not None and found["metadata"]["uid"] != uid


async def absent(client: Client, key: Key) -> bool:
    """Whether there is no such object."""
    return await client.get(key) is None


async def silent(*_: object) -> AsyncGenerator[tuple[str, Object]]:
    """A watch that reports nothing."""
    await asyncio.Event().wait()
    yield "", {}


@pytest.fixture
def no_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator sees only what it reads by itself."""
    monkeypatch.setattr(Client, "watch", silent)


def test_an_object_gets_its_children_and_its_status(plane: ControlPlane, namespace: str) -> None:
    async def scenario(client: Client) -> None:
        await make(client, cache(namespace, size=2))
        found = await settled(client, namespace)
        assert (found["status"]["replicas"], found["status"]["readyReplicas"]) == (2, 2)
        assert len(found["status"]["nodes"]) == 2
        assert [await absent(client, key) for key in keys(namespace)] == [False, False]

    running(plane, (namespace,), scenario)


def test_the_object_is_followed_through_change_and_deletion(plane: ControlPlane, namespace: str) -> None:
    async def scenario(client: Client) -> None:
        await make(client, cache(namespace, size=1))
        await settled(client, namespace)
        await changed(client, Key(MEMCACHEDS, namespace, "cache"), {"spec": {"size": 3}})
        found = await settled(client, namespace)
        assert len(found["status"]["nodes"]) == 3
        await deleted(client, Key(MEMCACHEDS, namespace, "cache"))
        for key in keys(namespace):
            await eventually(lambda key=key: absent(client, key), COLLECTED)

    running(plane, (namespace,), scenario)


@pytest.mark.parametrize("child", [0, 1], ids=["Deployment", "Service"])
def test_a_child_deleted_by_hand_comes_back(plane: ControlPlane, namespace: str, child: int) -> None:
    async def scenario(client: Client) -> None:
        await make(client, cache(namespace))
        await settled(client, namespace)
        key = keys(namespace)[child]
        uid = await deleted(client, key)
        await eventually(lambda: another(client, key, uid), 5)

    running(plane, (namespace,), scenario)


def test_creation_and_steady_state_keep_to_their_budget_of_requests(plane: ControlPlane, namespace: str) -> None:
    audit = plane.audit()

    async def scenario(client: Client) -> None:
        await asyncio.to_thread(plane.create, MEMCACHEDS, cache(namespace, size=2))
        await settled(client, namespace)
        await asyncio.sleep(3)

    running(plane, (namespace,), scenario)
    writes = audit.writes(namespace)
    assert (writes.pop("create deployments"), writes.pop("create services")) == (1, 1)
    assert writes.pop("patch memcacheds/status") <= 2
    assert not writes


def test_a_restart_writes_nothing(plane: ControlPlane, namespace: str) -> None:
    async def first(client: Client) -> None:
        await make(client, *(cache(namespace, f"cache-{number}") for number in range(5)))
        for number in range(5):
            await settled(client, namespace, f"cache-{number}")

    async def second(_: Client) -> None:
        await asyncio.sleep(4)

    running(plane, (namespace,), first)
    audit = plane.audit()
    running(plane, (namespace,), second)
    assert audit.writes(namespace) == {}
    assert any(request["verb"] == "watch" for request in of(namespace, audit.requests()))


def of(namespace: str, requests: Any) -> list[Object]:
    """The requests of the operator about a namespace."""
    return [
        request
        for request in requests
        if request.get("objectRef", {}).get("namespace") == namespace
        and request.get("userAgent", "").startswith("memcached-operator")
    ]


def test_what_happened_while_the_operator_was_away_is_made_good(plane: ControlPlane, namespace: str) -> None:
    uids: list[str] = []

    async def first(client: Client) -> None:
        await make(client, cache(namespace), cache(namespace, "doomed"))
        await settled(client, namespace)
        await settled(client, namespace, "doomed")

    async def meanwhile(client: Client) -> None:
        uids.append(await deleted(client, keys(namespace)[0]))
        await changed(client, keys(namespace)[1], {"spec": {"selector": {"somewhere": "else"}}})
        await deleted(client, Key(MEMCACHEDS, namespace, "doomed"))
        await make(client, cache(namespace, "later"))

    async def second(client: Client) -> None:
        await settled(client, namespace, "later")
        await eventually(lambda: another(client, keys(namespace)[0], uids[0]))
        service = await client.get(keys(namespace)[1])
        assert service is not None
        assert service["spec"]["selector"]["app.kubernetes.io/instance"] == "cache"
        await eventually(lambda: absent(client, keys(namespace, "doomed")[0]))

    running(plane, (namespace,), first)
    plane.call(meanwhile)
    running(plane, (namespace,), second)


def test_only_the_given_namespaces_are_worked_in(plane: ControlPlane, namespace: str) -> None:
    second, left_alone = f"{namespace}-b", f"{namespace}-c"
    for name in (second, left_alone):
        plane.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    async def scenario(client: Client) -> None:
        await make(client, *(cache(name) for name in (namespace, second, left_alone)))
        await settled(client, namespace)
        await settled(client, second)
        assert [await absent(client, key) for key in keys(left_alone)] == [True, True]

    audit = plane.audit()
    running(plane, (namespace, second), scenario)
    assert audit.writes(left_alone).keys() <= {"create memcacheds"}
    for name in (second, left_alone):
        plane.delete(Key(NAMESPACES, "", name))


def test_objects_of_one_name_in_two_namespaces_do_not_share_anything(plane: ControlPlane, namespace: str) -> None:
    second = f"{namespace}-b"
    plane.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": second}})

    async def scenario(client: Client) -> None:
        await make(client, cache(namespace, size=1), cache(second, size=2))
        one, two = await settled(client, namespace), await settled(client, second)
        assert (len(one["status"]["nodes"]), len(two["status"]["nodes"])) == (1, 2)
        assert not set(one["status"]["nodes"]) & set(two["status"]["nodes"])

    running(plane, (namespace, second), scenario)
    plane.delete(Key(NAMESPACES, "", second))


def test_what_the_watches_missed_is_found_by_the_next_reading(
    plane: ControlPlane, namespace: str, no_watches: None
) -> None:
    async def scenario(client: Client) -> None:
        await make(client, cache(namespace))
        deployment, service = keys(namespace)
        await eventually(lambda: present(client, service), 3 * RELIST)
        for key in (deployment, service):
            uid = await deleted(client, key)
            await eventually(lambda key=key, uid=uid: another(client, key, uid), 3 * RELIST)
        await settled(client, namespace)

    running(plane, (namespace,), scenario, RELIST)


async def present(client: Client, key: Key) -> bool:
    """Whether there is such an object."""
    return not await absent(client, key)


def test_an_object_whose_deletion_was_missed_is_not_worked_on_any_more(
    plane: ControlPlane, namespace: str, no_watches: None
) -> None:
    async def scenario(client: Client) -> None:
        await make(client, cache(namespace))
        await settled(client, namespace)
        await deleted(client, Key(MEMCACHEDS, namespace, "cache"))
        for key in keys(namespace):
            await eventually(lambda key=key: absent(client, key))
        started = time.monotonic()
        while time.monotonic() - started < 2 * RELIST:
            assert [await absent(client, key) for key in keys(namespace)] == [True, True]
            await asyncio.sleep(0.2)

    running(plane, (namespace,), scenario, RELIST)


def test_without_a_relist_nothing_would_be_found_by_deaf_watches(
    plane: ControlPlane, namespace: str, no_watches: None
) -> None:
    async def scenario(client: Client) -> None:
        await asyncio.sleep(1)
        await make(client, cache(namespace))
        await asyncio.sleep(2 * RELIST)
        assert await absent(client, keys(namespace)[0])

    running(plane, (namespace,), scenario)


def test_an_invalid_object_does_not_hold_up_the_others(
    plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(self: Client, key: Key, obj: Object) -> Object:
        if key.name == "refused":
            raise ApiError(403, "Forbidden", "deployments is forbidden: not for you")
        return await create(self, key, obj)

    create = Client.create
    monkeypatch.setattr(Client, "create", refuse)

    async def scenario(client: Client) -> None:
        await make(client, cache(namespace, "refused"), cache(namespace, "fine"))
        await settled(client, namespace, "fine")
        found = await eventually(lambda: degraded(client, namespace, "refused"))
        assert found is not None
        assert found["reason"] == "ApplyFailed"
        assert "not for you" in found["message"]
        monkeypatch.setattr(Client, "create", create)
        await settled(client, namespace, "refused")

    running(plane, (namespace,), scenario)


async def degraded(client: Client, namespace: str, name: str) -> Object | None:
    """The condition, where it is true."""
    found = await client.get(Key(MEMCACHEDS, namespace, name)) or {}
    conditions = found.get("status", {}).get("conditions", [])
    return next((each for each in conditions if (each["type"], each["status"]) == ("Degraded", "True")), None)
