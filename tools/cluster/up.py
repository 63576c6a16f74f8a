"""`up`: build missing programs, start stopped components, wait until the cluster is ready."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cluster import record
from cluster.binaries import packages
from cluster.binaries.builds import build_programs, ensure_built
from cluster.binaries.families import PAUSE_FAMILY, wanted
from cluster.console.progress import Progress
from cluster.down import remove
from cluster.errors import ClusterError
from cluster.images.store import cluster_archive, ensure_archives, import_archive, packed
from cluster.locks import waiting_for
from cluster.node import cgroups, isolation, network
from cluster.paths import TOOLS, State, cache_dir
from cluster.plan import Mode, Plan
from cluster.run import files, supervision
from cluster.run.components import components
from cluster.run.kube import Kube, can_create_pods, ensure_node, node_ready, wait
from cluster.run.supervision import READY_SECONDS

IMAGES_MARK = "images-loaded"


def steps(mode: Mode, version: str) -> int:
    """Number of steps of `up`: packages, builds, images, supervisor, components, ready."""
    return len(wanted(mode, version)) + (13 if mode == "node" else 7)


def up(name: str, mode: Mode, version: str, progress: Progress) -> State:
    """Start the cluster; returns its files. Raises ClusterError with a remedy."""
    state = record.state_of(name)
    with waiting_for(f"cluster-{name}"):
        known = record.read(state)
        if known and (known.mode, known.version) != (mode, version):
            raise ClusterError(f"{name!r} runs in {known.mode} mode with {known.version}: end it with `down` first")
        programs = prepare(mode, version, progress)
        plan = ensure_supervisor(name, mode, version, state, progress)
        own = components(plan, state, files.node_programs(programs))
        files.write_components(own, state)
        start_components(plan, state, [each.name for each in own], progress)
        finish(plan, state, progress)
    return state


def prepare(mode: Mode, version: str, progress: Progress) -> Path:
    """Packages, programs and images; the images are built while the compiler runs. Returns the programs' directory."""
    if mode == "control-plane":
        return build_programs(wanted(mode, version), progress)
    with progress.step("system packages") as notes:
        names = packages.missing_node_packages()
        packages.install(names)
        notes.append(f"installed {' '.join(names)}" if names else "present")
    with ThreadPoolExecutor(1) as pool:
        packed = pool.submit(pack_images)
        folder = build_programs(wanted(mode), progress)
        with progress.step("images") as notes:
            notes.append("packed" if packed.result() else "cached")
    return folder


def pack_images() -> bool:
    """Pack missing images; returns whether any were missing. Requires the pause program."""
    if packed():
        return False
    ensure_built(PAUSE_FAMILY, ["pause"])
    ensure_archives()
    return True


def ensure_supervisor(name: str, mode: Mode, version: str, state: State, progress: Progress) -> Plan:
    """Return the running cluster's plan, or start a new supervisor with a new plan."""
    with progress.step("supervisor and network") as notes:
        plan = record.read(state)
        if plan and supervision.answering(state):
            notes.append("running")
            return plan
        if state.dir.exists():
            remove(name)
            notes.append("leftovers of an earlier cluster removed")
        with waiting_for("slots"):
            plan = record.make_plan(name, mode, version)
            record.write(state, plan)
        begin(plan, state)
        return plan


def begin(plan: Plan, state: State) -> None:
    """Write the files, start the supervisor and, for a node, connect its network."""
    files.write_configuration(plan, state)
    files.write_secrets(plan, state)
    state.components_file.write_text("{}")
    if plan.mode == "control-plane":
        supervision.launch(state, plan.mode)
        return
    isolation.check([state.dir, cache_dir(), TOOLS, Path(sys.executable)])
    cgroups.create(plan.cgroup)
    pid = supervision.launch(state, plan.mode)
    network.join(plan, pid)


def start_components(plan: Plan, state: State, names: list[str], progress: Progress) -> None:
    """Start each component when those before it are ready; report components that exited."""
    for each in (supervision.status(state, name) for name in names):
        with progress.step(f"start {each.name}") as notes:
            if each.pid:
                notes.append("running")
            else:
                start_one(state, each, progress)
            supervision.wait_ready(state, each.name, READY_SECONDS)
            if each.name == "apiserver":
                files.write_kubeconfigs(plan, state)


def start_one(state: State, before: supervision.Status, progress: Progress) -> None:
    """Start a component; if it exited before, show the end of its log."""
    if before.started:
        progress.say(f"{before.name} was {before.state}; its log ends with:")
        progress.say(supervision.log_tail(state.log(before.name)))
    supervision.ask(state, "start", before.name)


def finish(plan: Plan, state: State, progress: Progress) -> None:
    """Load images, or create the simulated node, and wait until pods can run."""
    kube = Kube(state.kubeconfig)
    if plan.mode == "node":
        with progress.step("load images") as notes:
            notes.append(load_images(state))
    with progress.step("node ready"):
        if plan.mode == "control-plane":
            wait("the node exists", lambda: ensure_node(kube, plan), READY_SECONDS)
        wait("the node is Ready", lambda: node_ready(kube, plan.node_name), READY_SECONDS)
        wait("the namespace default has its ServiceAccount", lambda: can_create_pods(kube), READY_SECONDS)


def load_images(state: State) -> str:
    """Load the stand-in images once for each cluster."""
    mark = state.dir / IMAGES_MARK
    archive = cluster_archive()
    if mark.exists() and mark.read_text() == archive.name:
        return "loaded before"
    names = import_archive(state.containerd_socket, archive)
    mark.write_text(archive.name)
    return f"{len(names)} loaded"


def foreign_kubeconfig(state: State) -> str | None:
    """The user's own KUBECONFIG, unless it is this cluster's."""
    given = os.environ.get("KUBECONFIG")
    return given if given and given != str(state.kubeconfig) else None
