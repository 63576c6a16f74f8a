"""Updates of slots with the least that each change needs, with real pods and clients: in place, warm, or replaced."""

from collections.abc import Callable
from typing import Any

import pytest

from cluster.public import releases
from support import kube
from support.clients import Client, Server
from support.images import load_release
from support.kube import Object, eventually, kubectl
from support.load import Load, fill, kept, load
from support.memcached import IMAGE, OTHER_IMAGE, by_slot, memcached, wait_until_degraded, wait_until_ready
from support.slots import slot_addresses
from support.waiting import READY, ROLLOUT

pytestmark = pytest.mark.usefixtures("cluster")

SLOTS = 3
KEYS = [f"key-{number}" for number in range(100_000)]
FEW = KEYS[:10_000]
OLD_RELEASE = releases.VERSIONS[0]
MI = 2**20
Figures = Callable[[str, object], None]


def cache(namespace: str, size: int = SLOTS, **spec: Any) -> Object:
    """A Memcached with a Service for each slot."""
    return memcached(namespace, size=size, identity="Stable", service={"perPod": True}, **spec)


def warm(namespace: str, image: str = IMAGE, **cache_fields: Any) -> Object:
    """One whose items survive restarts of memcached."""
    return cache(namespace, image=image, cache={"memory": "64Mi", "warmRestart": True, **cache_fields})


def identities(namespace: str) -> list[tuple[str, str]]:
    """Uid and address of each pod, in the order of the slots."""
    return [(each["metadata"]["uid"], each["status"].get("podIP", "")) for each in by_slot(namespace)]


def container(pod: Object, name: str = "memcached") -> Object:
    """The status of a container."""
    return next(each for each in pod["status"]["containerStatuses"] if each["name"] == name)


def restarts(namespace: str, name: str = "memcached") -> list[int]:
    """How often a container was restarted, by slot."""
    return [container(each, name)["restartCount"] for each in by_slot(namespace)]


def limits(namespace: str) -> list[str]:
    """The memory limit that is in effect for memcached, by slot."""
    return [container(each)["resources"]["limits"]["memory"] for each in by_slot(namespace)]


def asked(namespace: str) -> list[str]:
    """The memory limit that the spec of each pod has. A node lowers it when it knows how much memory is used."""
    return [each["spec"]["containers"][0]["resources"]["limits"]["memory"] for each in by_slot(namespace)]


def stat(address: str, name: str) -> str:
    """One value of memcached's `stats`."""
    with Client(Server(address, 11211)) as client:
        client.send(b"stats\r\n")
        found: dict[str, str] = {}
        while (line := client.line()) != b"END\r\n":
            _, key, value = line.decode().split(maxsplit=2)
            found[key] = value.strip()
        return found[name]


def change(spec: Object) -> str:
    """Apply a change; returns what admission says."""
    return kubectl("apply", "-f", "-", stdin=spec).stderr


def updated(namespace: str) -> None:
    """Wait until the change is complete, and the Service of each slot leads to its pod."""
    wait_until_ready(namespace, timeout=ROLLOUT)
    slot_addresses(namespace, len(by_slot(namespace)))


def started(namespace: str) -> list[str]:
    """When the containers of memcached started, the highest slot first."""
    return [container(each)["state"]["running"]["startedAt"] for each in reversed(by_slot(namespace))]


def record_outages(found: Load, figures: Figures) -> None:
    """Record how long each slot was away: that depends on the machine."""
    longest = max((max(each) for each in found.outages.values()), default=0.0)
    figures("longest time without an answer of one slot", f"{longest:.1f} s")


@pytest.mark.smoke
@pytest.mark.race
def test_upgrade_of_memcached_keeps_all_items(namespace: str, record_property: Figures) -> None:
    old = load_release(OLD_RELEASE)
    kube.apply(warm(namespace, old))
    wait_until_ready(namespace)
    addresses, before = slot_addresses(namespace, SLOTS), identities(namespace)
    assert [stat(each, "version") for each in addresses] == [OLD_RELEASE] * SLOTS
    fill(addresses, KEYS)
    with load(addresses, KEYS) as clients:
        said = change(warm(namespace))
        assert f"this change restarts memcached in {SLOTS} pods, one at a time; cached items are kept" in said
        updated(namespace)
    assert [stat(each, "version") for each in addresses] == [releases.VERSIONS[-1]] * SLOTS
    assert kept(addresses, KEYS) == [len(KEYS)] * SLOTS
    assert identities(namespace) == before, "a pod was replaced"
    assert restarts(namespace) == [1] * SLOTS
    assert started(namespace) == sorted(started(namespace)), "the highest slot first"
    record_outages(clients, record_property)


@pytest.mark.nightly
@pytest.mark.long(110)
def test_more_connections_keep_all_items(namespace: str, record_property: Figures) -> None:
    kube.apply(warm(namespace))
    wait_until_ready(namespace)
    addresses, before = slot_addresses(namespace, SLOTS), identities(namespace)
    fill(addresses, FEW)
    with load(addresses, FEW) as clients:
        said = change(warm(namespace, maxConnections=4096))
        assert "cached items are kept" in said
        updated(namespace)
    assert [stat(each, "max_connections") for each in addresses] == ["4096"] * SLOTS
    assert (kept(addresses, FEW), identities(namespace)) == ([len(FEW)] * SLOTS, before)
    raised = limits(namespace)
    record_outages(clients, record_property)
    change(warm(namespace, maxConnections=1024))
    updated(namespace)
    assert [stat(each, "max_connections") for each in addresses] == ["1024"] * SLOTS
    assert (kept(addresses, FEW), identities(namespace)) == ([len(FEW)] * SLOTS, before)
    assert asked(namespace) == ["128Mi"] * SLOTS != raised, "limits fall after the restart"


def grows(namespace: str, memory: str, size: int = SLOTS) -> Object:
    """A Memcached whose agent can raise its memory."""
    return cache(namespace, size, cache={"memory": memory}, monitoring={})


@pytest.mark.long(80)
def test_memory_grows_without_a_restart(namespace: str, record_property: Figures) -> None:
    kube.apply(grows(namespace, "128Mi"))
    wait_until_ready(namespace)
    addresses, before, old = slot_addresses(namespace, SLOTS), identities(namespace), limits(namespace)
    fill(addresses, FEW)
    with load(addresses, FEW) as clients:
        said = change(grows(namespace, "256Mi"))
        assert f"this change resizes {SLOTS} pods in place" in said
        updated(namespace)
        eventually(lambda: [int(stat(each, "limit_maxbytes")) for each in addresses] == [256 * MI] * SLOTS, READY)
        record_property("seconds until the memory of 3 pods has grown", clients.now())
    assert (kept(addresses, FEW), identities(namespace)) == ([len(FEW)] * SLOTS, before)
    assert restarts(namespace) + restarts(namespace, "agent") == [0] * 2 * SLOTS
    assert not clients.outages
    assert len({*limits(namespace), *old}) == 2
    kubectl("scale", "memcached", "cache", "-n", namespace, "--replicas", "4")
    updated(namespace)
    (new,) = slot_addresses(namespace, 4)[SLOTS:]
    assert int(stat(new, "limit_maxbytes")) == 256 * MI
    kubectl("delete", "pod", "cache-0", "-n", namespace, "--wait=false")
    eventually(lambda: identities(namespace)[0] not in before and kube.ready(by_slot(namespace)[0]), READY, "a new pod")
    assert slot_addresses(namespace, SLOTS) == addresses
    assert int(stat(addresses[0], "limit_maxbytes")) == 256 * MI


MISSING = "localhost/memcached-operator/missing:1"


def test_image_that_is_missing_costs_no_item(namespace: str) -> None:
    kube.apply(warm(namespace, OTHER_IMAGE))
    wait_until_ready(namespace)
    addresses, before = slot_addresses(namespace, SLOTS), identities(namespace)
    fill(addresses, FEW)
    change(warm(namespace, MISSING))
    found = wait_until_degraded(namespace, "ImageUnavailable")
    eventually(lambda: all(kube.ready(each) for each in by_slot(namespace)), READY, "the pod has its image back")
    found = wait_until_degraded(namespace, "ImageUnavailable")
    assert slot_addresses(namespace, SLOTS) == addresses
    assert f"Pod cache-2: the image {MISSING} of container memcached cannot be pulled" in found["message"]
    assert [each["spec"]["containers"][0]["image"] for each in by_slot(namespace)] == [OTHER_IMAGE] * SLOTS
    assert (kept(addresses, FEW), identities(namespace)) == ([len(FEW)] * SLOTS, before)
    assert restarts(namespace)[:2] == [0, 0], "the others are untouched"
    change(warm(namespace))
    updated(namespace)
    assert (kept(addresses, FEW), identities(namespace)) == ([len(FEW)] * SLOTS, before)
    assert [each["spec"]["containers"][0]["image"] for each in by_slot(namespace)] == [IMAGE] * SLOTS


def test_node_without_room_leaves_the_pods_as_they_are(namespace: str) -> None:
    def requested(memory: str) -> Object:
        amounts = {"limits": {"memory": memory}, "requests": {"memory": memory}}
        return cache(namespace, 2, cache={"memory": "32Mi"}, monitoring={}, resources=amounts)

    kube.apply(requested("128Mi"))
    wait_until_ready(namespace)
    before = identities(namespace)
    change(requested("1Ti"))
    found = wait_until_degraded(namespace, "ApplyFailed")
    assert "Pod cache-1: its node cannot resize it" in found["message"]
    assert "spec.rollout.restartedAt" in found["message"]
    assert (limits(namespace), identities(namespace)) == (["128Mi"] * 2, before)
    change(requested("160Mi"))
    updated(namespace)
    assert (limits(namespace), identities(namespace), restarts(namespace)) == (["160Mi"] * 2, before, [0, 0])
