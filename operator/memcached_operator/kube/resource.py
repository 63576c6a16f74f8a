"""Resources, object keys, and their paths on the API server."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NotRequired, TypedDict

Object = dict[str, Any]
"""One Kubernetes object as decoded JSON."""


class Resource(NamedTuple):
    """A resource type, as in `GET /apis/GROUP/VERSION/namespaces/NS/PLURAL`.

    A tuple, because it is a part of most keys: the generated `__hash__` of a dataclass runs Python code.
    """

    group: str
    version: str
    kind: str
    plural: str

    @property
    def api_version(self) -> str:
        """The `apiVersion` of its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """Path on the API server, for all namespaces, one namespace, one object, or a subresource."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        parts += ["namespaces", namespace] if namespace else []
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/".join(parts)


class OwnerReference(TypedDict):
    """An entry of `metadata.ownerReferences`."""

    apiVersion: str
    kind: str
    name: str
    uid: str
    controller: NotRequired[bool]


class Key(NamedTuple):
    """Identifies an object by resource, namespace and name."""

    resource: Resource
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.resource.kind} {self.namespace}/{self.name}"


def nested_map(obj: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """The mapping at a path, or an empty one: `nested_map(pod, "metadata", "labels")`."""
    for name in path:
        obj = obj.get(name) or {}
    return obj


def nested_list(obj: Mapping[str, Any], *path: str) -> Sequence[Mapping[str, Any]]:
    """The list of mappings at a path, or an empty one: `nested_list(pod, "status", "conditions")`."""
    items: Sequence[Mapping[str, Any]] | None = nested_map(obj, *path[:-1]).get(path[-1])
    return items or ()


def key_of(resource: Resource, obj: Object) -> Key:
    """Key of a live object."""
    meta = obj["metadata"]
    return Key(resource, meta.get("namespace", ""), meta["name"])


def controller_of(obj: Object) -> OwnerReference | None:
    """The owner reference with `controller: true`, or None."""
    owners: Sequence[OwnerReference] = nested_map(obj, "metadata").get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), None)


DEPLOYMENTS = Resource("apps", "v1", "Deployment", "deployments")
STATEFULSETS = Resource("apps", "v1", "StatefulSet", "statefulsets")
CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps")
SERVICES = Resource("", "v1", "Service", "services")
NETWORK_POLICIES = Resource("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies")
POD_DISRUPTION_BUDGETS = Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
POD_MONITORS = Resource("monitoring.coreos.com", "v1", "PodMonitor", "podmonitors")
PROMETHEUS_RULES = Resource("monitoring.coreos.com", "v1", "PrometheusRule", "prometheusrules")
PODS = Resource("", "v1", "Pod", "pods")
EVENTS = Resource("", "v1", "Event", "events")
LEASES = Resource("coordination.k8s.io", "v1", "Lease", "leases")
SECRETS = Resource("", "v1", "Secret", "secrets")
