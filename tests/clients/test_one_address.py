"""What clients of a MemcachedProxy see while parts fail: three libraries, and connections with keys of known slots."""

import signal
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from clients import libraries
from clients.one_address import Clients, answering, clients, slots_of
from e2e.test_proxy import PROXIES, cache, proxy, serves
from support import kube
from support.connections import CONNECTIONS
from support.kube import Object, eventually, kubectl, must_get
from support.memcached import by_slot, pods_of, wait_until_ready
from support.processes import frozen, send_signal, unreachable
from support.programs import output
from support.slots import replace_pod
from support.waiting import READY, ROLLOUT, STEP

SLOT: Final = 1
OTHERS: Final = (0, 2)
FAULT: Final = 10.0
"""Seconds for which a server does not answer."""
BACK: Final = 2.0
"""Maximum seconds from the first direct answer of a slot until its keys are served again."""
TTL: Final = 5.0
"""Seconds for which a name server keeps the answer that a name has no address, or the address of an earlier pod."""
SETTLED: Final = 3.0
"""Seconds without a failure after which the next fault begins."""

Record = Callable[[str, object], None]


@dataclass(frozen=True)
class World:
    """A Memcached with three slots, its proxies and their clients."""

    namespace: str
    clients: Clients


@pytest.fixture(scope="module")
def programs() -> dict[str, libraries.Command]:
    """A client with one host for each library."""
    built = libraries.build_some()
    program = str(libraries.PROGRAMS / "with_pymemcache_single.py")
    return {name: built[name] for name in ("gomemcache", "php-memcached")} | {
        "pymemcache": [built["pymemcache"][0], program]
    }


@pytest.fixture(scope="module")
def world(programs: dict[str, libraries.Command], dns: Path) -> Iterator[World]:
    """A Memcached, its proxies and clients at work."""
    with kube.temporary_namespace() as namespace:
        kube.apply(cache(namespace, 3))
        kube.apply(proxy(namespace))
        wait_until_ready(namespace)
        wait_until_ready(namespace, "front", plural=PROXIES)
        address = must_get("services", namespace, "front")["spec"]["clusterIP"]
        slots = eventually(lambda: _slots(namespace, address), STEP, "all slots are reached") or {}
        with clients(address, slots, programs, dns) as found:
            yield World(namespace, found)


def _slots(namespace: str, address: str) -> dict[str, int] | None:
    try:
        return slots_of(address, [pod["status"]["podIP"] for pod in by_slot(namespace)])
    except (AssertionError, OSError):
        return None


@contextmanager
def row(world: World, name: str, record: Record) -> Generator[None]:
    """Wait until all clients are served, watch them during the block and until that is so again, and report."""
    found = world.clients
    eventually(partial(_settled, found), READY, "all clients are served")
    found.reset()
    yield
    eventually(partial(_settled, found), ROLLOUT, "all clients are served again")
    requests = sum(each.requests for each in found.connections)
    mine, others = (len(found.errors(slots)) for slots in ([SLOT], OTHERS))
    libraries = "; ".join(
        f"{library} {len(seen.failures)}+{seen.misses} of {seen.requests}, {seen.stall:.2f} s"
        for library, seen in found.libraries.items()
    )
    failed = [each.at for each in found.failures]
    duration = max(failed) - min(failed) if failed else 0.0
    record(
        name,
        f"{mine} | {others} errors of {requests} during {duration:.1f} s, {max(found.ended)} ended, {found.stall:.2f} s"
        f" | {libraries}",
    )


def _settled(found: Clients) -> bool:
    last = max((each.at for each in found.failures), default=0.0)
    return time.monotonic() - last > SETTLED


def assert_only_slot(found: Clients) -> None:
    """The requests for keys of other slots were answered, and no connection was closed."""
    assert found.errors(OTHERS) == []
    assert found.ended == [0] * CONNECTIONS


def late(found: Clients, back: Sequence[float]) -> float:
    """The seconds from the last time at which the slot began to answer directly until no request for it failed."""
    failed = [each.at for each in found.errors([SLOT])]
    assert failed
    assert back
    return max(0.0, max(failed) - back[-1])


def slot(world: World) -> Object:
    """The pod of the slot."""
    return must_get("pods", world.namespace, f"cache-{SLOT}")


def killed(world: World) -> None:
    """Kill the process of the slot: its container starts again."""
    pod = slot(world)
    send_signal(pod, "memcached", signal.SIGKILL)
    before = kube.restart_counts([pod])
    eventually(lambda: kube.restart_counts([slot(world)]) != before, READY, "the container has started again")
    wait_until_ready(world.namespace)


def replaced(world: World) -> None:
    """Delete the pod of the slot."""
    replace_pod(world.namespace, f"cache-{SLOT}", "cache")


def hangs(world: World) -> None:
    """Stop the process of the slot for a while: it accepts connections, and does not answer."""
    with frozen(slot(world), "memcached"):
        time.sleep(FAULT)


def cut_off(world: World) -> None:
    """Drop all packets to the slot for a while."""
    with unreachable(slot(world), "memcached"):
        time.sleep(FAULT)


@pytest.mark.parametrize(("fault", "limit"), [(killed, BACK), (replaced, TTL + BACK), (hangs, BACK), (cut_off, BACK)])
def test_broken_slot_costs_only_its_keys(
    world: World, fault: Callable[[World], None], limit: float, record_property: Record
) -> None:
    with answering(world.namespace, f"cache-{SLOT}") as back, row(world, fault.__name__, record_property):
        fault(world)
    assert_only_slot(world.clients)
    assert late(world.clients, back) <= limit


def test_silent_name_server_costs_only_the_keys_of_a_slot_that_restarts(
    world: World, cluster: dict[str, Any], record_property: Record
) -> None:
    """Names are looked up for each new connection only."""
    with row(world, "killed, and the name server is silent", record_property), silent_dns(cluster):
        send_signal(slot(world), "memcached", signal.SIGKILL)
        time.sleep(FAULT)
    assert_only_slot(world.clients)


@contextmanager
def silent_dns(cluster: dict[str, Any]) -> Generator[None]:
    """Stop the cluster's name server during the block."""
    found = [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if b"coredns" in (line := path.read_bytes()) and cluster["state_dir"].encode() in line
    ]
    assert found
    output(["kill", "-STOP", *map(str, found)])
    try:
        yield
    finally:
        output(["kill", "-CONT", *map(str, found)])


def _restarts(world: World, pod: Object) -> bool:
    """Whether the container of a pod was started again, and is ready."""
    found = must_get("pods", world.namespace, pod["metadata"]["name"])["status"]["containerStatuses"]
    return any(each["restartCount"] and each["ready"] for each in found)


def test_killed_proxy_closes_its_connections_only(world: World, record_property: Record) -> None:
    pod = pods_of(world.namespace, "front")[0]
    with row(world, "proxy killed", record_property):
        send_signal(pod, "proxy", signal.SIGKILL)
        # The status can be that of before. The next row must not begin while the container starts.
        eventually(lambda: _restarts(world, pod) and serves(world.namespace, 3), ROLLOUT, "the proxy runs again")
        wait_until_ready(world.namespace, "front", plural=PROXIES)
    assert world.clients.errors(range(3)) == []


def test_rollout_of_the_proxies_closes_each_connection_once(world: World, record_property: Record) -> None:
    with row(world, "proxies restarted", record_property):
        restarted = proxy(world.namespace, rollout={"restartedAt": "2026-01-01T00:00:00Z"})
        old = {pod["metadata"]["uid"] for pod in pods_of(world.namespace, "front")}
        kube.apply(restarted)
        eventually(
            lambda: (
                not old & {pod["metadata"]["uid"] for pod in pods_of(world.namespace, "front")}
                and serves(world.namespace, 3)
            ),
            ROLLOUT,
            "all proxies are replaced",
        )
    assert world.clients.errors(range(3)) == []
    assert [(each.closed, each.refused) for each in world.clients.connections if each.closed + each.refused > 1] == []


def test_drained_proxy_closes_its_connections_once(world: World, record_property: Record) -> None:
    pod = pods_of(world.namespace, "front")[0]
    with row(world, "proxy drained", record_property):
        evict(pod)
        eventually(partial(serves, world.namespace, 3), ROLLOUT, "another proxy serves")
    assert world.clients.errors(range(3)) == []
    assert max(world.clients.ended) <= 1


def evict(pod: Object) -> None:
    """Evict a pod as `kubectl drain` does."""
    meta = {"name": pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"]}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta}
    path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/eviction"
    kubectl("create", "--raw", path, "-f", "-", stdin=eviction)


def test_change_of_the_size_closes_each_connection_once(world: World, record_property: Record) -> None:
    for size in (4, 3):
        with row(world, f"size changed to {size}", record_property):
            kube.apply(cache(world.namespace, size))
            eventually(partial(serves, world.namespace, size), ROLLOUT, f"the proxies use {size} slots")
        assert world.clients.errors(range(4)) == []
        assert max(world.clients.ended) <= 1
