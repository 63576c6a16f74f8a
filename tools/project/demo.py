"""`make demo`: says what it will do, prepares a cluster and the operator, and runs the steps of tools/demo."""

import os
import shutil
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cluster.errors import ClusterError
from cluster.paths import PRODUCT
from cluster.public import lifecycle
from cluster.public.lifecycle import foreign_kubeconfig
from cluster.public.programs import missing, wanted
from demo.cache import LEFT_OUT
from olm.programs import INSTALLATION
from project import catalogs, deployment, images
from project.environment import call, changed, use_cluster

Where = Literal["given", "node", "control-plane"]
"""The cluster: that of KUBECONFIG, or the project's own with real pods or with simulated ones."""

WITHOUT_CONTAINERS = """\
{reason}.
The demo uses a control plane on loopback with a simulated node. The controller and the webhooks run as processes of
this shell. No image is built."""
LEFT_OUT_STEPS = f"""\
Left out, because simulated pods run no memcached: {", ".join(f'"{each.title}"' for each in LEFT_OUT)}."""
FIRST_RUN = "The first run takes about {minutes} minutes on 2 cores, to compile Kubernetes; later runs about one."


@dataclass(frozen=True)
class Demo:
    """One run of `make demo`."""

    scenes: str
    images: images.Images
    build_arguments: Sequence[str]
    overlay: str

    def announce(self) -> None:
        """Say what will happen. Raises ClusterError at once if it cannot work."""
        with self._selected() as where:
            print(self._plan(where), file=sys.stderr, flush=True)
            if where != "given" and self._must_compile():
                print(FIRST_RUN.format(minutes=20 if self.scenes == "olm" else 10), file=sys.stderr, flush=True)

    def run(self) -> int:
        """Prepare everything and run the steps; returns their exit code. Raises ClusterError."""
        with self._selected() as where:
            had_kubectl = bool(shutil.which("kubectl"))
            code = self._run_simulated() if where == "control-plane" else self._run_deployed()
            if not code:
                print(hints(where, had_kubectl=had_kubectl))
            return code

    @contextmanager
    def _selected(self) -> Generator[Where, None, None]:
        """The cluster of this run. OLM has its own, because an operator that it did not install must not run there."""
        given, name = foreign_kubeconfig(lifecycle.current()), lifecycle.cluster_name()
        if self.scenes == "olm" and given:
            raise ClusterError(
                f"OLM runs only on a cluster of this project, not on that of KUBECONFIG={given}: unset it"
            )
        where: Where = "given" if given else lifecycle.choose_mode()
        if self.scenes == "olm" and where == "control-plane":
            raise ClusterError("OLM installs operators as pods: run `make demo SCENES=olm` as root on Linux")
        with changed(**({"CLUSTER_NAME": f"{name}-olm-demo", "KUBECONFIG": None} if self.scenes == "olm" else {})):
            yield where

    def _plan(self, where: Where) -> str:
        if where == "control-plane":
            given = os.environ.get("CLUSTER")
            reason = (
                f"CLUSTER={given} is set" if given else "Pods need root on Linux, with permission to create namespaces"
            )
            remedy = "To see all steps, run this as root on Linux, or set KUBECONFIG to another cluster."
            return "\n".join((WITHOUT_CONTAINERS.format(reason=reason), LEFT_OUT_STEPS, remedy))
        if where == "given":
            # Without kubectl, which is built later, the kind of the cluster is not known yet.
            way = images.way(self.images.operator) if shutil.which("kubectl") else "loads or pushes them"
            built = f"{self.images.operator} and {self.images.agent}"
            return f"The demo builds {built}, {way}, and deploys the operator with {self.overlay}."
        subject = "OLM installs" if self.scenes == "olm" else "`make deploy` installs"
        return (
            f"The demo starts the cluster {lifecycle.cluster_name()} on this machine, and {subject} the operator there."
        )

    def _must_compile(self) -> bool:
        """Whether programs are missing."""
        mode = lifecycle.choose_mode()
        families = wanted(mode, lifecycle.choose_version(mode))
        families += [(family, tuple(family.programs)) for family in INSTALLATION] if self.scenes == "olm" else []
        return any(missing(family, names) for family, names in families)

    def _run_deployed(self) -> int:
        images.build(self.images, self.build_arguments)
        images.provide(self.images)
        if self.scenes == "olm":
            catalogs.serve_releases(self.images)
        else:
            deployment.deploy(self.images, self.overlay)
        return call([sys.executable, "-m", "demo", f"--scenes={self.scenes}"])

    def _run_simulated(self) -> int:
        # Imported on demand: it needs packages of .venv, which `announce` does without.
        from project.processes import running_operator

        use_cluster()
        with running_operator():
            return call([sys.executable, "-m", "demo", "--simulated"])


def hints(where: Where, *, had_kubectl: bool) -> str:
    """How to remove the cluster, and how to use it with kubectl."""
    lines: list[str] = []
    if where != "given":
        name = lifecycle.cluster_name()
        lines.append(f"  make cluster-down{'' if name == PRODUCT else f' CLUSTER_NAME={name}'}")
    if where == "control-plane":
        lines += ["", LEFT_OUT_STEPS, "The controller and the webhooks have stopped; `make run` starts the controller."]
    lines += ["", "To use kubectl in this shell:", f"  export KUBECONFIG={os.environ['KUBECONFIG']}"]
    if not had_kubectl and (program := shutil.which("kubectl")):
        lines.append(f'  export PATH="$PATH:{Path(program).parent}"')
    return "\n".join(lines)
