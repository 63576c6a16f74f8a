"""The resources that the simulation serves, and how each differs from the others.

Source: the strategies in pkg/registry of Kubernetes 1.35, and apiextensions-apiserver, pkg/registry/customresource.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from memcached_operator.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    EVENTS,
    LEASES,
    NETWORK_POLICIES,
    POD_DISRUPTION_BUDGETS,
    POD_MONITORS,
    PODS,
    PROMETHEUS_RULES,
    SECRETS,
    SERVICES,
    STATEFULSETS,
    Object,
    Resource,
)
from simulation.api import field_sets, types
from simulation.api.decoding import NOTHING, copied, normal, pruned
from simulation.api.defaults import set_defaults
from simulation.api.field_sets import Fields
from simulation.api.schema import UNTYPED, Type, empty, of_custom_resource

CRDS: Final = Path(__file__).parents[3] / "config/crd/bases"
RBAC: Final = "rbac.authorization.k8s.io"
ADMISSION: Final = "admissionregistration.k8s.io"
NAMESPACES: Final = Resource("", "v1", "Namespace", "namespaces")
REPLICA_SETS: Final = Resource("apps", "v1", "ReplicaSet", "replicasets")
CONTROLLER_REVISIONS: Final = Resource("apps", "v1", "ControllerRevision", "controllerrevisions")
NODES: Final = Resource("", "v1", "Node", "nodes")
SERVICE_ACCOUNTS: Final = Resource("", "v1", "ServiceAccount", "serviceaccounts")
ROLES: Final = Resource(RBAC, "v1", "Role", "roles")
ROLE_BINDINGS: Final = Resource(RBAC, "v1", "RoleBinding", "rolebindings")
CLUSTER_ROLES: Final = Resource(RBAC, "v1", "ClusterRole", "clusterroles")
CLUSTER_ROLE_BINDINGS: Final = Resource(RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings")
RESOURCE_QUOTAS: Final = Resource("", "v1", "ResourceQuota", "resourcequotas")
LIMIT_RANGES: Final = Resource("", "v1", "LimitRange", "limitranges")
CLAIMS: Final = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
ENDPOINT_SLICES: Final = Resource("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")
MUTATING: Final = Resource(ADMISSION, "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations")
VALIDATING: Final = Resource(ADMISSION, "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations")

NO_GENERATION: Final = ""
ALL_FIELDS: Final = "*"


@dataclass(frozen=True)
class Kind:
    """A resource, its type and its strategy.

    `generation`: the field whose changes the generation counts, ALL_FIELDS or NO_GENERATION. `versioned`: a PUT must
    have a resourceVersion. `created_by_put`: a PUT can create it. `subresources`: those that are served. `scale`: the
    paths of the numbers of pods and of the selector.
    """

    resource: Resource
    type: Type
    namespaced: bool = True
    generation: str = NO_GENERATION
    versioned: bool = False
    subresources: tuple[str, ...] = ()
    custom: bool = False
    created_by_put: bool = False
    scale: tuple[str, str, str] | None = None

    @property
    def has_status(self) -> bool:
        """Whether the status is written by another endpoint."""
        return "status" in self.subresources

    def decoded(self, obj: Object, live: Object | None = None) -> Object:
        """A copy of an object as it is stored, with defaults, but without managedFields.

        It shares unchanged parts with `live`, of which it may be a patched version. They have all defaults already.
        """
        meta: Object = dict(obj.get("metadata") or {})
        meta.pop("managedFields", None)
        typed = {
            "kind": self.resource.kind,
            "apiVersion": self.resource.api_version,
            "metadata": normal(types.META, meta),
        }
        content = {name: value for name, value in obj.items() if name not in typed}
        known = NOTHING if live is None or self.resource.plural in _CHANGED_IN_PLACE else live
        if self.custom:
            return {**typed, **(pruned(self.type, content, known) if self.type.custom else copied(content))}
        found = {**typed, **normal(self.type, content, known)}
        found["metadata"] = typed["metadata"]
        if "spec" not in known or found.get("spec") is not known["spec"]:
            set_defaults(self.resource.plural, found)
        return found

    def blank(self) -> Object:
        """The object to which a created one is compared."""
        return {"metadata": {}} if self.custom else empty(self.type)

    def initial_status(self) -> Any:
        """The status of a new object, as read from the storage."""
        return copied(self.type.initial.get("status")) if self.custom else self.blank().get("status")

    def reset_fields(self, subresource: str) -> Fields | None:
        """The fields that an endpoint does not change (GetResetFields)."""
        if subresource == "status":
            return field_sets.of("spec", *_RESET_BY_STATUS.get(self.resource.plural, ()))
        return _STATUS if self.has_status and not subresource else None

    def only_fields(self, subresource: str) -> Fields | None:
        """The only fields that an endpoint changes; None if it is not limited."""
        return _RESIZED if subresource == "resize" else None


_CHANGED_IN_PLACE: Final = frozenset({SERVICES.plural, CLAIMS.plural})
"""The resources whose spec the API server changes after decoding, or that have defaults in the status."""
_STATUS: Final = field_sets.of("status")
_RESET_BY_STATUS: Final[Mapping[str, tuple[str, ...]]] = {
    "deployments": ("metadata.labels",),
    "pods": ("metadata.deletionTimestamp", "metadata.ownerReferences"),
}
_RESIZED: Final = field_sets.of(
    *(f"spec.{lists}.*.{name}" for lists in ("containers", "initContainers") for name in ("resources", "resizePolicy"))
)
_STATUS_ONLY: Final = ("status",)
_WORKLOAD_SCALE: Final = ("spec.replicas", "status.replicas", "spec.selector")
_WORKLOAD: Final[Mapping[str, Any]] = {
    "generation": "spec",
    "subresources": ("scale", "status"),
    "scale": _WORKLOAD_SCALE,
}


def custom_kind(crd: Mapping[str, Any]) -> Kind:
    """The storage version of a CustomResourceDefinition."""
    spec: Object = crd["spec"]
    (version,) = (each for each in spec["versions"] if each["storage"])
    resource = Resource(spec["group"], version["name"], spec["names"]["kind"], spec["names"]["plural"])
    served: Object = version.get("subresources") or {}
    scale: Object = served.get("scale") or {}
    return Kind(
        resource,
        of_custom_resource(version["schema"]["openAPIV3Schema"], types.META),
        generation=ALL_FIELDS,
        versioned=True,
        subresources=tuple(sorted(served)),
        custom=True,
        scale=_scale(scale) if scale else None,
    )


def _scale(scale: Mapping[str, str]) -> tuple[str, str, str]:
    names = ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")
    replicas, current, selector = (scale.get(name, "").removeprefix(".") for name in names)
    return replicas, current, selector


def _monitor(resource: Resource) -> Kind:
    """A resource whose CRD has no schema (tests/support/monitors.py)."""
    root = Type(fields={"metadata": types.META}, item=UNTYPED)
    return Kind(resource, root, generation=ALL_FIELDS, versioned=True, custom=True)


def _kinds() -> tuple[Kind, ...]:
    return (
        *(custom_kind(msgspec.yaml.decode(path.read_bytes())) for path in sorted(CRDS.glob("*.yaml"))),
        _monitor(POD_MONITORS),
        _monitor(PROMETHEUS_RULES),
        Kind(DEPLOYMENTS, types.DEPLOYMENT, **_WORKLOAD),
        Kind(STATEFULSETS, types.STATEFUL_SET, **_WORKLOAD),
        Kind(REPLICA_SETS, types.REPLICA_SET, **_WORKLOAD),
        Kind(CONTROLLER_REVISIONS, types.CONTROLLER_REVISION),
        Kind(PODS, types.POD, generation="spec", subresources=("binding", "eviction", "resize", "status")),
        Kind(SERVICES, types.SERVICE, subresources=_STATUS_ONLY, created_by_put=True),
        Kind(CONFIG_MAPS, types.CONFIG_MAP),
        Kind(SECRETS, types.SECRET),
        Kind(EVENTS, types.EVENT, created_by_put=True),
        Kind(LEASES, types.LEASE, versioned=True, created_by_put=True),
        Kind(
            POD_DISRUPTION_BUDGETS,
            types.POD_DISRUPTION_BUDGET,
            generation="spec",
            versioned=True,
            subresources=_STATUS_ONLY,
        ),
        Kind(NETWORK_POLICIES, types.NETWORK_POLICY, generation="spec"),
        Kind(NAMESPACES, types.NAMESPACE, namespaced=False, subresources=("finalize", "status")),
        Kind(NODES, types.NODE, namespaced=False, subresources=_STATUS_ONLY),
        Kind(SERVICE_ACCOUNTS, types.SERVICE_ACCOUNT),
        Kind(ROLES, types.ROLE, created_by_put=True),
        Kind(ROLE_BINDINGS, types.ROLE_BINDING, created_by_put=True),
        Kind(CLUSTER_ROLES, types.ROLE, namespaced=False, created_by_put=True),
        Kind(CLUSTER_ROLE_BINDINGS, types.ROLE_BINDING, namespaced=False, created_by_put=True),
        Kind(RESOURCE_QUOTAS, types.RESOURCE_QUOTA, subresources=_STATUS_ONLY),
        Kind(LIMIT_RANGES, types.LIMIT_RANGE, created_by_put=True),
        Kind(CLAIMS, types.CLAIM, subresources=_STATUS_ONLY),
        Kind(ENDPOINT_SLICES, types.ENDPOINT_SLICE, generation=ALL_FIELDS),
        Kind(MUTATING, types.WEBHOOK_CONFIGURATION, namespaced=False, generation="webhooks", versioned=True),
        Kind(VALIDATING, types.WEBHOOK_CONFIGURATION, namespaced=False, generation="webhooks", versioned=True),
    )


KINDS: Final[Mapping[Resource, Kind]] = {kind.resource: kind for kind in _kinds()}
BY_PATH: Final[Mapping[tuple[str, str, str], Kind]] = {
    (resource.group, resource.version, resource.plural): kind for resource, kind in KINDS.items()
}
"""The kinds by group, version and plural."""
