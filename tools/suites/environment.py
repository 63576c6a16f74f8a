"""The environment of a suite: a deployed operator, a cluster with OLM, or nothing."""

import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from cluster.console.progress import Progress
from cluster.errors import ClusterError
from cluster.public.lifecycle import choose_mode, cluster_name, current, down, foreign_kubeconfig
from cluster.public.programs import Families, Family, build_programs, wanted
from olm import running
from project import deployment, images
from project.environment import changed, signals_ignored, use_cluster
from suites.table import PROMISES, Needs, Suite

NO_ROOT = "it needs root on Linux, for real pods"
OTHER_CLUSTER = "KUBECONFIG selects another cluster, and OLM needs one of its own; `make test-olm` starts it"


@dataclass
class Setup:
    """The images of the operator and the agent, the arguments of their build, and the overlay to deploy."""

    images: images.Images
    build_arguments: Sequence[str]
    overlay: str
    built: bool = False

    def provide(self) -> None:
        """Build the images, once for each command, and load them into the cluster."""
        if not self.built:
            images.build(self.images, self.build_arguments)
        images.provide(self.images)
        self.built = True

    @contextmanager
    def prepared(self, suite: Suite, *, fresh: bool = False) -> Generator[None, None, None]:
        """The environment of a suite; with `fresh`, the operator is removed first. Raises ClusterError."""
        match suite.needs:
            case Needs.OLM:
                with self._olm_cluster():
                    yield
            case Needs.OPERATOR:
                with changed(PYTHONPATH=None):
                    use_cluster()
                    self.provide()
                    if fresh and not foreign_kubeconfig(current()):  # another cluster's objects stay
                        deployment.undeploy(self.overlay)
                    deployment.deploy(self.images, self.overlay)
                    yield
            case _:
                build_programs(programs_of(suite))
                with changed(KUBECONFIG=None, PYTHONPATH=None):
                    yield

    @contextmanager
    def _olm_cluster(self) -> Generator[None, None, None]:
        """The project's own cluster with OLM and the images; it is removed at the end."""
        name, (operator, agent) = f"{cluster_name()}-olm", (self.images.operator, self.images.agent)
        with changed(CLUSTER_NAME=name, KUBECONFIG=None, IMG=operator, AGENT_IMG=agent, PYTHONPATH=None):
            try:
                self.provide()
                running.up(Progress(running.STEPS))
                yield
            finally:
                with signals_ignored():
                    down(name)


def programs_of(suite: Suite) -> Families:
    """The programs that the tests of a suite start on this machine, each family once."""
    if suite.needs is Needs.NOTHING:
        return wanted(None)
    families: dict[str, tuple[Family, tuple[str, ...]]] = {}
    for version in suite.versions:
        for family, names in wanted("control-plane", version):
            _, others = families.get(family.name, (family, ()))
            families[family.name] = (family, tuple(dict.fromkeys((*others, *names))))
    return list(families.values())


def left_out(suites: Iterable[Suite], named: Iterable[str], environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The suites that cannot run in this environment, with the reason.

    Raises ClusterError for a suite that the user named itself, and for an invalid CLUSTER.
    """
    found = {suite.name: reason for suite in suites if (reason := _obstacle(suite, suite.name in named, environ))}
    for name in found.keys() & set(named):
        raise ClusterError(f"the suite {name} cannot run here: {found[name]}")
    return found


def _obstacle(suite: Suite, named: bool, environ: Mapping[str, str]) -> str:
    given = bool(environ.get("KUBECONFIG"))
    if suite.needs is Needs.OLM and given and not named:
        return OTHER_CLUSTER
    uses_own = suite.needs is Needs.OLM or (suite.needs is Needs.OPERATOR and not given)
    return NO_ROOT if uses_own and choose_mode(environ) != "node" else ""


def notes(missing: Mapping[str, str]) -> list[str]:
    """Sentences about the suites that are left out."""
    lines = [f"left out: {name}: {reason}" for name, reason in missing.items()]
    return [*lines, f"not tested with real pods: {PROMISES}"] if NO_ROOT in missing.values() else lines
