"""Whether the memory of this process suffices for the namespaces that it watches."""

from pathlib import Path
from typing import Final

LIMIT_FILE: Final = Path("/sys/fs/cgroup/memory.max")
"""The memory limit of the container, in bytes or `max` (Linux documentation, "Control Group v2")."""

MIB: Final = 2**20
BASE: Final = 75 * MIB
PER_NAMESPACE: Final = 3 * MIB // 2
"""Bytes that the controller needs without objects, and for each watched namespace, which has 17 connections. Measured:
docs/install-kubectl.md."""


def limit_of_container(path: Path = LIMIT_FILE) -> int | None:
    """The memory limit of the container in bytes; None without a known limit."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def memory_warning(namespaces: int, limit: int | None) -> str:
    """The warning that the limit, in bytes, is too low for a number of watched namespaces; empty if it is not.

    0 namespaces: all are watched together, which needs no more memory for more namespaces.
    """
    needed = BASE + namespaces * PER_NAMESPACE
    if not namespaces or limit is None or needed <= limit:
        return ""
    return (
        f"{namespaces} watched namespaces need about {needed // MIB} MiB of memory, more than the container's limit of "
        f"{limit // MIB} MiB: raise the memory limit of the Deployment memcached-operator-controller-manager, or watch "
        "all namespaces"
    )
