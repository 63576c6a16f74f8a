"""Disks for items: file systems in images, StorageClasses and volumes of the node."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from cluster.public.programs import find, install
from support import kube, programs
from support.kube import Object

HOSTNAME: Final = "kubernetes.io/hostname"


@contextmanager
def file_system(image: Path, directory: Path, size: int) -> Generator[None]:
    """An ext4 file system of `size` bytes in an image, mounted during the block.

    Without blocks for root, as drivers of volumes make it. After an error, the kernel makes it read-only.
    """
    install([] if find("mkfs.ext4") else ["e2fsprogs"])
    directory.mkdir(parents=True, exist_ok=True)
    with image.open("wb") as file:
        file.truncate(size)
    programs.output(["mkfs.ext4", "-q", "-m0", image])
    programs.output(["mount", "-o", "loop,errors=remount-ro", image, directory])
    try:
        yield
    finally:
        programs.output(["umount", "--lazy", directory])


def fail(directory: Path) -> None:
    """Let the kernel report an error of the file system. It has a switch for tests of programs."""
    number = directory.stat().st_dev
    device = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve().name
    Path(f"/sys/fs/ext4/{device}/trigger_fs_error").write_text("a test\n")


def storage_class(name: str) -> Object:
    """A class of volumes that are bound when a pod needs them, and that nobody provisions."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def volume(name: str, class_name: str, directory: Path, size: str = "1Gi") -> Object:
    """A volume of the class on the only node."""
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
            "local": {"path": str(directory)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        },
    }
