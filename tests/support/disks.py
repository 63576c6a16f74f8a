"""Disks for items: StorageClasses and volumes of the node."""

from pathlib import Path
from typing import Final

from support import kube
from support.kube import Object

HOSTNAME: Final = "kubernetes.io/hostname"


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
