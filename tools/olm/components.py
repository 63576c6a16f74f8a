"""OLM's processes as components of the local cluster."""

from collections.abc import Iterable
from pathlib import Path

from cluster.paths import State
from cluster.plan import Plan
from cluster.public.components import Component

NAMESPACE = "olm"
"""The namespace of catalogs that are available in the whole cluster."""
PREFIX = "olm-registry-"
FIRST_PORT = 25051
"""Below the node ports and the kernel's ephemeral ports; opm's default is 50051."""


def olm(state: State, programs: Path) -> Component:
    """OLM's operator, which installs ClusterServiceVersions."""
    argv = [str(programs / "olm"), "--namespace", NAMESPACE, "--writeStatusName", ""]
    env = {"KUBECONFIG": str(state.kubeconfig), "OPERATOR_NAMESPACE": NAMESPACE, "OPERATOR_NAME": "olm-operator"}
    return Component("olm-operator", argv, {"kind": "http", "target": "http://127.0.0.1:8080/healthz"}, env)


def catalog(state: State, programs: Path) -> Component:
    """OLM's catalog operator, which creates InstallPlans. With TLS, its probe has a different port."""
    argv = [
        str(programs / "catalog"),
        f"--kubeconfig={state.kubeconfig}",
        f"--namespace={NAMESPACE}",
        f"--tls-cert={state.certificates}/apiserver.crt",
        f"--tls-key={state.certificates}/apiserver.key",
    ]
    return Component("olm-catalog", argv, {"kind": "http", "target": "https://127.0.0.1:8443/healthz"})


def registry(plan: Plan, state: State, programs: Path, name: str, port: int) -> Component:
    """`opm serve` for one catalog."""
    content = catalog_directory(state, name)
    argv = [
        str(programs / "opm"),
        "serve",
        str(content),
        f"--port={port}",
        "--pprof-addr=",
        f"--termination-log={state.log(PREFIX + name).with_suffix('.end')}",
    ]
    return Component(PREFIX + name, argv, {"kind": "tcp", "target": f"{plan.node_address}:{port}"})


def catalog_directory(state: State, name: str) -> Path:
    """The copy of a catalog that is served."""
    return state.dir / "catalogs" / name


def port_of(target: str) -> int:
    """The port in a component's HOST:PORT."""
    return int(target.rpartition(":")[2])


def free_port(used: Iterable[int]) -> int:
    """The first unused port for a registry."""
    taken = set(used)
    port = FIRST_PORT
    while port in taken:
        port += 1
    return port
