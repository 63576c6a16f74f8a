"""Node mode: private mounts over the host paths to which Kubernetes and containerd always write."""

import shutil
from pathlib import Path

from cluster.errors import ClusterError
from cluster.paths import State
from cluster.shell import run, succeeds

OWN_DIRECTORIES = ("/var/log", "/var/lib")
"""Replaced by directories of the cluster's state: /var/log/pods, /var/lib/kubelet and /var/lib/cni are hard-coded."""


def can_isolate() -> bool:
    """Tell whether this machine lets its root create the namespaces of a node, which containers often forbid."""
    unshare = shutil.which("unshare")
    return not unshare or succeeds([unshare, "--mount", "--net", "--pid", "--fork", "true"])


def mounts(state: State) -> list[list[str]]:
    """The mount commands for the new mount namespace, in order."""
    binds = [["mount", "--bind", str(private(state, place)), place] for place in OWN_DIRECTORIES]
    return [
        ["mount", "--make-rshared", "/"],
        ["mount", "-t", "proc", "proc", "/proc"],
        ["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run"],
        *binds,
    ]


def private(state: State, place: str) -> Path:
    """The directory that is mounted over a host's directory."""
    return state.dir / "root" / place.lstrip("/")


def isolate(state: State) -> None:
    """Mount; the calling process must be the only one in new PID, mount and network namespaces."""
    for place in OWN_DIRECTORIES:
        private(state, place).mkdir(parents=True, exist_ok=True)
    for command in mounts(state):
        run(command)
    run(["ip", "link", "set", "lo", "up"])
    # Only in the new network namespace: it forwards traffic to the pods.
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


def check(places: list[Path]) -> None:
    """Raise ClusterError if a mount would hide a path that the cluster needs."""
    for place in places:
        if any(place.is_relative_to(own) for own in (*OWN_DIRECTORIES, "/run")):
            raise ClusterError(f"{place} is hidden from the cluster: choose another place (HOME, XDG_CACHE_HOME, …)")
