"""The target of an update of pods, and the parts of a running pod that a kind can change."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from memcached_api.annotations import ORIGIN_ANNOTATION
from memcached_api.memcached.changes.resizing import Amounts, can_resize, shape
from memcached_operator.kube.resource import Object, nested_map
from memcached_operator.memcached.updates.origin import Digest, Origin
from memcached_operator.memcached.warm_up import timeout_of
from memcached_operator.world.snapshot import Resize

REVISION_LABEL: Final = "controller-revision-hash"
"""Label of a pod: the revision of the pod template. The StatefulSet counts a pod with its latest one as updated."""


@dataclass(frozen=True)
class InPlace:
    """The parts of running pods that a kind changes, besides images, requests and limits.

    `annotations`: those of the pod template that can change. `arguments`: that of them with which the first container
    restarts, upon a signal of the container `agent`, which is ready only if the arguments are in effect.
    `growing`: those of them whose numbers can only grow. `replace`: how a user has all pods replaced, for messages.
    `digest`: that of the pod template of the spec, which need not be the one to which pods are updated.
    """

    annotations: tuple[str, ...]
    arguments: str
    agent: str
    growing: frozenset[str]
    replace: str
    digest: Digest = lambda _: ""

    @property
    def replacing(self) -> str:
        """The remedy that always helps, as a sentence without its end. It begins with its price."""
        return f"To replace the pods and lose their items, {self.replace}"


@dataclass(frozen=True)
class Target:
    """The pod template to which pods are updated, and its revision.

    `min_ready`: seconds until a ready pod is available. `resize`: what the cluster can; None: not known yet.
    """

    revision: str
    template: Object
    origin: Origin
    rules: InPlace
    resize: Resize | None
    min_ready: int

    @property
    def changeable(self) -> tuple[str, ...]:
        """The names of the annotations that can change."""
        return (*self.rules.annotations, ORIGIN_ANNOTATION)

    def annotations(self, found: Mapping[str, str]) -> dict[str, str | None]:
        """Those of some annotations that can change, None for those that do not exist."""
        return {name: found.get(name) for name in self.changeable}

    @cached_property
    def desired(self) -> dict[str, str | None]:
        """The same of the template."""
        return self.annotations(nested_map(self.template, "metadata", "annotations"))

    @property
    def amounts(self) -> Mapping[str, Amounts]:
        """Requests and limits by container."""
        return self.origin.resources

    def accepts(self, origin: Origin) -> bool:
        """Whether a pod of an origin differs only in parts that can change, if the cluster can resize it.

        The digest of a template depends on the names of its amounts. If the template is that of the spec, its digest
        with the amounts of the pod shows whether anything else differs.
        """
        own = self.origin
        if origin.images.keys() != own.images.keys():
            return False
        if origin.fixed == own.fixed:
            return True
        before, after = (self._in_order(each.resources) for each in (origin, own))
        if shape(before) == shape(after) or not can_resize(after, before):
            return False
        return (self.rules.digest(after), self.rules.digest(before)) == (own.fixed, origin.fixed)

    def _in_order(self, amounts: Mapping[str, Amounts]) -> dict[str, Amounts]:
        """Amounts by container, in the order of the template."""
        return {name: amounts.get(name, {}) for name in self.containers}

    @cached_property
    def warm_up(self) -> int:
        """Seconds that a pod may need to become ready because its cache is cold."""
        return timeout_of(self.template) or 0

    @cached_property
    def containers(self) -> list[str]:
        """The names of the containers; a pod can have more of other clients."""
        return [container["name"] for container in self.template["spec"]["containers"]]
