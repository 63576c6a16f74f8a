"""Disks for items: devices in images, StorageClasses and volumes of the node."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from cluster.public.programs import find, install
from support import kube, programs
from support.kube import Object

HOSTNAME: Final = "kubernetes.io/hostname"


@contextmanager
def device(image: Path, size: int) -> Generator[Path]:
    """A block device of `size` bytes in an image during the block."""
    install([] if find("mkfs.ext4") else ["e2fsprogs"])
    with image.open("wb") as file:
        file.truncate(size)
    found = Path(programs.output(["losetup", "--find", "--show", image]).strip())
    try:
        yield found
    finally:
        programs.output(["losetup", "--detach", found])


def fail(found: Path) -> None:
    """Let the kernel report an error of the ext4 file system of a device. It has a switch for tests of programs."""
    Path(f"/sys/fs/ext4/{found.name}/trigger_fs_error").write_text("a test\n")


def storage_class(name: str) -> Object:
    """A class without a driver, whose volumes are bound when a pod needs them."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def volume(name: str, class_name: str, path: Path, size: str = "1Gi") -> Object:
    """A volume of the class on the only node: a directory, or a device on which the kubelet makes ext4.

    After an error of a device, the kernel makes the file system read-only.
    """
    on_device: Object = {} if path.is_dir() else {"mountOptions": ["errors=remount-ro"]}
    (node,) = (kube.read("/api/v1/nodes") or {})["items"]
    found = {"key": HOSTNAME, "operator": "In", "values": [node["metadata"]["labels"][HOSTNAME]]}
    terms = [{"matchExpressions": [found]}]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": class_name,
            "local": {"path": str(path)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
            **on_device,
        },
    }
