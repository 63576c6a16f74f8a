"""Node mode: a private view of the few host paths that Kubernetes and containerd insist on writing to."""

from pathlib import Path

from cluster.paths import State
from cluster.shell import run

OWN_DIRECTORIES = ("/var/log", "/var/lib/cni", "/var/lib/kubelet")
"""Shown to the cluster from its own state directory."""


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


def missing_directories() -> list[str]:
    """The mount points that this host lacks; made by `up`, taken away by `down`."""
    return [place for place in OWN_DIRECTORIES if not Path(place).is_dir()]
