"""The rules of a kind for messages about its pods: which containers are its own, and which fields govern them."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memcached_api import conditions as c
from memcached_api.remedies import NONE, Action, Remedy, text_of
from memcached_operator.kube.resource import Object, nested_list, nested_map
from memcached_operator.world.pod import Explained, Pod, Terminated


@dataclass(frozen=True)
class OwnContainer:
    """The fields that govern a container of a kind, as messages name them.

    `image`: the field. `credentials`, `memory`: the remedies for a registry that requires a login, and if it is
    OOM-killed. `start`: remedies for errors with which the container cannot be started, by an expression that finds the
    error. `exits`: what an exit code means, as a clause. `ports`: the names of its ports, by which it is recognized in
    a pod of an earlier pod template. `reason`: that of Degraded if it crashes.
    """

    image: str
    credentials: Action
    memory: Remedy
    start: tuple[tuple[re.Pattern[str], Remedy], ...] = ()
    exits: Mapping[int, str] = field(default_factory=dict[int, str])
    ports: frozenset[str] = frozenset()
    reason: str = c.PODS_CRASHING


@dataclass(frozen=True)
class PodRules:
    """The rules of a kind for its pods.

    `kind`: its name. `containers`, `init_containers`: its own containers, by name. `loss`: what is lost if a pod is
    deleted while one of them runs, as a clause; empty if nothing is. `loss_by`: what is lost by
    one of some actions, as sentences after it.
    `is_planned`: whether the operator itself has made a container of a pod end, given its name and its state.
    `takes_back`: whether a container waits for an image that the operator itself has taken back.
    `surge`: the remedy if the additional pod of a rollout is rejected. `template`: the live pod template; None if it
    is not known. `scheduling`: remedies, by a part of the scheduler's message; a part that contains another one comes
    before it. `disruptions`: remedies if Kubernetes stops pods repeatedly, by a part of the reason and the message.
    `claims`: the section with `size` and `storageClassName` of the volumes that its pods claim; empty without one.
    `lacks`: the sections that its spec does not have: what changes only these is no remedy.
    """

    kind: str
    containers: Mapping[str, OwnContainer] = field(default_factory=dict[str, OwnContainer])
    loss: str = ""
    loss_by: Callable[[Sequence[Action]], str] = lambda _actions: ""
    is_planned: Callable[[Pod, str, Terminated], bool] = lambda _pod, _name, _state: False
    takes_back: Callable[[Pod, str, Explained], bool] = lambda _pod, _name, _state: False
    surge: Remedy = NONE
    template: Mapping[str, Any] | None = None
    scheduling: Mapping[str, Remedy] = field(default_factory=dict[str, Remedy])
    disruptions: Mapping[str, Remedy] = field(default_factory=dict[str, Remedy])
    claims: str = ""
    lacks: tuple[str, ...] = ()
    init_containers: Mapping[str, OwnContainer] = field(default_factory=dict[str, OwnContainer])

    def within(self, workload: Object | None) -> "PodRules":
        """The rules for the pods of a live workload."""
        template = nested_map(workload or {}, "spec", "template")
        return replace(self, template=template or None)

    def own_container(self, pod: Pod, name: str) -> OwnContainer | None:
        """The fields for a container of a pod; None if the container is not part of the kind's pods.

        Another client can add a container with the same name, if the pod template has none.
        """
        row = self.containers.get(name)
        if row is None or self.template is None or name in names_of(self.template, "containers"):
            return row
        ports = {port.name for port in pod.container(name).ports}
        return row if row.ports and row.ports <= ports else None

    def advice(self, *remedies: Remedy) -> str:
        """Remedies, of which each ends a part of a problem, with what is lost by them; empty without one."""
        possible = [tuple(filter(self._is_possible, remedy)) for remedy in remedies]
        actions = [action for remedy in possible for action in remedy]
        return f"{'; or '.join(map(text_of, filter(None, possible)))}{self.loss_by(actions)}" if actions else ""

    def _is_possible(self, action: Action) -> bool:
        sections = tuple(f"{section}." for section in self.lacks)
        return not action.fields or not all(f"{field}.".startswith(sections) for field in action.fields)

    def has_volume(self, name: str) -> bool:
        """Whether the volume of a pod is part of the kind's pods."""
        return self.template is None or name in names_of(self.template, "volumes")


def names_of(obj: Mapping[str, Any], part: str) -> set[str]:
    """The names in a list of the spec of a pod template."""
    return {entry["name"] for entry in nested_list(obj, "spec", part)}
