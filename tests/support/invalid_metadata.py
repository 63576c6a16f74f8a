"""Specs of both kinds that violate a rule about inherited metadata, each with its error's parts; and valid ones."""

from typing import Any, Final

LABELS: Final = "spec.inheritedMetadata.labels"
ANNOTATIONS: Final = "spec.inheritedMetadata.annotations"
OPERATOR: Final = "must not be set, because the operator sets it; remove this key"
OTHERS: Final = "must not be set, because the operator, kubectl or Kubernetes sets it; remove this key"
KEY: Final = "must have a key of at most 63 letters, digits"


def _labels(**labels: str) -> dict[str, Any]:
    return {"inheritedMetadata": {"labels": labels}}


def _annotations(**annotations: str) -> dict[str, Any]:
    return {"inheritedMetadata": {"annotations": annotations}}


INVALID: Final[dict[str, tuple[dict[str, Any], tuple[str, ...]]]] = {
    **{
        f"inherited label {name} of the operator": (_labels(**{name: "a"}), (LABELS, name, OPERATOR))
        for name in (
            *(f"app.kubernetes.io/{name}" for name in ("name", "instance", "managed-by", "component")),
            "memcached-operator.example.com/any",
        )
    },
    **{
        f"inherited annotation {name}": (_annotations(**{name: "a"}), (ANNOTATIONS, name, OTHERS))
        for name in (
            "memcached-operator.example.com/intent",
            "kubectl.kubernetes.io/last-applied-configuration",
            "deployment.kubernetes.io/revision",
            "deprecated.deployment.rollback.to",
        )
    },
    "key of an inherited label": (_labels(**{"-a": "b"}), (LABELS, "-a", KEY)),
    "key of an inherited annotation": (_annotations(**{"a/b/c": "d"}), (ANNOTATIONS, "a/b/c", KEY)),
    "value of an inherited label": (_labels(a="-b"), (f"{LABELS}[a]", "-b", "must have at most 63")),
}

VALID: Final[dict[str, dict[str, Any]]] = {
    "inherited labels of Kubernetes": _labels(**{"app.kubernetes.io/part-of": "a", "app.kubernetes.io/version": ""}),
    "the most and longest inherited annotations": _annotations(**{f"a/{number}": "ä" * 1024 for number in range(32)}),
    "empty inherited metadata": {"inheritedMetadata": {}},
}
