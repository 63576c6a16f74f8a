"""OLM on the local cluster: up, status, down. Its processes are components of the cluster and stop with it."""

import json
from pathlib import Path
from typing import Any

from cluster import record
from cluster.binaries.families import wanted
from cluster.binaries.programs import build_programs
from cluster.cli import running
from cluster.console.progress import Progress
from cluster.errors import ClusterError
from cluster.locks import waiting_for
from cluster.paths import State
from cluster.plan import Plan
from cluster.run import files, supervision
from cluster.run.components import Component
from cluster.run.kube import Kube, wait
from cluster.run.supervision import READY_SECONDS
from cluster.shell import run
from cluster.up import foreign_kubeconfig
from olm import components
from olm.objects import GROUP, as_list, foundation
from olm.programs import INSTALLATION, definitions, programs

STEPS = len(INSTALLATION) + 4


def local_cluster() -> tuple[State, Plan]:
    """The running cluster's files and plan. Raises ClusterError if there is none on which OLM can run."""
    if given := foreign_kubeconfig(record.state_of(record.cluster_name())):
        raise ClusterError(f"KUBECONFIG={given} is not a local cluster of this project: unset it")
    state, plan = running()
    if plan.mode != "node":
        raise ClusterError("OLM installs operators as pods, and this cluster has no real node: see CLUSTER in `--help`")
    return state, plan


def kubectl(state: State, *words: str | Path, stdin: dict[str, Any] | None = None) -> str:
    """Run kubectl as the administrator; raises ClusterError with its output."""
    program = build_programs(wanted(None)) / "kubectl"
    text = None if stdin is None else json.dumps(stdin)
    return run([program, f"--kubeconfig={state.kubeconfig}", *words], stdin=text, timeout=120)


def apply(state: State, *words: str | Path, stdin: dict[str, Any] | None = None) -> None:
    """Server-side apply: OLM's definitions are too large for the annotation of client-side apply."""
    kubectl(state, "apply", "--server-side", "--force-conflicts", *words, stdin=stdin)


def up(progress: Progress) -> None:
    """Start OLM on the local cluster. Safe to repeat; continues after an interruption."""
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
    """Tell whether the API server serves OLM's kinds."""
    kube = Kube(state.kubeconfig)
    kinds = ("v1/olmconfigs", "v1/operatorgroups", "v1alpha1/catalogsources", "v1alpha1/subscriptions")
    return all(kube.request("GET", f"/apis/{GROUP}/{kind}") for kind in kinds)


def ensure_running(state: State, component: Component) -> bool:
    """Start a component, or restart it if its description changed; returns whether it was started."""
    before = files.read_components(state).get(component.name)
    if before != component.to_json():
        if before:
            supervision.ask(state, "stop", component.name)
        files.write_components([component], state)
    started: bool = supervision.ask(state, "start", component.name)["started"]
    supervision.wait_ready(state, component.name, READY_SECONDS)
    return started


def end(state: State, name: str) -> bool:
    """Stop and remove a component; returns whether it existed."""
    if name not in files.read_components(state):
        return False
    supervision.ask(state, "stop", name)
    files.forget_component(name, state)
    return True


def registries(state: State) -> dict[str, int]:
    """The ports of the served catalogs, by name."""
    specs = files.read_components(state)
    return {
        name.removeprefix(components.PREFIX): components.port_of(spec["probe"]["target"])
        for name, spec in specs.items()
        if name.startswith(components.PREFIX)
    }


def statuses(state: State) -> list[supervision.Status]:
    """OLM's components."""
    return [each for each in supervision.statuses(state) if each.name.startswith("olm-")]
