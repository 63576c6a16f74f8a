"""`down`: stops the cluster and removes everything it created, also after a crash."""

import contextlib
import os
import shutil
import time
from pathlib import Path

from cluster import record
from cluster.errors import ClusterError
from cluster.locks import at_once
from cluster.node import cgroups, network
from cluster.plan import control_group
from cluster.run import processes
from cluster.shell import run

LINK_SECONDS = 10.0


def down(name: str) -> bool:
    """Stop the cluster; returns whether it existed. Raises ClusterError if something cannot be removed."""
    state = record.state_of(name)
    with at_once(f"cluster-{name}"):
        existed = state.dir.exists() or bool(processes.of_cluster(state.dir))
        remove(name)
    return existed


def remove(name: str) -> None:
    """Kill the processes first: the kernel then removes mounts, namespaces, iptables rules and routes."""
    state = record.state_of(name)
    plan = record.read(state)
    processes.end_all(state.dir)
    if os.geteuid() == 0:
        remove_control_groups(control_group(name))
    if plan and plan.mode == "node":
        remove_link(plan.link)
    remove_tree(state.dir)


def remove_control_groups(group: str) -> None:
    """Remove a cluster's control groups and the processes in them, by name: its files are not needed."""
    processes.kill(cgroups.processes(group))
    cgroups.remove(group)


def remove_link(name: str) -> None:
    """Delete the host's end of the link; the kernel may be doing so already."""
    deadline = time.monotonic() + LINK_SECONDS
    while network.link_exists(name):
        with contextlib.suppress(ClusterError):
            run(["ip", "link", "delete", name])
        if time.monotonic() > deadline:
            raise ClusterError(f"the network interface {name} cannot be removed: see `ip link show {name}`")
        time.sleep(0.05)


def remove_tree(folder: Path) -> None:
    """Delete the state directory; retried while the kernel removes its mounts."""
    if not folder.exists():
        return
    deadline = time.monotonic() + LINK_SECONDS
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=time.monotonic() < deadline)
        time.sleep(0.02 if folder.exists() else 0)
