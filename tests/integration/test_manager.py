import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any
from unittest import mock

import pytest

from integration.control_plane import NAMESPACES, ControlPlane, client_of, eventually
from memcached_api.images import Images
from memcached_operator.handlers import handlers
from memcached_operator.kind import Kind
from memcached_operator.kopf_operators.watch import kopf_watch
from memcached_operator.kube.client import ApiError, Client
from memcached_operator.kube.resource import DEPLOYMENTS, SERVICES, Key, Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS, memcached
from memcached_operator.reconcile.manager import Manager
from memcached_operator.runtime.signals import stop_on_signals

IMAGE = "example.com/memcached:1"
SYNC_PERIOD = 2.0
CLOSING = 0.3
COLLECTED = 60.0
"""Maximum seconds until the garbage collector deletes children: it discovers new kinds every 30 s."""
Scenario = Callable[[Client], Awaitable[None]]


def run_operator(
    plane: ControlPlane,
    namespaces: tuple[str, ...],
    scenario: Scenario,
    sync_period: float = 600,
    kinds: Sequence[Kind] = (memcached(Images(IMAGE)),),
) -> None:
    """Run a scenario and, in the same process, the operator for some namespaces."""

    async def run() -> None:
        connection, stop = plane.connection, asyncio.Event()
        async with client_of(connection) as client, asyncio.timeout(90):
            watch = kopf_watch(handlers, connection, lambda: stop_on_signals(stop))
            operator = Manager(client, kinds, namespaces, sync_period, watch=watch)
            manager = asyncio.create_task(operator.run(stop))
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
    """The keys of a Memcached's children."""
    return Key(DEPLOYMENTS, namespace, name), Key(SERVICES, namespace, name)


async def create(client: Client, *objects: Object) -> None:
    """Create Memcacheds."""
    for obj in objects:
        await client.request("POST", MEMCACHEDS.path(obj["metadata"]["namespace"]), obj)


READY_SECONDS = 90
"""Timeout for the controllers of Kubernetes. On a busy machine, those of a new control plane start late."""


async def wait_until_ready(
    client: Client, namespace: str, name: str = "cache", resource: Resource = MEMCACHEDS
) -> Object:
    """Wait until an object is available, not progressing and not degraded in its current generation; return it."""
    last: Object = {}

    async def check() -> Object | None:
        found = await client.get(Key(resource, namespace, name))
        assert found is not None
        last.update(found)
        conditions = found.get("status", {}).get("conditions", [])
        current = all(each["observedGeneration"] == found["metadata"]["generation"] for each in conditions)
        ready = {each["type"]: each["status"] for each in conditions} == {
            "Available": "True",
            "Progressing": "False",
            "Degraded": "False",
        }
        return found if ready and current else None

    try:
        found = await eventually(check, READY_SECONDS)
    except AssertionError as error:
        raise AssertionError(f"{name} is not ready: {error}; its status: {last.get('status')}") from error
    assert found is not None
    return found


async def patch(client: Client, key: Key, content: Object) -> None:
    """Merge a patch into an object with kubectl's field manager."""
    path = key.resource.path(key.namespace, key.name)
    await client.request("PATCH", path, content, "application/merge-patch+json", {"fieldManager": "kubectl"})


async def delete(client: Client, key: Key) -> str:
    """Delete an object; return its uid."""
    found = await client.get(key)
    assert found is not None
    await client.request("DELETE", key.resource.path(key.namespace, key.name))
    return found["metadata"]["uid"]


async def replaced(client: Client, key: Key, uid: str) -> bool:
    """Whether an object of this name exists with another uid."""
    found = await client.get(key)
    return found is not None and found["metadata"]["uid"] != uid


async def missing(client: Client, key: Key) -> bool:
    """Whether an object does not exist."""
    return await client.get(key) is None


async def silent(*_: object) -> AsyncGenerator[tuple[str, Object]]:
    """A watch that reports nothing."""
    await asyncio.Event().wait()
    yield "", {}


@pytest.fixture
def no_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable watch events, so that the operator only lists."""
    monkeypatch.setattr(Client, "watch", silent)
    monkeypatch.setattr(Manager, "handle_event", mock.Mock())


def test_object_gets_children_and_status(plane: ControlPlane, namespace: str) -> None:
    async def scenario(client: Client) -> None:
        await create(client, cache(namespace, size=2))
        found = await wait_until_ready(client, namespace)
        assert (found["status"]["replicas"], found["status"]["readyReplicas"]) == (2, 2)
        assert len(found["status"]["nodes"]) == 2
        assert [await missing(client, key) for key in keys(namespace)] == [False, False]

    run_operator(plane, (namespace,), scenario)


def test_change_and_deletion_of_an_object(plane: ControlPlane, namespace: str) -> None:
    async def scenario(client: Client) -> None:
        await create(client, cache(namespace, size=1))
        await wait_until_ready(client, namespace)
        await patch(client, Key(MEMCACHEDS, namespace, "cache"), {"spec": {"size": 3}})
        found = await wait_until_ready(client, namespace)
        assert len(found["status"]["nodes"]) == 3
        await delete(client, Key(MEMCACHEDS, namespace, "cache"))
        for key in keys(namespace):
            await eventually(lambda key=key: missing(client, key), COLLECTED)

    run_operator(plane, (namespace,), scenario)


@pytest.mark.parametrize("child", [0, 1], ids=["Deployment", "Service"])
def test_deleted_child_is_recreated(plane: ControlPlane, namespace: str, child: int) -> None:
    async def scenario(client: Client) -> None:
        await create(client, cache(namespace))
        await wait_until_ready(client, namespace)
        key = keys(namespace)[child]
        uid = await delete(client, key)
        await eventually(lambda: replaced(client, key, uid), 5)

    run_operator(plane, (namespace,), scenario)


def test_request_budget_of_creation_and_steady_state(plane: ControlPlane, namespace: str) -> None:
    audit = plane.audit()

    async def scenario(client: Client) -> None:
        await asyncio.to_thread(plane.create, MEMCACHEDS, cache(namespace, size=2))
        await wait_until_ready(client, namespace)
        await asyncio.sleep(3)

    run_operator(plane, (namespace,), scenario)
    writes = audit.writes(namespace)
    assert (writes.pop("create deployments"), writes.pop("create services")) == (1, 1)
    assert writes.pop("patch memcacheds/status") <= 1 + 2  # one for each number of ready pods
    assert not writes


def test_restart_writes_nothing(plane: ControlPlane, namespace: str) -> None:
    async def first(client: Client) -> None:
        await create(client, *(cache(namespace, f"cache-{number}") for number in range(5)))
        for number in range(5):
            await wait_until_ready(client, namespace, f"cache-{number}")

    async def second(_: Client) -> None:
        await asyncio.sleep(4)

    run_operator(plane, (namespace,), first)
    audit = plane.audit()
    run_operator(plane, (namespace,), second)
    assert audit.writes(namespace) == {}
    assert any(request["verb"] == "watch" for request in operator_requests(namespace, audit.requests()))


def operator_requests(namespace: str, requests: Any) -> list[Object]:
    """The operator's requests for a namespace."""
    return [
        request
        for request in requests
        if request.get("objectRef", {}).get("namespace") == namespace
        and request.get("userAgent", "").startswith("memcached-operator")
    ]


def test_changes_during_a_downtime_are_reconciled(plane: ControlPlane, namespace: str) -> None:
    uids: list[str] = []

    async def first(client: Client) -> None:
        await create(client, cache(namespace), cache(namespace, "obsolete"))
        await wait_until_ready(client, namespace)
        await wait_until_ready(client, namespace, "obsolete")

    async def during_downtime(client: Client) -> None:
        uids.append(await delete(client, keys(namespace)[0]))
        await patch(client, keys(namespace)[1], {"spec": {"selector": {"somewhere": "else"}}})
        await delete(client, Key(MEMCACHEDS, namespace, "obsolete"))
        await create(client, cache(namespace, "later"))

    async def second(client: Client) -> None:
        await wait_until_ready(client, namespace, "later")
        await eventually(lambda: replaced(client, keys(namespace)[0], uids[0]))
        service = await client.get(keys(namespace)[1])
        assert service is not None
        assert service["spec"]["selector"]["app.kubernetes.io/instance"] == "cache"
        await eventually(lambda: missing(client, keys(namespace, "obsolete")[0]))

    run_operator(plane, (namespace,), first)
    plane.call(during_downtime)
    run_operator(plane, (namespace,), second)


def test_only_the_given_namespaces_are_reconciled(plane: ControlPlane, namespace: str) -> None:
    second, other = f"{namespace}-b", f"{namespace}-c"
    for name in (second, other):
        plane.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    async def scenario(client: Client) -> None:
        await create(client, *(cache(name) for name in (namespace, second, other)))
        await wait_until_ready(client, namespace)
        await wait_until_ready(client, second)
        assert [await missing(client, key) for key in keys(other)] == [True, True]

    audit = plane.audit()
    run_operator(plane, (namespace, second), scenario)
    assert audit.writes(other).keys() <= {"create memcacheds"}
    for name in (second, other):
        plane.delete(Key(NAMESPACES, "", name))


def test_objects_with_the_same_name_in_two_namespaces_are_independent(plane: ControlPlane, namespace: str) -> None:
    second = f"{namespace}-b"
    plane.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": second}})

    async def scenario(client: Client) -> None:
        await create(client, cache(namespace, size=1), cache(second, size=2))
        one, two = await wait_until_ready(client, namespace), await wait_until_ready(client, second)
        assert (len(one["status"]["nodes"]), len(two["status"]["nodes"])) == (1, 2)
        assert not set(one["status"]["nodes"]) & set(two["status"]["nodes"])

    run_operator(plane, (namespace, second), scenario)
    plane.delete(Key(NAMESPACES, "", second))


def test_resync_finds_missed_events(plane: ControlPlane, namespace: str, no_watches: None) -> None:
    async def scenario(client: Client) -> None:
        await create(client, cache(namespace))
        deployment, service = keys(namespace)
        await eventually(lambda: exists(client, service), 3 * SYNC_PERIOD)
        for key in (deployment, service):
            uid = await delete(client, key)
            await eventually(lambda key=key, uid=uid: replaced(client, key, uid), 3 * SYNC_PERIOD)
        await wait_until_ready(client, namespace)

    run_operator(plane, (namespace,), scenario, SYNC_PERIOD)


async def exists(client: Client, key: Key) -> bool:
    """Whether an object exists."""
    return not await missing(client, key)


def test_object_with_a_missed_deletion_is_not_reconciled_again(
    plane: ControlPlane, namespace: str, no_watches: None
) -> None:
    async def scenario(client: Client) -> None:
        await create(client, cache(namespace))
        await wait_until_ready(client, namespace)
        await delete(client, Key(MEMCACHEDS, namespace, "cache"))
        for key in keys(namespace):
            await eventually(lambda key=key: missing(client, key))
        started = time.monotonic()
        while time.monotonic() - started < 2 * SYNC_PERIOD:
            assert [await missing(client, key) for key in keys(namespace)] == [True, True]
            await asyncio.sleep(0.2)

    run_operator(plane, (namespace,), scenario, SYNC_PERIOD)


def test_missed_events_are_not_found_without_a_resync(plane: ControlPlane, namespace: str, no_watches: None) -> None:
    async def scenario(client: Client) -> None:
        await asyncio.sleep(1)
        await create(client, cache(namespace))
        await asyncio.sleep(2 * SYNC_PERIOD)
        assert await missing(client, keys(namespace)[0])

    run_operator(plane, (namespace,), scenario)


def test_failing_object_does_not_block_others(
    plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def forbid(self: Client, key: Key, obj: Object) -> Object:
        if key.name == "forbidden":
            raise ApiError(403, "Forbidden", "deployments is forbidden: not for you")
        return await original(self, key, obj)

    original = Client.create
    monkeypatch.setattr(Client, "create", forbid)

    async def scenario(client: Client) -> None:
        await create(client, cache(namespace, "forbidden"), cache(namespace, "allowed"))
        await wait_until_ready(client, namespace, "allowed")
        found = await eventually(lambda: degraded_condition(client, namespace, "forbidden"))
        assert found is not None
        assert found["reason"] == "ApplyFailed"
        assert "not for you" in found["message"]
        monkeypatch.setattr(Client, "create", original)
        await wait_until_ready(client, namespace, "forbidden")

    run_operator(plane, (namespace,), scenario)


async def degraded_condition(client: Client, namespace: str, name: str) -> Object | None:
    """The Degraded condition if it is True."""
    found = await client.get(Key(MEMCACHEDS, namespace, name)) or {}
    conditions = found.get("status", {}).get("conditions", [])
    return next((each for each in conditions if (each["type"], each["status"]) == ("Degraded", "True")), None)
