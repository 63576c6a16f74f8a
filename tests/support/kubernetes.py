"""The differences between the supported versions of Kubernetes that matter to the project.

`make generate` writes the table of docs/install.md from them. Tests ask them what to expect of a version, so each row
of the table is tried with every version.
"""

from dataclasses import dataclass
from typing import Final

from cluster.versions import minor


@dataclass(frozen=True)
class Difference:
    """A behavior of all versions from `since` on, such as 1.33.

    `behavior` is a sentence about these versions, and `effect` what it means for the operator; both are Markdown.
    """

    since: str
    behavior: str
    effect: str

    def applies(self, version: str) -> bool:
        """Whether a release, such as v1.33.13, has the behavior."""
        return order(minor(version)) >= order(self.since)


def order(version: str) -> tuple[int, ...]:
    """The numbers of a version, to compare it."""
    return tuple(int(part) for part in version.split("."))


LABEL_KEYS: Final = Difference(
    "1.31",
    "Terms of pod affinities have `matchLabelKeys` and `mismatchLabelKeys`.",
    "On 1.30, the API server removes these fields from the pods. `Degraded` reports it.",
)
TRAFFIC: Final = Difference(
    "1.31",
    "Services have `trafficDistribution`.",
    "On 1.30, the API server removes this field from the Service of a [MemcachedProxy](proxy.md#traffic-distribution). "
    "`Degraded` reports it.",
)
RESIZE: Final = Difference(
    "1.33",
    "Containers of running pods can be resized in place (`pods/resize`).",
    "On earlier versions, the operator replaces pods instead. It reports nodes whose kubelet is too old for a "
    "[resize](warm.md#how-pods-are-updated).",
)
RATCHETING: Final = Difference(
    "1.33",
    "CRD validation ratcheting is always on.",
    "On earlier versions, do not turn off the feature gate `CRDValidationRatcheting`, which is on by default. Without "
    "it, the API server rejects the CRDs.",
)
USER_NAMESPACES: Final = Difference(
    "1.33",
    "Pod templates have `hostUsers`, `supplementalGroupsPolicy` and `procMount: Unmasked`.",
    "The operator's admission policies prevent the controller from setting these fields. On earlier versions, the API "
    "server itself removes or rejects them.",
)
LOWER_MEMORY: Final = Difference(
    "1.34", "A resize can lower a memory limit, or add one.", "On 1.33, the operator replaces pods for that."
)
CLAIMS: Final = Difference(
    "1.34",
    "Pod templates have `resourceClaims`.",
    "The admission policies prevent the controller from setting this field. On earlier versions, the API server "
    "removes or rejects it.",
)
NEW_TRAFFIC: Final = Difference(
    "1.34",
    "`trafficDistribution` of a Service can be `PreferSameZone` or `PreferSameNode`.",
    "On 1.31 to 1.33, the API server rejects the Service of a [MemcachedProxy](proxy.md#traffic-distribution) with "
    "these values, and `Degraded` is `True` with the reason `ApplyFailed`.",
)
VALUES: Final = Difference(
    "1.35",
    "If a rule of a CRD rejects an object, the error contains the value.",
    "On earlier versions, the error contains only the field and the remedy. Errors of the webhook always contain the "
    "value.",
)
FILE_KEYS: Final = Difference(
    "1.35",
    "Variables of containers can come from a file (`fileKeyRef`).",
    "The admission policies prevent the controller from setting this field. On earlier versions, the API server "
    "removes or rejects it.",
)
STRICT_RANGES: Final = Difference(
    "1.36",
    "A new NetworkPolicy must not have a `cidr` with leading zeros or with bits set beyond the prefix, such as "
    "`192.0.2.1/24`.",
    "If a cache contains one, `Degraded` is `True` with the reason `ApplyFailed`.",
)
NODE_CAPACITY: Final = Difference(
    "1.36",
    "The API server rejects a resize after which a pod requests more than its node has.",
    "On earlier versions, the node reports it, and the operator restores the previous resources. See "
    "[how pods are updated](warm.md#how-pods-are-updated).",
)
UNAVAILABLE_SLOTS: Final = Difference(
    "1.37",
    "StatefulSets have `updateStrategy.rollingUpdate.maxUnavailable`, unless a feature gate is disabled.",
    "None. The operator updates slots itself and does not set this field. By default, most earlier versions drop it.",
)
DIFFERENCES: Final = (
    LABEL_KEYS,
    TRAFFIC,
    RESIZE,
    RATCHETING,
    USER_NAMESPACES,
    LOWER_MEMORY,
    CLAIMS,
    NEW_TRAFFIC,
    VALUES,
    FILE_KEYS,
    STRICT_RANGES,
    NODE_CAPACITY,
    UNAVAILABLE_SLOTS,
)
"""All of them, in the order of their versions."""
