"""metrics-server on the local cluster: figures for HorizontalPodAutoscalers and `kubectl top`, started on demand."""

from cluster.binaries.families import METRICS_SERVER_FAMILY
from cluster.binaries.programs import build_programs
from cluster.console.progress import Progress
from cluster.errors import ClusterError
from cluster.locks import waiting_for
from cluster.paths import State
from cluster.plan import Plan
from cluster.run.components import Programs, metrics_server
from cluster.run.files import render_objects
from cluster.run.on_demand import apply, end, ensure_running, kubectl
from cluster.run.supervision import READY_SECONDS

NAME = "metrics-server"
OBJECTS, API = "metrics-server.yaml", "metrics-api.yaml"
STEPS = 3


def start(state: State, plan: Plan, progress: Progress) -> None:
    """Build and start it, then register the metrics API. Safe to repeat. Raises ClusterError with a remedy.

    The API is registered last: while a registered API does not respond, the namespace controller deletes no namespace.
    It has the figures of a pod after two scrapes.
    """
    if plan.mode != "node":
        raise ClusterError(
            "metrics-server needs containers, and this cluster has no real node: see CLUSTER in `--help`"
        )
    programs = build_programs([(METRICS_SERVER_FAMILY, (NAME,))], progress)
    with waiting_for(f"cluster-{plan.name}"):
        with progress.step(f"start {NAME}") as notes:
            apply(state, "-f", "-", stdin=render_objects(OBJECTS, plan, state))
            started = ensure_running(state, metrics_server(plan, state, Programs(programs)))
            notes.append("started" if started else "running")
        with progress.step("metrics API"):
            apply(state, "-f", "-", stdin=render_objects(API, plan, state))
            available = ("--for=condition=Available", f"--timeout={READY_SECONDS:.0f}s")
            kubectl(state, "wait", "apiservice/v1beta1.metrics.k8s.io", *available)


def stop(state: State, plan: Plan) -> bool:
    """Remove the metrics API, then metrics-server; returns whether it existed."""
    with waiting_for(f"cluster-{plan.name}"):
        for template in (API, OBJECTS):
            kubectl(state, "delete", "--ignore-not-found", "-f", "-", stdin=render_objects(template, plan, state))
        return end(state, NAME)
