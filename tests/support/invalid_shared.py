"""Specs of all kinds that violate a rule about inherited metadata or resources, and valid ones."""

from typing import Any, Final

from support.invalid import Table, at, row

LABELS: Final = "inheritedMetadata.labels"
ANNOTATIONS: Final = "inheritedMetadata.annotations"
OPERATOR: Final = "must not be set, because the operator sets it; remove this key"
OTHERS: Final = "must not be set, because the operator, kubectl or Kubernetes sets it; remove this key"
KEY: Final = "must have a key of at most 63 letters, digits"
HEX: Final = "0123456789abcdef" * 4
RESOURCE: Final = "must name one of cpu, memory, ephemeral-storage"


def _labels(**labels: str) -> dict[str, Any]:
    return {"inheritedMetadata": {"labels": labels}}


def _annotations(**annotations: str) -> dict[str, Any]:
    return {"inheritedMetadata": {"annotations": annotations}}


INVALID: Final[Table] = (
    *(
        row({"image": image}, "spec.image", "must be an image reference such as")
        for image in (HEX, f"a@sha256:{HEX[1:]}", "a" * 248, f"a/{'a' * 254}")
    ),
    *(
        at(f"{LABELS}[{name}]", "a", OPERATOR)
        for name in (
            *(f"app.kubernetes.io/{name}" for name in ("name", "instance", "managed-by", "component")),
            "memcached-operator.example.com/any",
        )
    ),
    *(
        at(f"{ANNOTATIONS}[{name}]", "a", OTHERS)
        for name in (
            *("memcached-operator.example.com/intent", "kubectl.kubernetes.io/last-applied-configuration"),
            *("deployment.kubernetes.io/revision", "deprecated.deployment.rollback.to"),
        )
    ),
    at(f"{LABELS}[-a]", "b", KEY),
    at(f"{ANNOTATIONS}[a/b/c]", "d", KEY),
    row(_labels(a="-b"), f"spec.{LABELS}[a]", "-b", "must have at most 63"),
    row({"resources": {"limits": {"memroy": "1Gi"}}}, "spec.resources.limits", "memroy", RESOURCE),
    row({"resources": {"requests": {"memroy": "1Gi"}}}, "spec.resources.requests", "memroy", RESOURCE),
    at("resources.limits[cpu]", "-1", "must be at least 0"),
    at("resources.requests[cpu]", "-1", "must be at least 0"),
    row(
        {"resources": {"limits": {"cpu": "250m"}, "requests": {"cpu": "750m"}}},
        *("spec.resources.requests", "cpu", "750m", "250m", "request or raise the limit"),
    ),
)

VALID: Final[dict[str, dict[str, Any]]] = {
    **{
        f"image {image}": {"image": image}
        for image in (HEX[1:], f"a/{HEX}", f"{HEX}:1", f"a@sha256:{HEX}", "a" * 247, f"a/{'a' * 253}")
    },
    "inherited labels of Kubernetes": _labels(**{"app.kubernetes.io/part-of": "a", "app.kubernetes.io/version": ""}),
    "the most and longest inherited annotations": _annotations(**{f"a/{number}": "ä" * 1024 for number in range(32)}),
    "empty inherited metadata": {"inheritedMetadata": {}},
}
