"""Node mode: a private view of the few host paths that Kubernetes and containerd insist on writing to."""

from pathlib import Path

from cluster.errors import ClusterError
from cluster.paths import State
from cluster.shell import run

OWN_DIRECTORIES = ("/var/log", "/var/lib")
"""Shown to the cluster from its own state directory: /var/log/pods, /var/lib/kubelet and /var/lib/cni are wired in."""


def mounts(state: State) -> list[list[str]]:
    """The mounts made first thing in the new mount namespace, in this order."""
    binds = [["mount", "--bind", str(private(state, place)), place] for place in OWN_DIRECTORIES]
    return [
        ["mount", "--make-rshared", "/"],
        ["mount", "-t", "proc", "proc", "/proc"],
        ["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run"],
        *binds,
    ]


def private(state: State, place: str) -> Path:
    """What stands in for a host's directory."""
    return state.dir / "root" / place.lstrip("/")


def isolate(state: State) -> None:
    """Mount; the calling process must be alone in new PID, mount and network namespaces."""
    for place in OWN_DIRECTORIES:
        private(state, place).mkdir(parents=True, exist_ok=True)
    for command in mounts(state):
        run(command)
    run(["ip", "link", "set", "lo", "up"])
    # Of the new network namespace only: pods are reached through it.
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


def check(places: list[Path]) -> None:
    """Raise ClusterError if the cluster would lose sight of something it needs."""
    for place in places:
        if any(place.is_relative_to(own) for own in (*OWN_DIRECTORIES, "/run")):
            raise ClusterError(f"{place} is hidden from the cluster: choose another place (HOME, XDG_CACHE_HOME, …)")
