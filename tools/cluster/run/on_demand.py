"""Components that `up` does not start: they are added to a running cluster, and removed from it."""

import json
from pathlib import Path
from typing import Any

from cluster.binaries.builds import build_programs
from cluster.binaries.families import wanted
from cluster.paths import State
from cluster.run import files, supervision
from cluster.run.components import Component
from cluster.run.supervision import READY_SECONDS
from cluster.shell import run

KUBECTL_SECONDS = 120.0


def kubectl(state: State, *words: str | Path, stdin: str | dict[str, Any] | None = None) -> str:
    """Run kubectl as the administrator; raises ClusterError with its output."""
    program = build_programs(wanted(None)) / "kubectl"
    text = json.dumps(stdin) if isinstance(stdin, dict) else stdin
    return run([program, f"--kubeconfig={state.kubeconfig}", *words], stdin=text, timeout=KUBECTL_SECONDS)


def apply(state: State, *words: str | Path, stdin: str | dict[str, Any] | None = None) -> None:
    """Server-side apply: OLM's definitions are too large for the annotation of client-side apply."""
    kubectl(state, "apply", "--server-side", "--force-conflicts", *words, stdin=stdin)


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
