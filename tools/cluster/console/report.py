"""The output of `status` and `info`."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cluster.paths import State
from cluster.plan import Plan
from cluster.run import processes
from cluster.run.supervision import Status

HEADINGS = ("COMPONENT", "STATE", "PID", "UPTIME")


def uptime(started: float | None, now: float) -> str:
    """A duration in its two largest units."""
    if started is None:
        return "-"
    minutes, seconds = divmod(int(now - started), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m"
    return f"{minutes}m{seconds}s" if minutes else f"{seconds}s"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest cell."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def table(found: Sequence[Status], state: State) -> str:
    """A table of the components, with process IDs of this PID namespace."""
    above = processes.supervisor(state.dir)
    now = time.time()
    rows: list[Sequence[str]] = [HEADINGS]
    for each in found:
        pid = str(processes.host_pid(above, each.pid)) if above and each.pid else "-"
        rows.append((each.name, each.state, pid, uptime(each.started if each.pid else None, now)))
    return aligned(rows)


def info(state: State, plan: Plan, bin_dir: Path) -> dict[str, Any]:
    """The cluster's data for tests and the Makefile; null where it does not apply to the mode."""
    node = plan.mode == "node"
    return {
        "name": plan.name,
        "mode": plan.mode,
        "version": plan.version,
        "kubeconfig": str(state.kubeconfig),
        "server": plan.server,
        "audit_log": str(state.audit_log),
        "state_dir": str(state.dir),
        "bin_dir": str(bin_dir),
        "supervisor_pid": processes.supervisor(state.dir),
        "node_name": plan.node_name,
        "node_address": plan.node_address,
        "host_address": plan.host_address if node else plan.node_address,
        "dns_address": plan.node_address if node else None,
        "pod_cidr": plan.pod_cidr,
        "service_cidr": plan.service_cidr,
        "containerd_socket": str(state.containerd_socket) if node else None,
        "link": plan.link if node else None,
        "cgroup": plan.cgroup if node else None,
        "ports": plan.ports,
    }
