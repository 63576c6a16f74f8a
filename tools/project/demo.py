"""`make demo`: says what it will do, prepares a cluster and the operator, and runs the commands of docs/try.md."""

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cluster.paths import PRODUCT
from cluster.public import lifecycle
from cluster.public.lifecycle import foreign_kubeconfig
from cluster.public.programs import missing, wanted
from project import deployment, images
from project.environment import use_cluster
from project.page import run_page

Where = Literal["given", "node", "control-plane"]
"""The cluster: that of KUBECONFIG, or the project's own with real pods or with simulated ones."""

WITHOUT_CONTAINERS = """\
{reason}.
The demo uses a control plane on loopback with a simulated node. The controller and the webhooks run as processes of
this shell. No image is built. The demo skips the steps that connect to memcached.
To see all steps, run this as root on Linux, or set KUBECONFIG to another cluster."""
FIRST_RUN = "The first run compiles Kubernetes. CONTRIBUTING.md shows how long each command takes."


def selected() -> Where:
    """The cluster of this run."""
    return "given" if foreign_kubeconfig(lifecycle.current()) else lifecycle.choose_mode()


def must_compile() -> bool:
    """Whether programs are missing."""
    mode = lifecycle.choose_mode()
    return any(missing(family, names) for family, names in wanted(mode, lifecycle.choose_version(mode)))


@dataclass(frozen=True)
class Demo:
    """One run of `make demo`."""

    images: images.Images
    build_arguments: Sequence[str]
    overlay: str

    def announce(self) -> None:
        """Say what will happen. Raises ClusterError at once if it cannot work."""
        where = selected()
        print(self._plan(where), file=sys.stderr, flush=True)
        if where != "given" and must_compile():
            print(FIRST_RUN, file=sys.stderr, flush=True)

    def run(self) -> int:
        """Prepare everything and run the steps; returns their exit code. Raises ClusterError."""
        where, had_kubectl = selected(), bool(shutil.which("kubectl"))
        code = self._run_simulated() if where == "control-plane" else self._run_deployed()
        if not code:
            print(hints(where, had_kubectl=had_kubectl))
        return code

    def _plan(self, where: Where) -> str:
        if where == "control-plane":
            given = os.environ.get("CLUSTER")
            reason = (
                f"CLUSTER={given} is set" if given else "Pods need root on Linux, with permission to create namespaces"
            )
            return WITHOUT_CONTAINERS.format(reason=reason)
        if where == "given":
            # Without kubectl, which is built later, the kind of the cluster is not known yet.
            way = images.way(self.images.operator) if shutil.which("kubectl") else "loads or pushes them"
            built = f"{self.images.operator} and {self.images.agent}"
            return f"The demo builds {built}, {way}, and deploys the operator with {self.overlay}."
        name = lifecycle.cluster_name()
        return f"The demo starts the cluster {name} on this machine, and `make deploy` installs the operator there."

    def _run_deployed(self) -> int:
        images.build(self.images, self.build_arguments)
        images.provide(self.images)
        deployment.deploy(self.images, self.overlay)
        return run_page(simulated=False)

    def _run_simulated(self) -> int:
        # Imported on demand: it needs packages of .venv, which `announce` does without.
        from project.processes import running_operator

        use_cluster()
        with running_operator():
            return run_page(simulated=True)


def hints(where: Where, *, had_kubectl: bool) -> str:
    """How to remove the cluster, and how to use it with kubectl."""
    lines: list[str] = []
    if where != "given":
        name = lifecycle.cluster_name()
        lines.append(f"  make cluster-down{'' if name == PRODUCT else f' CLUSTER_NAME={name}'}")
    if where == "control-plane":
        lines += ["", "The controller and the webhooks have stopped; `make run` starts the controller."]
    lines += ["", "To use kubectl in this shell:", f"  export KUBECONFIG={os.environ['KUBECONFIG']}"]
    if not had_kubectl and (program := shutil.which("kubectl")):
        lines.append(f'  export PATH="$PATH:{Path(program).parent}"')
    return "\n".join(lines)
