"""The registered kinds: those of the API, each with what its controller owns."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from memcached_api.images import Images
from memcached_api.kind import Kind
from memcached_api.registry import KINDS
from memcached_operator.engine.kind import ReconciledKind
from memcached_operator.kinds import kinds
from memcached_operator.kube.resource import Resource


@dataclass(frozen=True)
class Registered:
    """A kind. `app_name`: the label of its pods, `app.kubernetes.io/name`. `owns`: the resources of its children.
    `updates_pods`: the controller changes and deletes its pods.
    """

    kind: Kind[Any]
    app_name: str
    owns: tuple[Resource, ...]
    updates_pods: bool = False


def registered(apis: Iterable[Kind[Any]], reconciled: Iterable[ReconciledKind]) -> tuple[Registered, ...]:
    """Each kind of the API with its controller. Raises LookupError if it has none."""
    found = {(each.resource.group, each.resource.kind): each for each in reconciled}
    return tuple(_registered(kind, found.get((kind.group, kind.name))) for kind in apis)


def _registered(kind: Kind[Any], controller: ReconciledKind | None) -> Registered:
    if controller is None:
        raise LookupError(f"{kind.name} has no controller: add it to operator/memcached_operator/kinds.py")
    return Registered(kind, controller.app_name, controller.owns, controller.updates_pods)


def children(found: Iterable[Registered]) -> tuple[Resource, ...]:
    """The resources that any of the kinds owns, each once."""
    return tuple(dict.fromkeys(resource for each in found for resource in each.owns))


REGISTERED: Final = registered(KINDS, kinds(Images()))
