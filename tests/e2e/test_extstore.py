"""Items on disks: volumes of slots, their end, disks that fail, and volumes that cannot be claimed."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from support import disks, file_systems, kube
from support.kube import Object, eventually, kubectl
from support.memcached import (
    SMALL,
    by_slot,
    conditions,
    memcached,
    pods_of,
    send_commands,
    wait_until_ready,
)
from support.slots import replace_pod
from support.waiting import READY, ROLLOUT

pytestmark = pytest.mark.usefixtures("cluster")

GIB: Final = 2**30
VOLUMES: Final = 3
COUNT: Final = 3000
"""Items, of 30 MB together."""
VALUE: Final = b"v" * 10_240
REPORTED: Final = 60.0
"""Seconds until a cause is in the status."""
STOPPED: Final = 15.0
"""Seconds from the error of a disk until memcached has ended."""


def cache(namespace: str, slots: int = 1, memory: str = "64Mi", **extstore: Any) -> Object:
    """A Memcached whose items move to the disk at once."""
    disk: Object = {"size": "1Gi", "itemAge": "0s", **extstore}
    fields: Object = {"memory": memory, "extstore": disk}
    return memcached(namespace, size=slots, identity="Stable", resources=SMALL, cache=fields)


@contextmanager
def storage(namespace: str, *paths: Path) -> Generator[None]:
    """Volumes of directories or devices during the block, of a class that has the name of the namespace."""
    names = [f"{namespace}-{path.name}" for path in paths]
    kube.apply(disks.storage_class(namespace))
    for name, path in zip(names, paths, strict=True):
        kube.apply(disks.volume(name, namespace, path))
    try:
        yield
    finally:
        kubectl("delete", "memcached", "--all", "-n", namespace, "--wait=false")
        eventually(lambda: not kube.items("pods", namespace), ROLLOUT, "the pods are deleted")
        kubectl("delete", "persistentvolume", *names, "--wait=false")
        kubectl("delete", "storageclass", namespace)


@pytest.fixture
def volumes(namespace: str, tmp_path: Path) -> Generator[None]:
    """More volumes than slots: a volume that was used is not used again."""
    directories = [tmp_path / f"volume-{number}" for number in range(VOLUMES)]
    for directory in directories:
        directory.mkdir()
    with storage(namespace, *directories):
        yield


def address_of(pod: Object) -> str:
    """The IP address of a pod."""
    return pod["status"]["podIP"]


def fill(address: str) -> None:
    """Store items, and wait until memcached has moved them to the disk."""
    store(address)
    wait_until_moved(address)


def store(address: str) -> None:
    """Store the items, which fit into memory."""
    keys = range(COUNT)
    commands = b"".join(b"set key-%d 0 0 %d noreply\r\n%s\r\n" % (key, len(VALUE), VALUE) for key in keys)
    send_commands(address, 11211, commands.rstrip(b"\r\n"))


def wait_until_moved(address: str) -> None:
    """Wait until memcached has moved items to the disk."""
    eventually(lambda: statistic(address, "extstore_objects_written") > COUNT / 2, READY, "items are on the disk")


def found(address: str) -> int:
    """The number of items that a client gets, all with the right value."""
    reply = send_commands(address, 11211, *(b"get key-%d" % key for key in range(COUNT)), timeout=60)
    assert reply.count(VALUE) == reply.count(b"VALUE key-")
    return reply.count(VALUE)


def statistic(address: str, name: str) -> int:
    """A number of memcached's statistics."""
    lines = send_commands(address, 11211, b"stats").splitlines()
    return next(int(line.split()[2]) for line in lines if line.startswith(b"STAT %s " % name.encode()))


def claims(namespace: str) -> list[str]:
    """The names of the claims."""
    return sorted(kube.names(kube.items("persistentvolumeclaims", namespace)))


@pytest.mark.usefixtures("volumes")
def test_each_slot_has_a_volume_as_long_as_its_pod(
    namespace: str, record_property: Callable[[str, object], None]
) -> None:
    kube.apply(cache(namespace, 2, storageClassName=namespace))
    status = wait_until_ready(namespace)["status"]
    assert status["cache"]["extstore"] == {"file": "896Mi", "volume": "Claim"}
    assert claims(namespace) == ["cache-0-extstore", "cache-1-extstore"]
    first, second = map(address_of, by_slot(namespace))
    fill(first)
    assert found(first) == COUNT
    fill(second)
    begun = time.monotonic()
    replace_pod(namespace, "cache-1", "cache")
    wait_until_ready(namespace)
    record_property("seconds until a replaced pod with a volume is ready", round(time.monotonic() - begun, 1))
    assert (found(first), found(address_of(by_slot(namespace)[1]))) == (COUNT, 0)
    kube.apply(cache(namespace, storageClassName=namespace))
    eventually(lambda: claims(namespace) == ["cache-0-extstore"], ROLLOUT, "the claim of the removed slot is deleted")
    kubectl("delete", "memcached", "cache", "-n", namespace)
    eventually(lambda: not claims(namespace), ROLLOUT, "all claims are deleted")


def test_items_on_the_disk_of_the_node_are_kept_while_their_age_and_memory_change(namespace: str) -> None:
    kube.apply(cache(namespace, volume="EmptyDir", itemAge="24h"))
    wait_until_ready(namespace)
    (pod,) = pods_of(namespace)
    store(address_of(pod))
    assert statistic(address_of(pod), "extstore_objects_written") == 0
    kube.apply(cache(namespace, volume="EmptyDir"))
    wait_until_moved(address_of(pod))
    kube.apply(cache(namespace, volume="EmptyDir", memory="80Mi"))
    wait_until_ready(namespace)
    eventually(lambda: statistic(address_of(pod), "limit_maxbytes") == 80 * 2**20, ROLLOUT, "memcached has more memory")
    assert found(address_of(pod)) == COUNT
    assert [each["metadata"]["uid"] for each in pods_of(namespace)] == [pod["metadata"]["uid"]]


def test_memcached_does_not_serve_from_a_disk_that_refuses_writes(
    namespace: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """The volume is an ext4 file system, which the kernel makes read-only after an error."""
    with file_systems.device(tmp_path / "image", GIB) as device, storage(namespace, device):
        kube.apply(cache(namespace, storageClassName=namespace))
        wait_until_ready(namespace)
        (pod,) = pods_of(namespace)
        fill(address_of(pod))
        file_systems.fail(device)
        begun = time.monotonic()
        eventually(lambda: not serves(pod), STOPPED, "memcached has ended")
        record_property("seconds until memcached has ended", round(time.monotonic() - begun, 1))
        said = "its log says why memcached cannot use the disk of spec.cache.extstore"
        eventually(lambda: said in str(conditions(namespace)["Degraded"]), ROLLOUT, "the status names the disk")
        kube.apply(disks.volume(f"{namespace}-other", namespace, tmp_path))
        kubectl("delete", "pod", pod["metadata"]["name"], "-n", namespace)
        wait_until_ready(namespace)
        kubectl("delete", "persistentvolume", f"{namespace}-other", "--wait=false")


def serves(pod: Object) -> bool:
    """Whether memcached replies."""
    try:
        return send_commands(address_of(pod), 11211, b"version").startswith(b"VERSION")
    except OSError:
        return False


def quota(namespace: str, storage: str) -> Object:
    """A ResourceQuota for volumes."""
    meta, hard = {"name": "small", "namespace": namespace}, {"requests.storage": storage}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": hard}}


def wait_until_reported(namespace: str, *parts: str) -> None:
    """Wait until the status has these parts of a cause and of its remedy."""

    def is_reported() -> bool:
        message = str(conditions(namespace))
        assert all(part in message for part in parts), message
        return True

    eventually(is_reported, REPORTED, " ".join(parts))


@pytest.mark.usefixtures("volumes")
def test_volume_that_cannot_be_claimed_is_named_until_its_remedy_is_applied(namespace: str, tmp_path: Path) -> None:
    """Each cause in turn. The remedies are applied as the messages have them."""
    usable = cache(namespace, storageClassName=namespace)
    kube.apply(quota(namespace, "512Mi"))
    kube.apply(usable)
    wait_until_reported(namespace, "exceeded quota: small", "raise ResourceQuota small, which has an effect")
    kube.apply(quota(namespace, "10Gi"))
    kubectl("delete", "pod", "cache-0", "-n", namespace)  # kube-controller-manager tries again after minutes
    wait_until_ready(namespace)
    missing = f"{namespace}-missing"
    kube.apply(cache(namespace, storageClassName=missing))
    wait_until_reported(
        namespace,
        f'"{missing}" not found',
        f"create StorageClass {missing}, or correct spec.cache.extstore",
    )
    kube.apply(usable)
    wait_until_ready(namespace)
    kube.apply(cache(namespace))
    wait_until_reported(
        namespace, "unbound immediate PersistentVolumeClaims", "Set spec.cache.extstore.storageClassName, or mark a"
    )
    kube.apply(usable)
    wait_until_ready(namespace)
    kubectl("delete", "pod", "cache-0", "-n", namespace)  # whose next claim finds no volume
    wait_until_reported(
        namespace,
        "didn't find available persistent volumes to bind",
        "Correct spec.cache.extstore.storageClassName, or add a volume of this StorageClass",
    )
    kube.apply(disks.volume(f"{namespace}-added", namespace, tmp_path))
    wait_until_ready(namespace)
    kubectl("delete", "persistentvolume", f"{namespace}-added", "--wait=false")
    kube.apply(cache(namespace, memory="9Gi", volume="EmptyDir", size="4Ti"))
    wait_until_reported(
        namespace,
        "Insufficient ephemeral-storage",
        "Lower spec.cache.extstore.size, or set spec.cache.extstore.volume to Claim",
    )
    kube.apply(cache(namespace, volume="EmptyDir"))
    assert wait_until_ready(namespace)["status"]["cache"]["extstore"]["volume"] == "EmptyDir"
