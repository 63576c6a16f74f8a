"""The plan of each cluster on disk, from which `down` finds everything to remove."""

import json
import os
import random
import socket
import sys
from collections.abc import Iterable, Mapping

from cluster.errors import ClusterError
from cluster.node.isolation import can_isolate
from cluster.node.network import used_networks
from cluster.paths import PRODUCT, State, state_root
from cluster.plan import NODE_PORTS, PORT_NAMES, Mode, Network, Plan, check_name, free_slot
from cluster.versions import KUBERNETES, SUPPORTED

LONGEST_STATE_DIR = 80
"""Paths of socket files are limited to 107 characters by the kernel."""

PORTS = range(12000, 20000)
"""Loopback ports for the components: below the range from which the kernel takes the ports of outgoing connections,
because several seconds pass until the last component listens."""


def cluster_name(environ: Mapping[str, str] = os.environ) -> str:
    """CLUSTER_NAME; raises ClusterError if it is invalid."""
    return check_name(environ.get("CLUSTER_NAME") or PRODUCT)


def state_of(name: str) -> State:
    """The files of a cluster; raises ClusterError if the path is too long for a socket."""
    folder = state_root() / name
    if len(str(folder)) > LONGEST_STATE_DIR:
        raise ClusterError(f"{folder} is too long a path: set XDG_STATE_HOME to a shorter one")
    return State(folder)


def choose_mode(environ: Mapping[str, str] = os.environ) -> Mode:
    """`node` if this machine supports it, else `control-plane`.

    Raises ClusterError if CLUSTER is invalid, or on another system than Linux.
    """
    if sys.platform != "linux":
        raise ClusterError("the local cluster needs Linux: set KUBECONFIG to another cluster")
    asked = environ.get("CLUSTER", "")
    able = os.geteuid() == 0 and can_isolate()
    if asked not in {"", "node", "control-plane"}:
        raise ClusterError(f"CLUSTER={asked!r} must be node or control-plane")
    if asked == "node" and not able:
        raise ClusterError("CLUSTER=node needs root on Linux, and permission to create namespaces: leave CLUSTER unset")
    return "node" if able and asked != "control-plane" else "control-plane"


def choose_version(mode: Mode, environ: Mapping[str, str] = os.environ) -> str:
    """The version of Kubernetes: KUBE_VERSION, with or without its `v`. Raises ClusterError."""
    version = "v" + environ.get("KUBE_VERSION", "").removeprefix("v")
    if version == "v":
        return KUBERNETES
    if version not in SUPPORTED:
        raise ClusterError(f"KUBE_VERSION={version[1:]!r} must be one of {', '.join(each[1:] for each in SUPPORTED)}")
    if mode == "node" and version != KUBERNETES:
        raise ClusterError(f"KUBE_VERSION={version[1:]} has no nodes: set CLUSTER=control-plane, or leave it unset")
    return version


def read(state: State) -> Plan | None:
    """The plan of a cluster, if it was started."""
    try:
        return Plan(**json.loads(state.cluster_file.read_text())["plan"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write(state: State, plan: Plan) -> None:
    """Store a plan."""
    state.dir.mkdir(parents=True, exist_ok=True)
    partial = state.cluster_file.with_suffix(".partial")
    partial.write_text(json.dumps({"plan": plan.to_json()}))
    partial.replace(state.cluster_file)


def make_plan(name: str, mode: Mode, version: str = KUBERNETES) -> Plan:
    """A plan with unused addresses and ports."""
    found = (read(State(path)) for path in state_root().glob("*") if path.name != name)
    others = [plan for plan in found if plan]
    taken = [plan.slot for plan in others]
    used: list[Network] = used_networks() if mode == "node" else []
    ports = dict(NODE_PORTS) if mode == "node" else free_ports(port for plan in others for port in plan.ports.values())
    return Plan(name, mode, free_slot(taken, used), ports, version)


def free_ports(taken: Iterable[int]) -> dict[str, int]:
    """A free loopback port for every component, other than those of other clusters. Raises ClusterError."""
    unused = sorted(set(PORTS).difference(taken))
    free = filter(_is_free, random.SystemRandom().sample(unused, len(unused)))
    found: dict[str, int] = dict(zip(PORT_NAMES, free, strict=False))
    if len(found) < len(PORT_NAMES):
        raise ClusterError(
            f"no free ports on loopback from {PORTS.start} to {PORTS.stop - 1}: end other clusters first"
        )
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as listener:
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
