"""Missing Secrets on the real API server. The test writes the statuses and the Events of pods, as a kubelet does."""

import asyncio
import itertools
from collections.abc import Mapping
from typing import Any

import pytest

from integration.control_plane import ControlPlane, eventually
from integration.test_manager import cache, create, delete, operator_requests, run_operator, wait_until_ready
from memcached_operator.kube.client import ApiError, Client
from memcached_operator.kube.resource import DEPLOYMENTS, EVENTS, PODS, STATEFULSETS, Key, Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.status.conditions import DEBOUNCE_PERIOD
from memcached_operator.workloads import mounts
from support import mounting
from support.draining import condition

MANY = 2000
"""Events of other pods and of other causes."""
AT_ONCE = 50
IDENTITIES = {"Pooled": DEPLOYMENTS, "Stable": STATEFULSETS}


async def stuck_pod(client: Client, namespace: str, resource: Resource = DEPLOYMENTS, name: str = "cache") -> Object:
    """Create a Memcached whose only pod mounts a Secret and waits for a node; return the pod."""
    identity = next(each for each, workload in IDENTITIES.items() if workload == resource)
    await create(client, cache(namespace, name, size=1, identity=identity, **mounting.NOWHERE))
    workload = Key(resource, namespace, name)
    await eventually(lambda: client.get(workload))
    await mounting.mount(client, workload)
    return await pod_of(client, namespace, name)


async def pod_of(client: Client, namespace: str, name: str = "cache", uid: str = "") -> Object:
    """Wait for the only pod of a Memcached with the volume; `uid`: of a pod that it replaces."""

    async def poll() -> list[Object]:
        found = await mounting.mounting_pods(client, namespace)
        return [each for each in found if each["metadata"]["name"].startswith(f"{name}-") and uid_of(each) != uid]

    (found, *others) = await eventually(poll)
    assert not others
    return found


def uid_of(pod: Object) -> str:
    """The uid of a pod."""
    return pod["metadata"]["uid"]


async def degraded(client: Client, namespace: str, name: str = "cache") -> Mapping[str, Any]:
    """The condition Degraded; empty if there is no status."""
    return condition(await client.get(Key(MEMCACHEDS, namespace, name)) or {}, "Degraded")


async def wait_reported(client: Client, namespace: str, message: str) -> None:
    """Wait until Degraded has this message."""
    await eventually(lambda: is_reported(client, namespace, message))


async def is_reported(client: Client, namespace: str, message: str) -> bool:
    """Whether Degraded has this message."""
    found = await degraded(client, namespace)
    return (found.get("reason"), found.get("message")) == ("SecretUnavailable", message)


async def wait_healthy(client: Client, namespace: str) -> None:
    """Wait until Degraded is False."""

    async def poll() -> bool:
        return (await degraded(client, namespace)).get("status") == "False"

    await eventually(poll)


class Reads:
    """The operator's reads of Events in a namespace, from the audit log."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._audit, self._namespace = plane.audit(), namespace

    def all(self) -> list[Object]:
        """All reads from now on."""
        found = operator_requests(self._namespace, self._audit.requests(b"events"))
        return [each for each in found if each["objectRef"]["resource"] == "events" and each["verb"] != "create"]

    async def wait(self, count: int) -> None:
        """Wait until there are this many."""

        async def poll() -> bool:
            return len(self.all()) >= count

        await eventually(poll)


@pytest.mark.parametrize("resource", IDENTITIES.values(), ids=IDENTITIES)
def test_missing_secret_is_reported_until_the_pod_starts(
    plane: ControlPlane, namespace: str, resource: Resource
) -> None:
    reads = Reads(plane, namespace)

    async def scenario(client: Client) -> None:
        pod = await stuck_pod(client, namespace, resource)
        await mounting.report(client, pod, seen=2)
        await mounting.set_waiting(client, pod)
        await wait_reported(client, namespace, f"Pod {pod['metadata']['name']}: {mounting.MESSAGE}")
        await mounting.set_running(client, pod)
        found = await wait_until_ready(client, namespace)
        assert found["status"]["nodes"] == [pod["metadata"]["name"]]

    run_operator(plane, (namespace,), scenario)
    (read,) = reads.all()
    assert read["verb"] == "list"


def test_normal_start_and_restart_read_no_events(plane: ControlPlane, namespace: str) -> None:
    reads = Reads(plane, namespace)

    async def first(client: Client) -> None:
        await create(client, cache(namespace, size=2))
        deployment = Key(DEPLOYMENTS, namespace, "cache")
        await eventually(lambda: client.get(deployment))
        await mounting.mount(client, deployment)

        async def replaced() -> bool:
            found = await wait_until_ready(client, namespace)
            pods = await mounting.mounting_pods(client, namespace)
            return found["status"]["nodes"] == sorted(pod["metadata"]["name"] for pod in pods)

        await eventually(replaced)

    async def second(client: Client) -> None:
        await wait_until_ready(client, namespace)
        await asyncio.sleep(3)

    for scenario in (first, second):
        run_operator(plane, (namespace,), scenario)
    assert reads.all() == []


def test_reported_secret_survives_a_restart(
    plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Client.list

    async def list_slowly(self: Client, resource: Resource, *arguments: Any, **options: Any) -> Any:
        if resource == EVENTS:
            await asyncio.sleep(4 * DEBOUNCE_PERIOD)
        return await original(self, resource, *arguments, **options)

    async def first(client: Client) -> None:
        pod = await stuck_pod(client, namespace)
        await mounting.report(client, pod)
        await mounting.set_waiting(client, pod)
        await wait_reported(client, namespace, f"Pod {pod['metadata']['name']}: {mounting.MESSAGE}")

    async def second(_: Client) -> None:
        await reads.wait(1)
        await asyncio.sleep(2)

    run_operator(plane, (namespace,), first)
    reads, audit = Reads(plane, namespace), plane.audit()
    monkeypatch.setattr(Client, "list", list_slowly)
    run_operator(plane, (namespace,), second)
    assert audit.writes(namespace) == {}


def test_secret_that_is_missing_again_for_a_replaced_pod(
    plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mounts, "READ_PERIOD", 2.0)

    async def scenario(client: Client) -> None:
        pod = await stuck_pod(client, namespace, STATEFULSETS)
        await mounting.report(client, pod)
        await mounting.set_waiting(client, pod)
        await wait_reported(client, namespace, f"Pod cache-0: {mounting.MESSAGE}")
        # The Events of the former pod do not count.
        await delete(client, Key(PODS, namespace, "cache-0"))
        other = await pod_of(client, namespace, uid=uid_of(pod))
        await mounting.set_waiting(client, other)
        await wait_healthy(client, namespace)
        await mounting.report(client, other)
        await wait_reported(client, namespace, f"Pod cache-0: {mounting.MESSAGE}")

    run_operator(plane, (namespace,), scenario)


def test_old_events_and_events_of_other_pods_do_not_count(
    plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mounts, "READ_PERIOD", 2.0)
    reads = Reads(plane, namespace)

    async def scenario(client: Client) -> None:
        pod = await stuck_pod(client, namespace)
        await mounting.report(client, pod, seen=mounts.RECENT + 5)
        await mounting.report(client, {**pod, "metadata": {**pod["metadata"], "uid": "other"}})
        await mounting.set_waiting(client, pod)
        await reads.wait(2)
        assert (await degraded(client, namespace))["reason"] == "AsExpected"
        await mounting.report(client, pod)
        await wait_reported(client, namespace, f"Pod {pod['metadata']['name']}: {mounting.MESSAGE}")

    run_operator(plane, (namespace,), scenario)


def test_secret_is_found_among_thousands_of_events(plane: ControlPlane, namespace: str) -> None:
    async def scenario(client: Client) -> None:
        pod = await stuck_pod(client, namespace)
        other = {**pod, "metadata": {**pod["metadata"], "uid": "other"}}
        limit = asyncio.Semaphore(AT_ONCE)

        async def add(number: int) -> None:
            async with limit:
                if number % 2:
                    await mounting.report(client, other)
                else:
                    await mounting.report(client, pod, message="Back-off", reason="BackOff")

        await asyncio.gather(*map(add, range(MANY)))
        await mounting.report(client, pod)
        await mounting.set_waiting(client, pod)
        await wait_reported(client, namespace, f"Pod {pod['metadata']['name']}: {mounting.MESSAGE}")

    run_operator(plane, (namespace,), scenario)


def test_secret_that_is_deleted_later_is_reported_while_the_pod_runs(
    plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mounts, "READ_PERIOD", 1.0)
    monkeypatch.setattr(mounts, "RUNNING_PERIOD", 4.0)
    monkeypatch.setattr(mounts, "RECENT", 10.0)

    async def scenario(client: Client) -> None:
        pod = await stuck_pod(client, namespace)
        await mounting.set_running(client, pod, since=60)
        await wait_until_ready(client, namespace)
        await mounting.report(client, pod)
        message = (
            f'Pod {pod["metadata"]["name"]}: volume tls cannot be updated: secret "{mounting.SECRET}" not found; the '
            f"pod keeps running with the previous files; create the Secret {mounting.SECRET} in this namespace"
        )
        since = itertools.count(61)

        async def reported_at_a_reconcile() -> bool:
            await mounting.set_running(client, pod, next(since))  # a change of the pod causes a reconcile
            return await is_reported(client, namespace, message)

        await eventually(reported_at_a_reconcile)
        # The kubelet does not repeat it.
        await wait_until_ready(client, namespace)

    run_operator(plane, (namespace,), scenario)


@pytest.fixture
def rejected(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Reads of Events are forbidden; the field selector of each."""
    fields: list[str] = []
    original = Client.list

    async def forbid(self: Client, resource: Resource, *arguments: Any, **options: Any) -> Any:
        if resource == EVENTS:
            fields.append(options["fields"])
            raise ApiError(403, "Forbidden", "events is forbidden: not for you")
        return await original(self, resource, *arguments, **options)

    monkeypatch.setattr(Client, "list", forbid)
    return fields


def test_missing_permission_is_no_problem_of_the_object(
    plane: ControlPlane, namespace: str, rejected: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(client: Client) -> None:
        pod = await stuck_pod(client, namespace)
        await mounting.report(client, pod)
        await mounting.set_waiting(client, pod)

        async def poll() -> bool:
            return bool(rejected)

        await eventually(poll)
        for since in (61, 62, 63):
            await mounting.set_waiting(client, pod, since)
        await asyncio.sleep(2)
        assert (await degraded(client, namespace))["reason"] == "AsExpected"
        await mounting.set_running(client, pod)
        await wait_until_ready(client, namespace)

    run_operator(plane, (namespace,), scenario)
    assert len(rejected) == 1
    assert caplog.text.count("cannot list Events in namespace") == 1
