"""The documents about the API server itself that the operator reads."""

from typing import Any, Final

from memcached_operator.kube.resource import Object
from simulation.api.kinds import KINDS

ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
VERSION: Final[Object] = {"major": "1", "minor": "35", "gitVersion": "v1.35.4", "platform": "linux/amd64"}
VERBS: Final = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
SUB_VERBS: Final = ["get", "patch", "update"]


def document(path: str) -> Object | None:
    """The document at a path, or None."""
    if path == "/version":
        return VERSION
    if path in ("/healthz", "/livez", "/readyz"):
        return {}
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) == 2:
        return _resources("", parts[1])
    return _resources(parts[1], parts[2]) if parts[0] == "apis" and len(parts) == 3 else None


def _resources(group: str, version: str) -> Object | None:
    """The APIResourceList of a version of a group."""
    found: list[dict[str, Any]] = []
    for resource, kind in KINDS.items():
        if (resource.group, resource.version) != (group, version):
            continue
        entry = {"singularName": "", "namespaced": kind.namespaced, "kind": resource.kind}
        found.append({"name": resource.plural, **entry, "verbs": VERBS})
        found += [{"name": f"{resource.plural}/{each}", **entry, "verbs": SUB_VERBS} for each in kind.subresources]
    if not found:
        return None
    group_version = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": found}
