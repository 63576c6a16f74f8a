"""The control group of a cluster's pods, in every hierarchy (cgroup v1) or in the unified one (v2)."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from cluster.errors import ClusterError

ROOT = Path("/sys/fs/cgroup")
REMOVE_SECONDS = 10.0
CONTROLLERS = ("cpu", "cpuset", "io", "memory", "pids", "hugetlb")
"""The controllers that a kubelet requires."""


def is_v2(root: Path = ROOT) -> bool:
    """Tell whether the unified hierarchy is the only one."""
    return (root / "cgroup.controllers").exists()


def hierarchies(root: Path = ROOT) -> list[Path]:
    """The root of every mounted hierarchy."""
    if is_v2(root):
        return [root]
    folders = root.iterdir() if root.exists() else ()
    # cpu and cpuacct may be two links to one hierarchy.
    return sorted({path.resolve() for path in folders if (path / "cgroup.procs").exists()})


def create(name: str, root: Path = ROOT) -> None:
    """Make the control group everywhere, with all controllers (v2) and the parent's CPUs (v1 cpuset)."""
    for hierarchy in hierarchies(root):
        group = hierarchy / name
        group.mkdir(exist_ok=True)
        if (hierarchy / "cgroup.controllers").exists():
            delegate(hierarchy)
            delegate(group)
        for file in ("cpuset.cpus", "cpuset.mems"):
            copy_if_empty(hierarchy / file, group / file)


def delegate(group: Path) -> None:
    """Enable the controllers of a v2 group for its children."""
    available = (group / "cgroup.controllers").read_text().split()
    wanted = " ".join(f"+{name}" for name in available if name in CONTROLLERS)
    try:
        (group / "cgroup.subtree_control").write_text(wanted)
    except OSError as error:
        hint = "set CLUSTER=control-plane to run without containers"
        raise ClusterError(f"cgroup controllers cannot be used below {group} ({error.strerror}): {hint}") from error


def copy_if_empty(source: Path, target: Path) -> None:
    """A v1 cpuset group is unusable until both its files are set."""
    if source.exists() and target.exists() and not target.read_text().strip():
        target.write_text(source.read_text())


def groups(name: str, root: Path = ROOT) -> Iterator[Path]:
    """All groups of a cluster, children before their parents."""
    for hierarchy in hierarchies(root):
        for folder, _, _ in os.walk(hierarchy / name, topdown=False):
            yield Path(folder)


def processes(name: str, root: Path = ROOT) -> list[int]:
    """Process IDs in all groups of a cluster."""
    found: set[int] = set()
    for group in groups(name, root):
        with contextlib.suppress(OSError):
            found.update(int(line) for line in (group / "cgroup.procs").read_text().split())
    return sorted(found)


def remove(name: str, root: Path = ROOT) -> None:
    """Remove the groups; raises ClusterError if one is still in use after REMOVE_SECONDS."""
    deadline = time.monotonic() + REMOVE_SECONDS
    while left := [group for group in groups(name, root) if not removed(group)]:
        if time.monotonic() > deadline:
            raise ClusterError(f"the control group {left[0]} is still in use")
        time.sleep(0.05)


def removed(group: Path) -> bool:
    """Try to remove a group; returns whether it no longer exists."""
    try:
        group.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
