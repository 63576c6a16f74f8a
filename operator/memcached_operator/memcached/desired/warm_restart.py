"""The parts of a pod whose memcached keeps its items over a restart: they are in a file in a volume in memory.

memcached writes what it needs to find them again when it gets SIGUSR1, which the agent sends. It must be stopped for at
least a second, because its clock has whole seconds, and the file is used only with the same `-m` and `-I`.
"""

from collections.abc import Iterable
from typing import Final

from memcached_api.annotations import ARGS_ANNOTATION
from memcached_api.memcached.memory import megabytes
from memcached_api.memcached.resolved import resolved
from memcached_api.memcached.types import MemcachedSpec
from memcached_api.quantity import canonical
from memcached_operator.kube.resource import Object
from memcached_operator.parts.agent import MOUNT_PATH, VOLUME

CACHE_VOLUME: Final = "cache"
CACHE_PATH: Final = "/cache"
ITEMS: Final = f"{CACHE_PATH}/items"
PROCESS_ID: Final = f"{CACHE_PATH}/memcached.pid"
META: Final = f"{ITEMS}.meta"
"""The file that memcached writes when it stops, and reads and removes at its next start."""
ARGS_FILE: Final = "args"

VOLUME_MARGIN: Final = 16
"""MiB of the volume besides the items: only a limit, of which little is used."""

MISSING: Final = (
    f"{MOUNT_PATH}/{ARGS_FILE} is missing or empty, so that memcached is not started: restore the annotation "
    f"{ARGS_ANNOTATION} of the pod, or delete the pod"
)
CUT: Final = f"{META} is incomplete: memcached starts without its items"

SCRIPT: Final = f"""set -f
trap exit TERM USR1
echo $$$$ > {PROCESS_ID}
args=
read -r args < {MOUNT_PATH}/{ARGS_FILE}
[ "$args" ] || {{ echo "{MISSING}" >&2; exit 1; }}
if [ -e {META} ]; then
  last=
  {{ read -r first && while read -r last; do :; done; }} < {META} || first=
  case "$first:$last" in T*:) ;; *) echo "{CUT}" >&2; rm {META} ;; esac
fi
[ ! -e {ITEMS} ] || sleep 2
exec memcached "$@" $args"""
"""Runs memcached with the arguments of the container, then with those in the file. For `sh` of busybox, dash and bash.

Without globs (-f), because `*` is an address. A stop before memcached starts ends the shell, which would ignore it as
process 1. memcached replaces the shell, and keeps its process ID. Kubernetes makes `$$` of `$$$$`.

memcached aborts at each start if {META} does not begin with `T` (a tag) or is cut within a line. `read` leaves a last
line without its end in the variable. A file that is cut between two lines makes memcached start without its items.
"""

STOP: Final = (
    f'read -r pid < {PROCESS_ID} && read -r name < /proc/$pid/comm && [ "$name" = memcached ] && '
    "kill -USR1 $pid && sleep 20"
)
"""The command before the container is stopped. It ends with memcached. The file can be one of an earlier process, whose
ID another one of the pod has now."""


def command(fixed: Iterable[str]) -> list[str]:
    """The command of memcached's container. `fixed`: the arguments that never change while the pod runs."""
    return ["sh", "-c", SCRIPT, "memcached", *fixed, "-e", ITEMS]


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
    size = canonical(f"{megabytes(resolved(spec).memory) + VOLUME_MARGIN}Mi")
    return {"name": CACHE_VOLUME, "emptyDir": {"medium": "Memory", "sizeLimit": size}}


def args_item() -> Object:
    """The item of the volume with the arguments."""
    path = f"metadata.annotations['{ARGS_ANNOTATION}']"
    return {"path": ARGS_FILE, "fieldRef": {"apiVersion": "v1", "fieldPath": path}}


def args(arguments: Iterable[str]) -> str:
    """The value of ARGS_ANNOTATION: the arguments, separated by spaces. None of them contains a space."""
    return " ".join(arguments)


def agent_options() -> list[str]:
    """The options of the agent that restarts memcached when these arguments change."""
    return [f"--arguments-file={MOUNT_PATH}/{ARGS_FILE}", f"--items-file={ITEMS}"]
