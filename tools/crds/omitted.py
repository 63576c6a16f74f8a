"""What our structs leave out of the types of Kubernetes, with the reasons. docs/api.md lists it.

tests/integration/test_kubernetes_types.py compares the structs with the API servers of all supported versions.
"""

from collections.abc import Mapping
from typing import Any, Final

from memcached_api.kubernetes import EnvVarSource, ResourceFieldSelector, ResourceRequirements
from memcached_api.scheduling import PodSecurityContext, SeccompProfile, Toleration

_PLATFORM: Final = "The container runtime or the platform, for example OpenShift, sets it."

FIELDS: Final[Mapping[type[Any], Mapping[str, str]]] = {
    EnvVarSource: {"fileKeyRef": "The pods have no volumes."},
    PodSecurityContext: {
        "appArmorProfile": "Nodes with AppArmor apply the profile of the container runtime by default.",
        "seLinuxChangePolicy": _PLATFORM,
        "seLinuxOptions": _PLATFORM,
        "supplementalGroupsPolicy": "Kubernetes 1.30 does not have it.",
        "sysctls": "Most need a setting of each kubelet. Pods on a node without this setting do not start.",
        "windowsOptions": "memcached runs on Linux.",
    },
    ResourceFieldSelector: {"containerName": "A pod has one container."},
    ResourceRequirements: {"claims": "Dynamic resource allocation is not supported."},
}
"""By struct, the fields that are left out."""

VALUES: Final[Mapping[type[Any], Mapping[str, Mapping[str, str]]]] = {
    SeccompProfile: {"type": {"Unconfined": "The Pod Security level `restricted` forbids it."}},
    Toleration: {
        "operator": dict.fromkeys(("Gt", "Lt"), "An alpha feature of Kubernetes that is off by default."),
    },
}
"""By struct and field, the values of an enumeration that are left out."""
