"""The parts of a pod with items on a disk: a volume that lives as long as the pod, and the arguments for its file.

memcached truncates the file at every start, so a volume that outlives its pod would keep nothing, and bind the slot to
its node. kube-controller-manager creates and deletes the claim.
"""

from typing import Final

from memcached_api.memcached import extstore
from memcached_api.memcached.resolved import resolved
from memcached_api.memcached.types import MemcachedSpec
from memcached_api.quantity import canonical
from memcached_operator.kube.resource import Object

VOLUME: Final = "extstore"
PATH: Final = "/extstore"
FILE: Final = f"{PATH}/items"

SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"

AGENT_OPTIONS: Final = (f"--extstore-volume={PATH}",)
"""The options of the agent that watches the disk."""

MOUNT: Final[Object] = {"name": VOLUME, "mountPath": PATH}
"""The mount in memcached's and in the agent's container."""


def arguments(spec: MemcachedSpec) -> list[str]:
    """The arguments of memcached; none without a disk."""
    disk = spec.cache.extstore
    return [] if disk is None else ["-o", extstore.options(disk, FILE, resolved(spec).item_size)]


def item_age(disk: extstore.Extstore) -> str:
    """The value of ITEM_AGE_ANNOTATION."""
    age = extstore.age_seconds(disk.item_age)
    return str(extstore.NEVER if age is None else age)


def without_age(words: list[str]) -> list[str]:
    """A command line without the age of items, which the agent can change."""
    return [_without_age(word) if word.startswith(extstore.PATH_OPTION) else word for word in words]


def _without_age(options: str) -> str:
    return ",".join(each for each in options.split(",") if not each.startswith(extstore.AGE_OPTION))


def annotations(spec: MemcachedSpec) -> dict[str, str]:
    """The annotations of the pods: without this one, cluster-autoscaler keeps each node with such a directory."""
    disk = spec.cache.extstore
    return {SAFE_TO_EVICT: VOLUME} if disk is not None and disk.volume == extstore.EMPTY_DIR else {}


def volume(disk: extstore.Extstore, labels: dict[str, str]) -> Object:
    """The volume. `labels`: those of the claim."""
    size = canonical(disk.size)
    if disk.volume == extstore.EMPTY_DIR:
        return {"name": VOLUME, "emptyDir": {"sizeLimit": size}}
    chosen = {} if disk.storage_class_name is None else {"storageClassName": disk.storage_class_name}
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": size}},
        **chosen,
        "volumeMode": "Filesystem",
    }
    return {"name": VOLUME, "ephemeral": {"volumeClaimTemplate": {"metadata": {"labels": labels}, "spec": claim}}}
