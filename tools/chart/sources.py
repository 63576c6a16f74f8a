"""The rendered directories of config/ that the chart is made of."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bundle.objects import Object, Rendered, parse
from project.environment import kubectl, use_kubectl

OPERATOR: Final = "config/default"


@dataclass(frozen=True)
class Sources:
    """The objects of each directory.

    `operator`, `certmanager`, `namespaced`: variants of the same installation. `network`, `monitoring`: add-ons.
    `manifests`: that of the bundle, with the description and the samples.
    """

    operator: Sequence[Object]
    certmanager: Sequence[Object]
    namespaced: Sequence[Object]
    network: Sequence[Object]
    monitoring: Sequence[Object]
    manifests: Sequence[Object]

    @property
    def description(self) -> Object:
        """The manually written part of the bundle's ClusterServiceVersion."""
        return Rendered(self.manifests).one("ClusterServiceVersion")


DIRECTORIES: Final = {
    "operator": OPERATOR,
    "certmanager": "config/overlays/certmanager",
    "namespaced": "config/overlays/namespaced",
    "network": "config/network-policy",
    "monitoring": "config/prometheus",
    "manifests": "config/manifests",
}


def rendered() -> Sources:
    """What kustomize renders. Raises ClusterError with kustomize's message."""
    use_kubectl()
    return Sources(**{name: parse(kubectl("kustomize", place), place) for name, place in DIRECTORIES.items()})
