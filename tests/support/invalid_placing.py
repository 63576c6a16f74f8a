"""Parts of Memcached specs that violate a rule about placement, rollouts or children, each with its error's parts."""

from typing import Any, Final

from support.placing_edges import REQUIRED, pod

OPERATOR = "must not be set, because the operator sets it"
PERCENT = "such as 1 or 25%"
VALUES = "must be set with In or NotIn, and absent otherwise"
KEY = "must have a key of at most 63 letters, digits"
POD = "spec.podTemplate.spec"


def _spread(key: str) -> dict[str, Any]:
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway"}


def _nodes(term: dict[str, Any]) -> dict[str, Any]:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}


LABEL_KEYS: Final[dict[str, dict[str, Any]]] = {
    "matchLabels": {"labelSelector": {"matchLabels": {"a": "b"}}},
    "mismatchLabelKeys": {"labelSelector": {}, "mismatchLabelKeys": ["a"]},
}

INVALID_PLACING: Final[dict[str, tuple[dict[str, Any], tuple[str, ...]]]] = {
    "label of the operator": (
        {"podTemplate": {"metadata": {"labels": {"app.kubernetes.io/name": "mine"}}}},
        ("spec.podTemplate.metadata.labels", "app.kubernetes.io/name", OPERATOR),
    ),
    "annotation of a restart": (
        {"podTemplate": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}},
        (
            "spec.podTemplate.metadata.annotations",
            "restartedAt",
            "must not be set, because kubectl rollout restart sets it; remove this key; to restart the pods, set",
        ),
    ),
    "annotation of the operator in pods": (
        {"podTemplate": {"metadata": {"annotations": {"memcached-operator.example.com/intent": "mine"}}}},
        ("spec.podTemplate.metadata.annotations", "memcached-operator.example.com/intent", OPERATOR),
    ),
    "label of a ReplicaSet": (
        {"podTemplate": {"metadata": {"labels": {"pod-template-hash": "mine"}}}},
        ("spec.podTemplate.metadata.labels", "pod-template-hash", "must not be set, because Kubernetes sets it"),
    ),
    "label of a revision": (
        {"podTemplate": {"metadata": {"labels": {"controller-revision-hash": "mine"}}}},
        ("spec.podTemplate.metadata.labels", "controller-revision-hash", "because Kubernetes sets it"),
    ),
    "label of a slot's number": (
        {"podTemplate": {"metadata": {"labels": {"apps.kubernetes.io/pod-index": "0"}}}},
        ("spec.podTemplate.metadata.labels", "apps.kubernetes.io/pod-index", "because Kubernetes sets it"),
    ),
    "label of a slot": (
        {"podTemplate": {"metadata": {"labels": {"statefulset.kubernetes.io/pod-name": "cache-0"}}}},
        ("spec.podTemplate.metadata.labels", "statefulset.kubernetes.io/pod-name", "because Kubernetes sets it"),
    ),
    "label of the Service": (
        {"service": {"labels": {"app.kubernetes.io/instance": "mine"}}},
        ("spec.service.labels", "app.kubernetes.io/instance", OPERATOR),
    ),
    "annotation of the operator": (
        {"service": {"annotations": {"memcached-operator.example.com/intent": "mine"}}},
        ("spec.service.annotations", "memcached-operator.example.com/intent", "must not be set", "remove this key"),
    ),
    "annotation of kubectl apply": (
        {"service": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}},
        ("spec.service.annotations", "last-applied", "must not be set, because kubectl apply sets it; remove this key"),
    ),
    "label key with spaces": (
        {"podTemplate": {"metadata": {"labels": {"my team": "web"}}}},
        ("spec.podTemplate.metadata.labels", "my team", KEY),
    ),
    "annotation key with two slashes": (
        {"service": {"annotations": {"a/b/c": "web"}}},
        ("spec.service.annotations", "a/b/c", KEY),
    ),
    "label value with spaces": (
        {"service": {"labels": {"team": "the web team"}}},
        ("spec.service.labels[team]", "the web team", "must have at most 63 letters, digits"),
    ),
    "short grace period": (
        pod(terminationGracePeriodSeconds=9),
        ("spec.podTemplate.spec.terminationGracePeriodSeconds", "9", "must be between 10 and 86400"),
    ),
    "long ready time": (
        {"rollout": {"minReadySeconds": 86401}},
        ("spec.rollout.minReadySeconds", "86401", "must be between 0 and 86400"),
    ),
    "two equal constraints": (
        pod(topologySpreadConstraints=[_spread("zone"), _spread("zone")]),
        ("spec.podTemplate.spec.topologySpreadConstraints", "zone", "must be unique"),
    ),
    "root": (
        pod(securityContext={"runAsUser": 0}),
        ("spec.podTemplate.spec.securityContext.runAsUser", "0", "does not run as root"),
    ),
    "root allowed": (
        pod(securityContext={"runAsNonRoot": False}),
        ("spec.podTemplate.spec.securityContext.runAsNonRoot", "does not run as root"),
    ),
    "more than all pods unavailable": (
        {"rollout": {"maxUnavailable": "101%"}},
        ("spec.rollout.maxUnavailable", "101%", PERCENT),
    ),
    "surge without percent sign": ({"rollout": {"maxSurge": "1"}}, ("spec.rollout.maxSurge", "1", PERCENT)),
    "rollout without progress": (
        {"rollout": {"maxSurge": "0%", "maxUnavailable": 0}},
        ("spec.rollout.maxSurge", "must not be 0 together with spec.rollout.maxUnavailable"),
    ),
    "time without zone": (
        {"rollout": {"restartedAt": "2026-11-22T10:00:00"}},
        ("spec.rollout.restartedAt", "2026-11-22T10:00:00", "RFC 3339"),
    ),
    "budget that blocks drains": (
        {"podDisruptionBudget": {"maxUnavailable": 0}},
        ("spec.podDisruptionBudget.maxUnavailable", "0", PERCENT),
    ),
    "no clients of metrics": (
        {"monitoring": {}, "networkPolicy": {"metricsFrom": []}},
        ("spec.networkPolicy.metricsFrom", "must not be empty"),
    ),
    "client of metrics without a selector": (
        {"monitoring": {}, "networkPolicy": {"metricsFrom": [{}]}},
        ("spec.networkPolicy.metricsFrom[0]", "must set podSelector, namespaceSelector or ipBlock"),
    ),
    "client of metrics with both": (
        {
            "monitoring": {},
            "networkPolicy": {"metricsFrom": [{"podSelector": {}, "ipBlock": {"cidr": "192.0.2.0/24"}}]},
        },
        ("spec.networkPolicy.metricsFrom[0].ipBlock", "must not be set together with a selector"),
    ),
    "no range of metrics": (
        {"monitoring": {}, "networkPolicy": {"metricsFrom": [{"ipBlock": {"cidr": "192.0.2.0"}}]}},
        ("spec.networkPolicy.metricsFrom[0].ipBlock.cidr", "must be a range of IP addresses"),
    ),
    "no clients": ({"networkPolicy": {"from": []}}, ("spec.networkPolicy.from", "must not be empty")),
    "client without a field": (
        {"networkPolicy": {"from": [{}]}},
        ("spec.networkPolicy.from[0]", "must set podSelector, namespaceSelector or ipBlock"),
    ),
    "client with all fields": (
        {"networkPolicy": {"from": [{"podSelector": {}, "ipBlock": {"cidr": "192.0.2.0/24"}}]}},
        ("spec.networkPolicy.from[0].ipBlock", "must not be set together with a selector"),
    ),
    "slots: more than the status has room for": (
        {"identity": "Stable", "size": 1001},
        ("spec.size", "must be at most 1000 with spec.identity Stable; use several Memcacheds"),
    ),
    "slots: another rollout": (
        {"identity": "Stable", "rollout": {"maxUnavailable": "0%", "maxSurge": "25%"}},
        (
            "spec.rollout.maxUnavailable",
            "must not be 0 with spec.identity Stable",
            "spec.rollout.maxSurge",
            "must be 0 with spec.identity Stable, because a slot has one pod; remove the field",
        ),
    ),
    "slots: Services without slots": (
        {"service": {"perPod": True}},
        ("spec.service.perPod", "must not be true without spec.identity Stable"),
    ),
    "client without a prefix length": (
        {"networkPolicy": {"from": [{"ipBlock": {"cidr": "192.0.2.0"}}]}},
        (
            "spec.networkPolicy.from[0].ipBlock.cidr",
            "192.0.2.0",
            "must be a range of IP addresses, such as 192.0.2.0/24",
        ),
    ),
    "client without values": (
        {"networkPolicy": {"from": [{"podSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}]}},
        ("spec.networkPolicy.from[0].podSelector.matchExpressions[0].values", VALUES),
    ),
    "toleration without key": (
        pod(tolerations=[{"operator": "Equal", "value": "a"}]),
        (f"{POD}.tolerations[0].key", "must be set unless operator is Exists", "set the key or operator: Exists"),
    ),
    "toleration of all values with a value": (
        pod(tolerations=[{"key": "a", "operator": "Exists", "value": "b"}]),
        (f"{POD}.tolerations[0].value", "must not be set with operator Exists", "remove it or set operator: Equal"),
    ),
    "toleration with time": (
        pod(tolerations=[{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 60}]),
        (f"{POD}.tolerations[0].tolerationSeconds", "must be set only with effect NoExecute", "set effect: NoExecute"),
    ),
    "domains of a preference": (
        pod(topologySpreadConstraints=[{**_spread("zone"), "minDomains": 2}]),
        (f"{POD}.topologySpreadConstraints[0].minDomains", "must be set only with whenUnsatisfiable DoNotSchedule"),
    ),
    "profile without a file": (
        pod(securityContext={"seccompProfile": {"type": "Localhost"}}),
        (f"{POD}.securityContext.seccompProfile.localhostProfile", "must be set with type Localhost, and only with it"),
    ),
    "two numbers to compare": (
        pod(affinity=_nodes({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1", "2"]}]})),
        (
            "matchExpressions[0].values",
            "must be set with In or NotIn, one value with Gt or Lt, and absent",
        ),
    ),
    "label keys without a selector": (
        pod(affinity={"podAntiAffinity": {REQUIRED: [{"topologyKey": "zone", "matchLabelKeys": ["a"]}]}}),
        (f"podAntiAffinity.{REQUIRED}[0].labelSelector", "must be set with matchLabelKeys or mismatchLabelKeys"),
    ),
    **{
        f"a label key that is also in {name}": (
            pod(affinity={"podAffinity": {REQUIRED: [{"topologyKey": "zone", "matchLabelKeys": ["a"], **fields}]}}),
            (f"podAffinity.{REQUIRED}[0].matchLabelKeys", "must not have a key of matchLabels or mismatchLabelKeys"),
        )
        for name, fields in LABEL_KEYS.items()
    },
    "two names of nodes": (
        pod(affinity=_nodes({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]})),
        ("matchFields[0].values", "must have exactly one value, with operator In or NotIn; use matchExpressions"),
    ),
}
