"""The rules about placement, rollouts and the objects beside the workload, each in Python and in CEL."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Final

from memcached_api.shared.pod_template import MAX_GRACE_SECONDS, MAX_READY_SECONDS, MIN_GRACE_SECONDS
from memcached_api.shared.rules.scheduling import SCHEDULING_RULES
from memcached_api.validation.common_rules import is_cel_type, matches, range_rule, unique_rule
from memcached_api.validation.metadata_rules import (
    LAST_APPLIED,
    OWN_LABELS,
    annotation_key_rule,
    inherited_rules,
    label_key_rule,
    label_value_rule,
    own_rule,
    reserved_rule,
)
from memcached_api.validation.rules import Rule, Violation, blocking, value_rule
from memcached_api.values import MAX_INT32

RESTARTED_AT: Final = "kubectl.kubernetes.io/restartedAt"
"""The annotation of `kubectl rollout restart`."""

KUBERNETES_LABELS: Final = (
    "pod-template-hash",
    "controller-revision-hash",
    "apps.kubernetes.io/pod-index",
    "statefulset.kubernetes.io/pod-name",
)
"""The labels that the controllers of Deployments and StatefulSets set on pods."""

_RFC_3339: Final = (
    "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?"
    "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
)


_POD_LABELS: Final = "spec.podTemplate.metadata.labels"
_POD_ANNOTATIONS: Final = "spec.podTemplate.metadata.annotations"
_SERVICE_LABELS: Final = "spec.service.labels"
_SERVICE_ANNOTATIONS: Final = "spec.service.annotations"

RESERVED: Final = (
    own_rule(_POD_LABELS, OWN_LABELS),
    reserved_rule(_POD_LABELS, "Kubernetes", KUBERNETES_LABELS),
    own_rule(_POD_ANNOTATIONS),
    reserved_rule(
        _POD_ANNOTATIONS,
        "kubectl rollout restart",
        (RESTARTED_AT,),
        remedy="; to restart the pods, set spec.rollout.restartedAt",
    ),
    own_rule(_SERVICE_LABELS, OWN_LABELS),
    own_rule(_SERVICE_ANNOTATIONS),
    reserved_rule(_SERVICE_ANNOTATIONS, "kubectl apply", (LAST_APPLIED,)),
)

LABELS: Final = (
    *map(label_key_rule, (_POD_LABELS, _SERVICE_LABELS)),
    *map(annotation_key_rule, (_POD_ANNOTATIONS, _SERVICE_ANNOTATIONS)),
    *map(label_value_rule, (_POD_LABELS, _SERVICE_LABELS)),
)

GRACE_PERIOD: Final = range_rule(
    "spec.podTemplate.spec.terminationGracePeriodSeconds",
    MIN_GRACE_SECONDS,
    MAX_GRACE_SECONDS,
    "; clients need 5 s to stop using a pod, and memcached needs a few more to stop; the default is 30",
)

MIN_READY_SECONDS: Final = range_rule("spec.rollout.minReadySeconds", 0, MAX_READY_SECONDS, ", a day; the default is 0")


def _constraint_key(constraint: Mapping[str, Any]) -> Hashable:
    """The values that must be unique together; None without `topologyKey`, which the schema requires."""
    key = constraint.get("topologyKey")
    return None if key is None else (key, constraint.get("whenUnsatisfiable"))


UNIQUE_CONSTRAINTS: Final = unique_rule(
    "spec.podTemplate.spec.topologySpreadConstraints",
    "topologyKey",
    "a.topologyKey == b.topologyKey && a.whenUnsatisfiable == b.whenUnsatisfiable",
    "must be unique among the constraints with the same whenUnsatisfiable; remove one of the two",
    _constraint_key,
)

RUN_AS_USER: Final = value_rule(
    "spec.podTemplate.spec.securityContext.runAsUser",
    lambda user: user >= 1,
    "self >= 1",
    "must be at least 1, because memcached does not run as root; remove the field to let the platform choose a user",
)

RUN_AS_NON_ROOT: Final = value_rule(
    "spec.podTemplate.spec.securityContext.runAsNonRoot",
    lambda value: value is True,
    "self",
    "must be true, because memcached does not run as root; remove the field",
)


def _int_or_percent_rule(path: str, lowest: int, highest: str, message: str) -> Rule:
    """The rule that a value is a 32-bit integer of at least `lowest`, or a percentage that matches `highest`."""
    pattern = f"^{highest}%$"

    def holds(value: Any) -> bool:
        return matches(pattern, value) if isinstance(value, str) else lowest <= value <= MAX_INT32

    # Both bounds: the schema of an int-or-string has none.
    number = f"self >= {lowest} && self <= {MAX_INT32}"
    return value_rule(path, holds, f"{is_cel_type('self', 'int')} ? {number} : self.matches('{pattern}')", message)


MAX_UNAVAILABLE: Final = _int_or_percent_rule(
    "spec.rollout.maxUnavailable",
    0,
    "(0|[1-9][0-9]?|100)",
    "must be a number of pods, or a percentage from 0% to 100%, such as 1 or 25%",
)

MAX_SURGE: Final = _int_or_percent_rule(
    "spec.rollout.maxSurge",
    0,
    "(0|[1-9][0-9]{0,2})",
    "must be a number of pods, or a percentage from 0% to 999%, such as 1 or 25%",
)

BUDGET: Final = _int_or_percent_rule(
    "spec.podDisruptionBudget.maxUnavailable",
    1,
    "([1-9][0-9]?|100)",
    "must be a number of pods of at least 1, or a percentage from 1% to 100%, such as 1 or 25%; with 0, a node drain "
    "would never finish",
)

ZERO: Final = (0, "0%")
_NO_PROGRESS: Final = (
    "must not be 0 together with spec.rollout.maxUnavailable, because no pod could be replaced; raise one of them"
)


def _no_progress(rollout: Mapping[str, Any]) -> Iterable[Violation]:
    if rollout.get("maxSurge") in ZERO and rollout.get("maxUnavailable") in ZERO:
        yield Violation(".maxSurge", rollout["maxSurge"], _NO_PROGRESS)


ROLLOUT_PROGRESS: Final = Rule(
    "spec.rollout",
    _no_progress,
    "!has(self.maxSurge) || !has(self.maxUnavailable)"
    " || ![self.maxSurge, self.maxUnavailable].all(each, string(each) in ['0', '0%'])",
    _NO_PROGRESS,
    field_path=".maxSurge",
)

RESTART_TIME: Final = value_rule(
    "spec.rollout.restartedAt",
    lambda text: matches(_RFC_3339, text),
    f"self.matches('{_RFC_3339}')",
    "must be a time in RFC 3339, such as 2026-11-22T10:00:00Z",
)

_EMPTY_PEER: Final = "must set podSelector, namespaceSelector or ipBlock; complete or remove this entry"
_MIXED_PEER: Final = "must not be set together with a selector; use two entries"
_PEER_FIELDS: Final = ("podSelector", "namespaceSelector", "ipBlock")


def _set_fields(peer: Mapping[str, Any]) -> list[str]:
    return [name for name in _PEER_FIELDS if peer.get(name) is not None]


def _mixed(peer: Mapping[str, Any]) -> Iterable[Violation]:
    if "ipBlock" in (fields := _set_fields(peer)) and len(fields) > 1:
        yield Violation(".ipBlock", peer["ipBlock"], _MIXED_PEER)


_BYTE: Final = "0*(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4: Final = f"{_BYTE}([.]{_BYTE}){{3}}"
_GROUP: Final = "0*[0-9a-fA-F]{1,4}"
_IPV6: Final = f"({_GROUP}:){{6}}({_GROUP}:{_GROUP}|{_IPV4})"
_SHORTENED: Final = f"({_GROUP}(:{_GROUP})*)?::(({_GROUP}:)*({_GROUP}|{_IPV4}))?"
_UP_TO_7_GROUPS: Final = f":*({_GROUP}(:+{_GROUP}){{0,6}})?:*|:*({_GROUP}:+){{0,5}}{_IPV4}"
_CIDR: Final = (
    f"^({_IPV4}/0*([12]?[0-9]|3[0-2])|({_IPV6}|{_SHORTENED})/0*([1-9]?[0-9]|1[01][0-9]|12[0-8]))$",
    f"^(({_UP_TO_7_GROUPS})|{_IPV6}|{_IPV4})/[0-9]+$",
)
"""Both patterns must match: what Kubernetes accepts, with leading zeros."""


def _peer_rules(path: str, remedy: str) -> tuple[Rule, ...]:
    """The rules about a list of clients. `remedy`: what to do instead of an empty list."""
    return (
        value_rule(
            path,
            lambda peers: len(peers) > 0,
            "size(self) > 0",
            f"must not be empty, because Kubernetes would admit all clients; {remedy}",
        ),
        value_rule(
            f"{path}[*]",
            lambda peer: bool(_set_fields(peer)),
            " || ".join(f"has(self.{name})" for name in _PEER_FIELDS),
            _EMPTY_PEER,
        ),
        Rule(
            f"{path}[*]",
            _mixed,
            "!has(self.ipBlock) || !(has(self.podSelector) || has(self.namespaceSelector))",
            _MIXED_PEER,
            field_path=".ipBlock",
        ),
        value_rule(
            f"{path}[*].ipBlock.cidr",
            lambda text: all(matches(pattern, text) for pattern in _CIDR),
            " && ".join(f"self.matches('{pattern}')" for pattern in _CIDR),
            "must be a range of IP addresses, such as 192.0.2.0/24 or 2001:db8::/32",
        ),
    )


PEERS: Final = (
    *_peer_rules(
        "spec.networkPolicy.from",
        "remove the field to admit all pods in this namespace, or remove spec.networkPolicy to admit all clients",
    ),
    *_peer_rules("spec.networkPolicy.metricsFrom", "remove the field to admit all pods in all namespaces"),
)

PLACING_RULES: Final = blocking(
    *RESERVED,
    *LABELS,
    *inherited_rules("spec.inheritedMetadata"),
    GRACE_PERIOD,
    MIN_READY_SECONDS,
    UNIQUE_CONSTRAINTS,
    RUN_AS_USER,
    RUN_AS_NON_ROOT,
    MAX_UNAVAILABLE,
    MAX_SURGE,
    ROLLOUT_PROGRESS,
    RESTART_TIME,
    BUDGET,
    *PEERS,
    *SCHEDULING_RULES,
)
