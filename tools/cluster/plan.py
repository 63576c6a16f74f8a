"""Names, addresses and ports of a cluster: pure functions of its name and its slot."""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from cluster.errors import ClusterError
from cluster.versions import KUBERNETES

Mode = Literal["node", "control-plane"]
Network = ipaddress.IPv4Network

FIRST_BLOCK = 208
SLOTS = 32
NAME = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?")
PORT_NAMES = ("apiserver", "etcd", "etcd_peer", "controller_manager", "scheduler", "kwok")
NODE_PORTS = {
    "apiserver": 6443,
    "etcd": 2379,
    "etcd_peer": 2380,
    "controller_manager": 10257,
    "scheduler": 10259,
    "kwok": 0,
}


@dataclass(frozen=True)
class Plan:
    """Addresses and ports of one cluster. Each slot has its own /16 for pods, services and the link to the host."""

    name: str
    mode: Mode
    slot: int
    ports: dict[str, int]
    version: str = KUBERNETES
    """Version of Kubernetes."""

    @property
    def block(self) -> str:
        """The first two octets shared by all addresses of this cluster."""
        return f"10.{FIRST_BLOCK + self.slot}"

    @property
    def pod_cidr(self) -> str:
        """Addresses of pods (4,094)."""
        return f"{self.block}.0.0/20"

    @property
    def service_cidr(self) -> str:
        """Addresses of services; the first is the API server's."""
        return f"{self.block}.128.0/20"

    @property
    def host_address(self) -> str:
        """The host's end of the link."""
        return f"{self.block}.255.1"

    @property
    def node_address(self) -> str:
        """The cluster's end of the link: API server, cluster DNS and node ports; loopback without a node."""
        return f"{self.block}.255.2" if self.mode == "node" else "127.0.0.1"

    @property
    def link(self) -> str:
        """The host's end of the veth pair (interface names have at most 15 characters)."""
        return f"mcop{self.slot}"

    @property
    def node_name(self) -> str:
        """The only node."""
        return f"{self.name}-node"

    @property
    def cgroup(self) -> str:
        """The control group under which the kubelet keeps its pods, relative to the hierarchy's root."""
        return control_group(self.name)

    @property
    def server(self) -> str:
        """Address of the API server."""
        return f"https://{self.node_address}:{self.ports['apiserver']}"

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON; `Plan(**…)` restores it."""
        return asdict(self)


def control_group(name: str) -> str:
    """The name of a cluster's control group, below the root of each hierarchy."""
    return f"{name}.cluster"


def check_name(name: str) -> str:
    """Return the name if it is valid in host names, paths and control groups; else raise ClusterError."""
    if not NAME.fullmatch(name):
        raise ClusterError(
            f"CLUSTER_NAME={name!r} must be lower-case letters, digits and dashes, at most 40 characters"
        )
    return name


def overlaps(slot: int, used: Iterable[Network]) -> bool:
    """Tell whether a slot's addresses are in use by anything on this host."""
    block = Network(f"10.{FIRST_BLOCK + slot}.0.0/16")
    return any(block.overlaps(network) for network in used)


def free_slot(taken: Iterable[int], used: Iterable[Network]) -> int:
    """The first slot that no other cluster and no route of the host uses."""
    occupied, networks = set(taken), list(used)
    for slot in range(SLOTS):
        if slot not in occupied and not overlaps(slot, networks):
            return slot
    raise ClusterError(
        f"all {SLOTS} address ranges from 10.{FIRST_BLOCK}.0.0/16 on are in use: end another cluster first"
    )
