"""Parts of specs that violate a rule about placement, rollouts or children."""

from typing import Any, Final

from support.invalid import InvalidObject, Spec, Table, at, row
from support.placing_edges import REQUIRED, pod

OPERATOR = "must not be set, because the operator sets it"
KUBERNETES = "must not be set, because Kubernetes sets it"
RESTART = "must not be set, because kubectl rollout restart sets it; remove this key; to restart the pods, set"
APPLY = "must not be set, because kubectl apply sets it; remove this key"
PERCENT = "such as 1 or 25%"
VALUES = "must be set with In or NotIn, and absent otherwise"
KEY = "must have a key of at most 63 letters, digits"
POD = "spec.podTemplate.spec"


def _spread(key: str) -> dict[str, Any]:
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway"}


def _nodes(term: dict[str, Any]) -> dict[str, Any]:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}


def _in_pod(path: str, value: Any, *message: str, **beside: Any) -> InvalidObject:
    return at(f"podTemplate.spec.{path}", value, *message, **beside)


LABEL_KEYS: Final[tuple[dict[str, Any], ...]] = (
    {"labelSelector": {"matchLabels": {"a": "b"}}},
    {"labelSelector": {}, "mismatchLabelKeys": ["a"]},
)

METRICS: Final[dict[str, Spec]] = {"from": {}, "metricsFrom": {"monitoring": {}}}
CLIENTS: Final[tuple[tuple[Any, ...], ...]] = (
    ([], "", "must not be empty"),
    ([{}], "[0]", "must set podSelector, namespaceSelector or ipBlock"),
    (
        [{"podSelector": {}, "ipBlock": {"cidr": "192.0.2.0/24"}}],
        *("[0].ipBlock", "must not be set together with a selector"),
    ),
    (
        [{"ipBlock": {"cidr": "192.0.2.0"}}],
        *("[0].ipBlock.cidr", "192.0.2.0", "must be a range of IP addresses, such as 192.0.2.0/24"),
    ),
    (
        [{"podSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}],
        *("[0].podSelector.matchExpressions[0].values", VALUES),
    ),
)

DAY: Final = "2026-11-22"
NO_TIMES: Final = (
    *("2026-13-22T10:00:00Z", "2026-00-22T10:00:00Z", "2026-11-32T10:00:00Z", "2026-11-00T10:00:00Z"),
    *(f"{DAY}T{time}" for time in ("24:00:00Z", "10:60:00Z", "10:00:60Z", "10:00:00+24:00", "10:00:00+23:590")),
    *(f"{DAY}T{time}" for time in ("10:00:00.1234567890Z", "10:00:00.Z", "10:00:00")),
    *(f"{DAY} 10:00:00Z", f"{DAY}t10:00:00z", f" {DAY}T10:00:00Z", ""),
)

INVALID_PLACING: Final[Table] = (
    *(
        at(f"{metadata}[{key}]", "mine", *message)
        for metadata, key, *message in (
            ("podTemplate.metadata.labels", "app.kubernetes.io/name", OPERATOR),
            ("podTemplate.metadata.annotations", "kubectl.kubernetes.io/restartedAt", RESTART),
            ("podTemplate.metadata.annotations", "memcached-operator.example.com/intent", OPERATOR),
            ("podTemplate.metadata.labels", "pod-template-hash", KUBERNETES),
            ("podTemplate.metadata.labels", "controller-revision-hash", KUBERNETES),
            ("podTemplate.metadata.labels", "apps.kubernetes.io/pod-index", KUBERNETES),
            ("podTemplate.metadata.labels", "statefulset.kubernetes.io/pod-name", KUBERNETES),
            ("podTemplate.metadata.labels", "my team", KEY),
            ("service.labels", "app.kubernetes.io/instance", OPERATOR),
            ("service.annotations", "memcached-operator.example.com/intent", "must not be set", "remove this key"),
            ("service.annotations", "kubectl.kubernetes.io/last-applied-configuration", APPLY),
            ("service.annotations", "a/b/c", KEY),
        )
    ),
    row(
        {"service": {"labels": {"team": "the web team"}}},
        *("spec.service.labels[team]", "the web team", "must have at most 63 letters, digits"),
    ),
    _in_pod("terminationGracePeriodSeconds", 9, "must be between 10 and 86400"),
    at("rollout.minReadySeconds", 86401, "must be between 0 and 86400"),
    row(
        pod(topologySpreadConstraints=[_spread("zone"), _spread("zone")]),
        *(f"{POD}.topologySpreadConstraints", "zone", "must be unique"),
    ),
    _in_pod("securityContext.runAsUser", 0, "does not run as root"),
    _in_pod("securityContext.runAsNonRoot", False, "does not run as root"),
    *(
        at(path, amount, PERCENT)
        for path, amounts in (
            ("rollout.maxUnavailable", ("101%", "%", "1.5%", "-1%", "\u0661%", -1, 2**31)),
            ("rollout.maxSurge", ("1", "1%%", "", -1, 2**31)),
            ("podDisruptionBudget.maxUnavailable", ("101%", "0%", "00%", 0, 2**31)),
        )
        for amount in amounts
    ),
    row(
        {"rollout": {"maxSurge": "0%", "maxUnavailable": 0}},
        *("spec.rollout.maxSurge", "must not be 0 together with spec.rollout.maxUnavailable"),
    ),
    *(at("rollout.restartedAt", time, "RFC 3339") for time in NO_TIMES),
    *(
        row({**METRICS[peers], "networkPolicy": {peers: clients}}, f"spec.networkPolicy.{peers}{field}", *message)
        for peers in METRICS
        for clients, field, *message in CLIENTS
    ),
    row(
        pod(tolerations=[{"operator": "Equal", "value": "a"}]),
        f"{POD}.tolerations[0].key",
        *("must be set unless operator is Exists", "set the key or operator: Exists"),
    ),
    row(
        pod(tolerations=[{"key": "a", "operator": "Exists", "value": "b"}]),
        f"{POD}.tolerations[0].value",
        *("must not be set with operator Exists", "remove it or set operator: Equal"),
    ),
    row(
        pod(tolerations=[{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 60}]),
        f"{POD}.tolerations[0].tolerationSeconds",
        *("must be set only with effect NoExecute", "set effect: NoExecute"),
    ),
    row(
        pod(topologySpreadConstraints=[{**_spread("zone"), "minDomains": 2}]),
        *(f"{POD}.topologySpreadConstraints[0].minDomains", "must be set only with whenUnsatisfiable DoNotSchedule"),
    ),
    row(
        pod(securityContext={"seccompProfile": {"type": "Localhost"}}),
        f"{POD}.securityContext.seccompProfile.localhostProfile",
        "must be set with type Localhost, and only with it",
    ),
    row(
        pod(affinity=_nodes({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1", "2"]}]})),
        *("matchExpressions[0].values", "must be set with In or NotIn, one value with Gt or Lt, and absent"),
    ),
    row(
        pod(affinity={"podAntiAffinity": {REQUIRED: [{"topologyKey": "zone", "matchLabelKeys": ["a"]}]}}),
        *(f"podAntiAffinity.{REQUIRED}[0].labelSelector", "must be set with matchLabelKeys or mismatchLabelKeys"),
    ),
    *(
        row(
            pod(affinity={"podAffinity": {REQUIRED: [{"topologyKey": "zone", "matchLabelKeys": ["a"], **fields}]}}),
            f"podAffinity.{REQUIRED}[0].matchLabelKeys",
            "must not have a key of matchLabels or mismatchLabelKeys",
        )
        for fields in LABEL_KEYS
    ),
    row(
        pod(affinity=_nodes({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]})),
        *("matchFields[0].values", "must have exactly one value, with operator In or NotIn; use matchExpressions"),
    ),
)
"""Violations that Memcached and MemcachedProxy share."""

INVALID_SLOTS: Final[Table] = (
    row(
        {"identity": "Stable", "size": 1001},
        *("spec.size", "must be at most 1000 with spec.identity Stable; use several Memcacheds"),
    ),
    row(
        {"identity": "Stable", "rollout": {"maxUnavailable": "0%", "maxSurge": "25%"}},
        *("spec.rollout.maxUnavailable", "must not be 0 with spec.identity Stable"),
        "spec.rollout.maxSurge",
        "must be 0 with spec.identity Stable, because a slot has one pod; remove the field",
    ),
    at("service.perPod", True, "must not be true without spec.identity Stable"),
    row(
        {"identity": "Stable", "size": 101, "service": {"perPod": True}},
        *("spec.size", "must be at most 100 with spec.service.perPod true"),
    ),
)

VALID: Final[dict[str, Spec]] = {
    "the highest amounts": {"rollout": {"maxUnavailable": "100%", "maxSurge": "999%"}, "podDisruptionBudget": {}},
    "the highest numbers": {"rollout": {"maxUnavailable": 2**31 - 1, "maxSurge": 2**31 - 1}},
    "the lowest budget": {"podDisruptionBudget": {"maxUnavailable": "1%"}},
    "the highest budget": {"podDisruptionBudget": {"maxUnavailable": "100%"}},
    **{
        f"restarted at {time}": {"rollout": {"restartedAt": time}}
        for time in (
            *("2026-12-31T23:59:59+23:59", "0000-01-01T00:00:00-00:00", "2026-02-31T10:00:00Z"),
            f"{DAY}T10:00:00.123456789Z",
        )
    },
}
"""Valid specs that are close to a rule about placement or rollouts."""
