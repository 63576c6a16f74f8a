"""The rules about scheduling and seccomp profiles, each in Python and in CEL.

They deny only what the API server denies in every Deployment or NetworkPolicy.
"""

from collections.abc import Mapping
from itertools import product
from typing import Any, Final

from memcached_api.validation.rules import Rule, blocking, field_rule
from memcached_api.values import nested_field

Requirement = Mapping[str, Any]

_POD: Final = "spec.podTemplate.spec"


_TOLERATIONS: Final = f"{_POD}.tolerations[*]"
_CEL_EXISTS: Final = "(has(self.operator) && self.operator == 'Exists')"

TOLERATION_KEY: Final = field_rule(
    _TOLERATIONS,
    "key",
    lambda toleration: bool(toleration.get("key")) or toleration.get("operator") == "Exists",
    f"(has(self.key) && self.key != '') || {_CEL_EXISTS}",
    "must be set unless operator is Exists, which then tolerates all taints; set the key or operator: Exists",
)

TOLERATION_VALUE: Final = field_rule(
    _TOLERATIONS,
    "value",
    lambda toleration: not toleration.get("value") or toleration.get("operator") != "Exists",
    f"!has(self.value) || self.value == '' || !{_CEL_EXISTS}",
    "must not be set with operator Exists, which tolerates all values; remove it or set operator: Equal",
)

TOLERATION_SECONDS: Final = field_rule(
    _TOLERATIONS,
    "tolerationSeconds",
    lambda toleration: toleration.get("tolerationSeconds") is None or toleration.get("effect") == "NoExecute",
    "!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
    "must be set only with effect NoExecute, because no other effect evicts pods; remove it or set effect: NoExecute",
)

MIN_DOMAINS: Final = field_rule(
    f"{_POD}.topologySpreadConstraints[*]",
    "minDomains",
    lambda constraint: constraint.get("minDomains") is None or constraint.get("whenUnsatisfiable") == "DoNotSchedule",
    "!has(self.minDomains) || self.whenUnsatisfiable == 'DoNotSchedule'",
    "must be set only with whenUnsatisfiable DoNotSchedule; remove it or set whenUnsatisfiable: DoNotSchedule",
)

SECCOMP_PROFILE: Final = field_rule(
    f"{_POD}.securityContext.seccompProfile",
    "localhostProfile",
    lambda profile: (profile.get("type") == "Localhost") == (profile.get("localhostProfile") is not None),
    "(self.type == 'Localhost') == has(self.localhostProfile)",
    "must be set with type Localhost, and only with it; set it to a file on the node, or remove it",
)

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_NODE_TERMS: Final = tuple(
    f"{_POD}.affinity.nodeAffinity.{terms}"
    for terms in (f"{_REQUIRED}.nodeSelectorTerms[*]", f"{_PREFERRED}[*].preference")
)
_POD_TERMS: Final = tuple(
    f"{_POD}.affinity.{affinity}.{terms}"
    for affinity, terms in product(
        ("podAffinity", "podAntiAffinity"), (f"{_REQUIRED}[*]", f"{_PREFERRED}[*].podAffinityTerm")
    )
)
_SELECTORS: Final = (
    *(f"{term}.{name}" for term in _POD_TERMS for name in ("labelSelector", "namespaceSelector")),
    f"{_POD}.topologySpreadConstraints[*].labelSelector",
    *(
        f"spec.networkPolicy.{peers}[*].{name}"
        for peers, name in product(("from", "metricsFrom"), ("podSelector", "namespaceSelector"))
    ),
)
"""The paths of all label selectors."""

_LISTED: Final = ("In", "NotIn")
_UNLISTED: Final = ("Exists", "DoesNotExist")
_COMPARED: Final = ("Gt", "Lt")
_CEL_COUNT: Final = "(has(self.values) ? size(self.values) : 0)"
_VALUES: Final = "must be set with In or NotIn, and absent otherwise"
_NODE_VALUES: Final = "must be set with In or NotIn, one value with Gt or Lt, and absent otherwise"


def _count(requirement: Requirement) -> int:
    return len(requirement.get("values") or ())


def _has_values(requirement: Requirement) -> bool:
    """Whether the number of values is that of the operator."""
    operator, count = requirement.get("operator"), _count(requirement)
    return (
        (operator not in _LISTED or count > 0)
        and (operator not in _UNLISTED or count == 0)
        and (operator not in _COMPARED or count == 1)
    )


def _selector_rule(path: str) -> Rule:
    cel = f"(self.operator in {list(_LISTED)}) == ({_CEL_COUNT} > 0)"
    return field_rule(f"{path}.matchExpressions[*]", "values", _has_values, cel, _VALUES)


def _node_rule(path: str) -> Rule:
    cel = (
        f"self.operator in {list(_LISTED)} ? {_CEL_COUNT} > 0 :"
        f" {_CEL_COUNT} == (self.operator in {list(_COMPARED)} ? 1 : 0)"
    )
    return field_rule(f"{path}.matchExpressions[*]", "values", _has_values, cel, _NODE_VALUES)


def _nodefield_rule(path: str) -> Rule:
    return field_rule(
        f"{path}.matchFields[*]",
        "values",
        lambda requirement: requirement.get("operator") in _LISTED and _count(requirement) == 1,
        f"self.operator in {list(_LISTED)} && {_CEL_COUNT} == 1",
        "must have exactly one value, with operator In or NotIn; use matchExpressions for other operators",
    )


REQUIREMENTS: Final = (
    *(_selector_rule(path) for path in _SELECTORS),
    *(_node_rule(path) for path in _NODE_TERMS),
    *(_nodefield_rule(path) for path in _NODE_TERMS),
)

_NO_SELECTOR: Final = "must be set with matchLabelKeys or mismatchLabelKeys, which add to it; set it, or remove them"
_REPEATED: Final = "must not have a key of matchLabels or mismatchLabelKeys; remove it from one of them"


def _has_label_keys(term: Mapping[str, Any]) -> bool:
    return bool(term.get("matchLabelKeys") or term.get("mismatchLabelKeys"))


def _repeats_no_key(term: Mapping[str, Any]) -> bool:
    """Whether each of `matchLabelKeys` is only there. Otherwise, Kubernetes rejects the template or only the pods."""
    labels: Mapping[str, Any] = nested_field(term, "labelSelector", "matchLabels") or {}
    return not {*(term.get("matchLabelKeys") or ())} & {*(term.get("mismatchLabelKeys") or ()), *labels}


def _label_key_rules(path: str) -> tuple[Rule, Rule]:
    return (
        field_rule(
            path,
            "labelSelector",
            lambda term: term.get("labelSelector") is not None or not _has_label_keys(term),
            "has(self.labelSelector)"
            " || ((!has(self.matchLabelKeys) || size(self.matchLabelKeys) == 0)"
            " && (!has(self.mismatchLabelKeys) || size(self.mismatchLabelKeys) == 0))",
            _NO_SELECTOR,
        ),
        field_rule(
            path,
            "matchLabelKeys",
            _repeats_no_key,
            "!has(self.matchLabelKeys) || self.matchLabelKeys.all(k,"
            " !(has(self.mismatchLabelKeys) && k in self.mismatchLabelKeys) && !(has(self.labelSelector)"
            " && has(self.labelSelector.matchLabels) && k in self.labelSelector.matchLabels))",
            _REPEATED,
        ),
    )


LABEL_KEYS: Final = tuple(rule for path in _POD_TERMS for rule in _label_key_rules(path))

SCHEDULING_RULES: Final = blocking(
    TOLERATION_KEY,
    TOLERATION_VALUE,
    TOLERATION_SECONDS,
    MIN_DOMAINS,
    SECCOMP_PROFILE,
    *REQUIREMENTS,
    *LABEL_KEYS,
)
