"""OLM on the local cluster: up, status, down. Its programs are components of the cluster and end with it."""

import json
from pathlib import Path
from typing import Any

from cluster import files, record, supervision
from cluster.cli import running
from cluster.components import Component
from cluster.errors import ClusterError
from cluster.families import wanted
from cluster.kube import Kube, wait
from cluster.locks import waiting_for
from cluster.paths import State
from cluster.plan import Plan
from cluster.programs import build_programs
from cluster.progress import Progress
from cluster.shell import run
from cluster.supervision import READY_SECONDS
from cluster.up import foreign_kubeconfig
from olm import components
from olm.objects import GROUP, as_list, foundation
from olm.programs import INSTALLATION, definitions, programs

STEPS = len(INSTALLATION) + 4


def local_cluster() -> tuple[State, Plan]:
    """The running cluster's files and plan. Raises ClusterError where there is none that OLM can be put on."""
    if given := foreign_kubeconfig(record.state_of(record.cluster_name())):
        raise ClusterError(f"KUBECONFIG={given} is not a cluster of ours: unset it, or install OLM there as it says")
    state, plan = running()
    if plan.mode != "node":
        raise ClusterError("OLM installs operators as pods, and this cluster has no real node: see CLUSTER in `--help`")
    return state, plan


def kubectl(state: State, *words: str | Path, stdin: dict[str, Any] | None = None) -> str:
    """Run kubectl as the administrator; raises ClusterError with what it said."""
    program = build_programs(wanted(None)) / "kubectl"
    text = None if stdin is None else json.dumps(stdin)
    return run([program, f"--kubeconfig={state.kubeconfig}", *words], stdin=text, timeout=120)


def apply(state: State, *words: str | Path, stdin: dict[str, Any] | None = None) -> None:
    """Apply on the server's side: OLM's definitions are too large for the annotation of a client's."""
    kubectl(state, "apply", "--server-side", "--force-conflicts", *words, stdin=stdin)


def up(progress: Progress) -> None:
    """Have OLM run on the local cluster. Can be run at any time; continues where it was interrupted."""
    state, plan = local_cluster()
    folder = programs(INSTALLATION, progress)
    with waiting_for(f"cluster-{plan.name}"):
        with progress.step("definitions"):
            apply(state, "-f", definitions())
            wait("OLM's kinds are served", lambda: served(state), READY_SECONDS)
        with progress.step("namespaces and groups"):
            apply(state, "-f", "-", stdin=as_list(foundation()))
        for each in (components.olm(state, folder), components.catalog(state, folder)):
            with progress.step(f"start {each.name}") as notes:
                notes.append("started" if ensure_running(state, each) else "running")


def served(state: State) -> bool:
    """Tell whether the API server knows OLM's kinds."""
    kube = Kube(state.kubeconfig)
    kinds = ("v1/olmconfigs", "v1/operatorgroups", "v1alpha1/catalogsources", "v1alpha1/subscriptions")
    return all(kube.request("GET", f"/apis/{GROUP}/{kind}") for kind in kinds)


def ensure_running(state: State, component: Component) -> bool:
    """Have a component run as described now, and ready; tells whether it had to be started."""
    before = files.read_components(state).get(component.name)
    if before != component.to_json():
        if before:
            supervision.ask(state, "stop", component.name)
        files.write_components([component], state)
    started: bool = supervision.ask(state, "start", component.name)["started"]
    supervision.wait_ready(state, component.name, READY_SECONDS)
    return started


def end(state: State, name: str) -> bool:
    """Stop a component and forget it; tells whether it was there."""
    if name not in files.read_components(state):
        return False
    supervision.ask(state, "stop", name)
    files.forget_component(name, state)
    return True


def registries(state: State) -> dict[str, int]:
    """The catalogues that are served, and on which port."""
    specs = files.read_components(state)
    return {
        name.removeprefix(components.PREFIX): components.port_of(spec["probe"]["target"])
        for name, spec in specs.items()
        if name.startswith(components.PREFIX)
    }


def statuses(state: State) -> list[supervision.Status]:
    """OLM's components."""
    return [each for each in supervision.statuses(state) if each.name.startswith("olm-")]
