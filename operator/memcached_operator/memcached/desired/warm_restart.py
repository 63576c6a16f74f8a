"""The parts of a pod whose memcached keeps its items over a restart: they are in a file in a volume in memory.

memcached writes what it needs to find them again when it gets SIGUSR1. It must be stopped for at least a second,
because its clock has whole seconds, and the file is used only with the same `-m` and `-I`.
"""

from collections.abc import Sequence
from typing import Final

from memcached_api.memcached.effective import effective
from memcached_api.memcached.memory import megabytes
from memcached_api.memcached.types import MemcachedSpec
from memcached_api.quantity import canonical
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.desired.agent import MOUNT_PATH, VOLUME

ARGS_ANNOTATION: Final = "memcached-operator.example.com/args"
"""Annotation of a pod: the arguments of memcached, which can change while the pod runs. None contains a space."""

CACHE_VOLUME: Final = "cache"
CACHE_PATH: Final = "/cache"
ITEMS: Final = f"{CACHE_PATH}/items"
PROCESS_ID: Final = f"{CACHE_PATH}/memcached.pid"
ARGS_FILE: Final = "args"

VOLUME_MARGIN: Final = 16
"""MiB of the volume besides the items: only a limit, of which little is used."""

SCRIPT: Final = f"""set -f
trap exit USR1
echo $$$$ > {PROCESS_ID}
[ ! -e {ITEMS} ] || sleep 2
read -r args < {MOUNT_PATH}/{ARGS_FILE}
(while sleep 2; do
  read -r now < {MOUNT_PATH}/{ARGS_FILE}
  [ -z "$now" ] || [ "$now" = "$args" ] || {{ kill -USR1 $$$$; exit; }}
done) &
exec memcached $args"""
"""Runs memcached with the arguments in the file, and stops it when they change, upon which the kubelet starts it again.

Without globs (-f), because `*` is an address. A stop before memcached starts ends the shell: as process 1, it would
ignore the signal otherwise. The process ID of the shell is memcached's, which replaces it. Kubernetes
makes `$$` of `$$$$`.
"""

STOP: Final = f"kill -USR1 $(cat {PROCESS_ID}) && sleep 20"
"""The command before the container is stopped. It ends with memcached."""


def command() -> list[str]:
    """The command of memcached's container."""
    return ["sh", "-c", SCRIPT]


def lifecycle() -> Object:
    """The lifecycle of memcached's container."""
    return {"preStop": {"exec": {"command": ["sh", "-c", STOP]}}}


def mounts() -> list[Object]:
    """The mounts of memcached's container."""
    return [
        {"name": CACHE_VOLUME, "mountPath": CACHE_PATH},
        {"name": VOLUME, "mountPath": MOUNT_PATH, "readOnly": True},
    ]


def volume(spec: MemcachedSpec) -> Object:
    """The volume with the items. Its pages count as memory of the pod."""
    size = canonical(f"{megabytes(effective(spec).memory) + VOLUME_MARGIN}Mi")
    return {"name": CACHE_VOLUME, "emptyDir": {"medium": "Memory", "sizeLimit": size}}


def args_item() -> Object:
    """The item of the volume with the arguments."""
    path = f"metadata.annotations['{ARGS_ANNOTATION}']"
    return {"path": ARGS_FILE, "fieldRef": {"apiVersion": "v1", "fieldPath": path}}


def args(command_line: Sequence[str]) -> str:
    """The value of ARGS_ANNOTATION. `command_line`: with the name of the program."""
    return " ".join([*command_line[1:], "-e", ITEMS])
