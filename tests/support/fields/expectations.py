"""The expected denials, and the accepted changes that no child shows. Everything else is accepted and visible.

The keys are names of fields and labels of steps. A field that is not listed gets the strict checks. An entry that does
not apply fails its case, one that matches no case fails tests/integration/test_fields.py.
"""

from support.fields.leaves import Leaf
from support.fields.steps import Step

KEPT = "the Service keeps the node port of a port that stays"
ONE_VERSION = "v1 is the only version, and the API server sets it if it is absent"
ALWAYS_SET = "true is the only value, and the operator sets it if it is absent"
POOLED = "it means Pooled, and the other value is denied"
NONE = "neither has a PodMonitor, or a PrometheusRule"
LATER = "only the next change of size needs it"
ONE_VALUE = (ONE_VERSION, ALWAYS_SET, POOLED)
"""Reasons for which the field has no effect at all."""

TLS = ("secretName", "clientAuth", "clientCASecretName", "port", "plaintext", "minVersion")
TEXT = ("-1x", "Not Valid!")
PASSED_ON = tuple(
    f"memcacheds/{path}"
    for path in (
        "podTemplate.spec.nodeSelector.team",
        "podTemplate.spec.priorityClassName",
        "podTemplate.spec.runtimeClassName",
        "podTemplate.spec.serviceAccountName",
        "networkPolicy.from[].ipBlock.except[]",
        "networkPolicy.metricsFrom[].ipBlock.except[]",
    )
)
"""Fields with texts whose syntax only the API server checks, when it gets the child."""

DENIED: dict[str, dict[str, str]] = {
    "memcacheds/imagePullSecrets[].name": {"absent": "spec.imagePullSecrets[0].name: Required value"},
    "memcacheds/identity": {
        "two": "cannot be changed, because all pods and their addresses would change",
        "Stable": "cannot be changed, because all pods and their addresses would change",
    },
    **{
        f"memcacheds/{parent}.{name}": {
            "empty": f"spec.{parent}.secretName: Required value",
            **({"absent": f"spec.{parent}.secretName: Required value"} if name == "secretName" else {}),
        }
        for parent, names in (("tls", TLS), ("auth", ("secretName",)))
        for name in names
    },
    "memcacheds/scaling.warm.duration": {"absent": "spec.scaling.warm.duration: Required value"},
    "memcacheds/cache.extstore.size": {"absent": "spec.cache.extstore.size: Required value"},
    "memcacheds/cache.maxConnections": {"minimum": "must be at least 30 for 4 threads"},
    **{
        f"memcacheds/networkPolicy.{peers}[].ipBlock.cidr": {
            "absent": f"spec.networkPolicy.{peers}[0].ipBlock.cidr: Required value"
        }
        for peers in ("from", "metricsFrom")
    },
    **{
        f"memcacheds/networkPolicy.{peers}[].{name}": {"absent": "must set podSelector, namespaceSelector or ipBlock"}
        for peers in ("from", "metricsFrom")
        for name in ("podSelector", "namespaceSelector")
    },
    "appservices/image": {"absent": "spec.image: Required value", "empty": "spec.image: Required value"},
    "appservices/envs[].name": {"absent": "spec.envs[0].name: Required value"},
    **{
        f"appservices/envs[].valueFrom.{path}": {"absent": f"spec.envs[0].valueFrom.{path}: Required value"}
        for path in (
            "configMapKeyRef.name",
            "configMapKeyRef.key",
            "secretKeyRef.name",
            "secretKeyRef.key",
            "fieldRef.fieldPath",
            "resourceFieldRef.resource",
        )
    },
    "appservices/ports[].port": {"absent": "spec.ports[0].port: Required value"},
    # A rule of the whole list: the name refers to another port.
    "appservices/ports[].targetPort": dict.fromkeys(("-1x", "Not Valid!"), "must be the number of the port that the"),
    # The API server names a value of a map in this way if its rule, not its type, is violated.
    **{
        f"memcacheds/{path}.team": dict.fromkeys(TEXT, f"spec.{path}[team]: Invalid value")
        for path in (
            "podTemplate.metadata.labels",
            "service.labels",
            "monitoring.podMonitor.labels",
            "monitoring.rules.labels",
        )
    },
    **{
        f"{kind}/inheritedMetadata.labels.team": dict.fromkeys(
            TEXT, "spec.inheritedMetadata.labels[team]: Invalid value"
        )
        for kind in ("memcacheds", "appservices")
    },
    **{
        f"{kind}/{parent}resources.{part}.{name}": {"-1": f"spec.{parent}resources.{part}[{name}]: Invalid value"}
        for kind, parent in (("memcacheds", ""), ("memcacheds", "agent."), ("appservices", ""))
        for part in ("limits", "requests")
        for name in ("cpu", "memory")
    },
}
"""Parts of the messages of denials, by field and step. Steps with an invalid value have the field's path as default."""

VALID: dict[str, tuple[str, ...]] = {
    "appservices/envs[].name": ("-1x",),
    "appservices/envs[].value": ("-1x", "Not Valid!"),
    "appservices/envs[].valueFrom.configMapKeyRef.key": ("-1x",),
    "appservices/envs[].valueFrom.secretKeyRef.key": ("-1x",),
    "appservices/envs[].valueFrom.fieldRef.apiVersion": ("-1x", "Not Valid!"),
    "appservices/envs[].valueFrom.resourceFieldRef.divisor": ("-1",),
    "memcacheds/podTemplate.metadata.annotations.team": TEXT,
    "memcacheds/service.annotations.team": TEXT,
    "memcacheds/inheritedMetadata.annotations.team": TEXT,
    "appservices/inheritedMetadata.annotations.team": TEXT,
    **dict.fromkeys(PASSED_ON, TEXT),
}
"""Labels of `steps.INVALID` with a value that a field accepts."""

UNAPPLICABLE: dict[str, tuple[str, ...]] = {
    "appservices/envs[].valueFrom.fieldRef.apiVersion": ("-1x", "Not Valid!"),
    "appservices/envs[].valueFrom.resourceFieldRef.divisor": ("-1",),
    **dict.fromkeys(PASSED_ON, TEXT),
}
"""Values that a field accepts although the API server denies the Deployment: the operator must report the problem."""

UNSEEN: dict[str, dict[str, str]] = {
    "appservices/envs[].valueFrom.fieldRef.apiVersion": {"absent -> one": ONE_VERSION, "one -> absent": ONE_VERSION},
    "appservices/ports[].nodePort": {"one -> absent": KEPT},
    "memcacheds/podTemplate.spec.securityContext.runAsNonRoot": {
        "absent -> one": ALWAYS_SET,
        "one -> absent": ALWAYS_SET,
    },
    "memcacheds/monitoring.podMonitor.enabled": {"one -> empty": NONE},
    "memcacheds/monitoring.rules.enabled": {"one -> empty": NONE},
    "memcacheds/monitoring.tls.enabled": {"one -> empty": "both are HTTP"},
    "memcacheds/monitoring.insight.enabled": {"one -> empty": "neither predicts"},
    "memcacheds/scaling.warm.duration": dict.fromkeys(("one -> two", "two -> one"), LATER),
    "memcacheds/identity": {"base -> one": POOLED, "one -> absent": POOLED, "one -> empty": POOLED},
}
"""Changes that no child shows, with the reason, by field and the labels of the steps before and after."""


def denial(leaf: Leaf, step: Step) -> str | None:
    """A part of the message with which the API server denies a step; None if it accepts it."""
    if step.label in VALID.get(leaf.name, ()):
        return None
    return DENIED.get(leaf.name, {}).get(step.label, f"{leaf.location}:" if step.invalid else None)
