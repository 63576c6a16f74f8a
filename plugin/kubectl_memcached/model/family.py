"""The children of a Memcached by their controllers, and which containers of their pods are the operator's.

Labels and names prove nothing: other clients can set labels, and add containers with any name.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kubectl_memcached.model.objects import EMPTY, Object, mapping, objects, text
from kubectl_memcached.model.pods import AGENT, MEMCACHED, METRICS

WORKLOADS: Final = ("deployments", "statefulsets", "replicasets")
"""The resources whose pod templates have the containers. A Deployment controls ReplicaSets, all others the pods."""
_PORTS: Final[Mapping[str, frozenset[str]]] = {MEMCACHED: frozenset(), AGENT: frozenset({METRICS, "probes"})}
"""The operator's containers, with the names of the ports that the container has in each pod.

A pod template always has memcached, but not always the agent: another client can inject a container with its name.
"""


@dataclass(frozen=True)
class Family:
    """A Memcached and its children. `uids`: its own, and those of its workloads.

    `templates`: the operator's containers in the pod template of each workload, by the workload's UID.
    """

    uids: frozenset[str] = frozenset()
    templates: Mapping[str, Mapping[str, Object]] = field(default_factory=dict[str, Mapping[str, Object]])

    def has(self, obj: Object) -> bool:
        """Whether an object is the Memcached, or is controlled by it or by one of its workloads."""
        return text(obj, "metadata", "uid") in self.uids or _controller(obj) in self.uids

    def containers(self, obj: Object) -> Mapping[str, Object]:
        """The operator's containers of a pod, a workload or a ControllerRevision, as in its pod template.

        A container of an earlier pod template is empty. Without any for other objects, and for another client's.
        """
        if text(obj, "metadata", "uid") in self.templates:
            return self.templates[text(obj, "metadata", "uid")]
        if _controller(obj) not in self.templates:
            return {}
        if revised := mapping(obj, "data", "spec", "template", "spec"):
            return _own(revised)
        template = self.templates[_controller(obj)]
        return {name: template.get(name, EMPTY) for name in _own(mapping(obj, "spec"))}

    @property
    def names(self) -> frozenset[str]:
        """The names of the operator's containers in all pod templates."""
        return frozenset(name for template in self.templates.values() for name in template)


def family(cr: Object, workloads: Iterable[Object]) -> Family:
    """The family of a Memcached. `workloads`: the objects of WORKLOADS, including those of other clients."""
    listed, uids = list(workloads), {text(cr, "metadata", "uid")} - {""}
    for _ in range(2):  # a ReplicaSet is controlled by a Deployment
        uids |= {text(obj, "metadata", "uid") for obj in listed if _controller(obj) in uids} - {""}
    own = [obj for obj in listed if text(obj, "metadata", "uid") in uids]
    templates = {text(obj, "metadata", "uid"): _own(mapping(obj, "spec", "template", "spec")) for obj in own}
    return Family(frozenset(uids), templates)


def _own(spec: Object) -> dict[str, Object]:
    """The operator's containers by name. `spec`: of a pod whose workload is the Memcached's, or of its template."""
    found = {text(each, "name"): each for each in objects(spec, "containers")}
    ports = {name: {text(port, "name") for port in objects(each, "ports")} for name, each in found.items()}
    return {name: each for name, each in found.items() if name in _PORTS and _PORTS[name] <= ports[name]}


def _controller(obj: Object) -> str:
    """The UID of the controller of an object; empty if it has none."""
    owners = objects(obj, "metadata", "ownerReferences")
    return next((text(each, "uid") for each in owners if each.get("controller") is True), "")
