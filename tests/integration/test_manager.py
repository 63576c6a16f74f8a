"""The whole controller on a real API server. The fault cases show what happens in between, and during a downtime."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from integration.control_plane import NAMESPACES, ControlPlane, client_of, eventually
from memcached_api.images import Images
from memcached_operator.engine.kind import ReconciledKind
from memcached_operator.engine.manager import Manager
from memcached_operator.engine.runtime.signals import stop_on_signals
from memcached_operator.kube.client import ApiClient
from memcached_operator.kube.resource import DEPLOYMENTS, SERVICES, Key, Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS, memcached
from memcached_operator.world.kopf_operators.handlers import handlers
from memcached_operator.world.kopf_operators.watch import kopf_watch

IMAGE = "example.com/memcached:1"
CLOSING = 0.3
COLLECTED = 60.0
"""Maximum seconds until the garbage collector deletes children: it discovers new kinds every 30 s."""
HUNG = 5 * COLLECTED
"""Seconds after which a scenario hangs: more than the sum of its waits, which have limits and messages of their own."""
Scenario = Callable[[ApiClient], Awaitable[None]]


def run_operator(
    plane: ControlPlane,
    namespaces: tuple[str, ...],
    scenario: Scenario,
    sync_period: float = 600,
    kinds: Sequence[ReconciledKind] = (memcached(Images(IMAGE)),),
) -> None:
    """Run a scenario and, in the same process, the operator for some namespaces."""

    async def run() -> None:
        connection, stop = plane.connection, asyncio.Event()
        async with client_of(connection) as client, asyncio.timeout(HUNG):
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


async def create(client: ApiClient, *objects: Object) -> None:
    """Create Memcacheds."""
    for obj in objects:
        await client.request("POST", MEMCACHEDS.path(obj["metadata"]["namespace"]), obj)


READY_SECONDS = 90
"""Timeout for the controllers of Kubernetes. On a busy machine, those of a new control plane start late."""


async def wait_until_ready(
    client: ApiClient, namespace: str, name: str = "cache", resource: Resource = MEMCACHEDS
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
            "Ready": "True",
        }
        return found if ready and current else None

    try:
        found = await eventually(check, READY_SECONDS)
    except AssertionError as error:
        raise AssertionError(f"{name} is not ready: {error}; its status: {last.get('status')}") from error
    assert found is not None
    return found


async def patch(client: ApiClient, key: Key, content: Object) -> None:
    """Merge a patch into an object with kubectl's field manager."""
    path = key.resource.path(key.namespace, key.name)
    await client.request("PATCH", path, content, "application/merge-patch+json", {"fieldManager": "kubectl"})


async def delete(client: ApiClient, key: Key) -> str:
    """Delete an object; return its uid."""
    found = await client.get(key)
    assert found is not None
    await client.request("DELETE", key.resource.path(key.namespace, key.name))
    return found["metadata"]["uid"]


async def replaced(client: ApiClient, key: Key, uid: str) -> bool:
    """Whether an object of this name exists with another uid."""
    found = await client.get(key)
    return found is not None and found["metadata"]["uid"] != uid


async def missing(client: ApiClient, key: Key) -> bool:
    """Whether an object does not exist."""
    return await client.get(key) is None


def test_object_is_created_changed_repaired_and_deleted(plane: ControlPlane, namespace: str) -> None:
    async def scenario(client: ApiClient) -> None:
        await create(client, cache(namespace, size=1))
        found = await wait_until_ready(client, namespace)
        assert (found["status"]["replicas"], found["status"]["readyReplicas"]) == (1, 1)
        for key in keys(namespace):
            uid = await delete(client, key)
            await eventually(lambda key=key, uid=uid: replaced(client, key, uid))
        await patch(client, Key(MEMCACHEDS, namespace, "cache"), {"spec": {"size": 3}})
        found = await wait_until_ready(client, namespace)
        assert len(found["status"]["nodes"]) == 3
        await delete(client, Key(MEMCACHEDS, namespace, "cache"))
        for key in keys(namespace):
            await eventually(lambda key=key: missing(client, key), COLLECTED)

    run_operator(plane, (namespace,), scenario)


def operator_requests(namespace: str, requests: Any) -> list[Object]:
    """The operator's requests for a namespace."""
    return [
        request
        for request in requests
        if request.get("objectRef", {}).get("namespace") == namespace
        and request.get("userAgent", "").startswith("memcached-operator")
    ]


def test_only_the_given_namespaces_are_reconciled(plane: ControlPlane, namespace: str) -> None:
    second, other = f"{namespace}-b", f"{namespace}-c"
    for name in (second, other):
        plane.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    async def scenario(client: ApiClient) -> None:
        await create(client, *(cache(name) for name in (namespace, second, other)))
        await wait_until_ready(client, namespace)
        await wait_until_ready(client, second)
        assert [await missing(client, key) for key in keys(other)] == [True, True]

    audit = plane.audit()
    run_operator(plane, (namespace, second), scenario)
    assert audit.writes(other).keys() <= {"create memcacheds"}
    for name in (second, other):
        plane.delete(Key(NAMESPACES, "", name))
