"""`down`: nothing stays, however the cluster ended."""

import contextlib
import shutil
import time
from pathlib import Path

from cluster import cgroups, network, processes, record
from cluster.errors import ClusterError
from cluster.paths import State
from cluster.plan import Plan
from cluster.shell import run

LINK_SECONDS = 10.0


def down(name: str) -> bool:
    """End the cluster; tells whether there was anything. Raises ClusterError when something cannot be removed."""
    state = record.state_of(name)
    with record.locked(name):
        existed = state.dir.exists() or bool(processes.of_cluster(state.dir))
        remove(name)
    return existed


def remove(name: str) -> None:
    """Processes first: with the last of them go mounts, network namespaces and iptables rules."""
    state = record.state_of(name)
    plan = record.read(state)
    processes.end_all(state.dir)
    if plan and plan.mode == "node":
        remove_node(plan, state)
    remove_tree(state.dir)


def remove_node(plan: Plan, state: State) -> None:
    """What a node leaves on the host: control groups, the link (and with it the routes), mount points."""
    processes.kill(cgroups.processes(plan.cgroup))
    cgroups.remove(plan.cgroup)
    remove_link(plan.link)
    for place in record.made_directories(state):
        with contextlib.suppress(OSError):
            Path(place).rmdir()


def remove_link(name: str) -> None:
    """Delete the host's end of the link; the kernel may be doing so already."""
    deadline = time.monotonic() + LINK_SECONDS
    while network.link_exists(name):
        with contextlib.suppress(ClusterError):
            run(["ip", "link", "delete", name])
        if time.monotonic() > deadline:
            raise ClusterError(f"the network interface {name} does not go away: see `ip link show {name}`")
        time.sleep(0.05)


def remove_tree(folder: Path) -> None:
    """Delete the state directory; a mount that the kernel is still taking down makes it busy for a moment."""
    if not folder.exists():
        return
    deadline = time.monotonic() + LINK_SECONDS
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=time.monotonic() < deadline)
        time.sleep(0.02 if folder.exists() else 0)


