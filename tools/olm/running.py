"""Starts OLM on the local cluster. Its processes are components of the cluster and stop with it."""

from cluster.console.progress import Progress
from cluster.errors import ClusterError
from cluster.locks import waiting_for
from cluster.paths import State
from cluster.plan import Plan
from cluster.public.components import Kube, apply, ensure_running, read_components, wait
from cluster.public.lifecycle import READY_SECONDS, current, foreign_kubeconfig, running
from olm import components
from olm.objects import GROUP, as_list, foundation
from olm.programs import INSTALLATION, definitions, programs

STEPS = len(INSTALLATION) + 4


def local_cluster() -> tuple[State, Plan]:
    """The running cluster's files and plan. Raises ClusterError if there is none on which OLM can run."""
    if given := foreign_kubeconfig(current()):
        raise ClusterError(f"KUBECONFIG={given} is not a local cluster of this project: unset it")
    state, plan = running()
    if plan.mode != "node":
        raise ClusterError("OLM installs operators as pods, and this cluster has no real node: see CLUSTER in `--help`")
    return state, plan


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


def registries(state: State) -> dict[str, int]:
    """The ports of the served catalogs, by name."""
    specs = read_components(state)
    return {
        name.removeprefix(components.PREFIX): components.port_of(spec["probe"]["target"])
        for name, spec in specs.items()
        if name.startswith(components.PREFIX)
    }
