"""Converts webhook configurations to the webhookdefinitions of a ClusterServiceVersion."""

from typing import Any, Final

from bundle.errors import BundleError
from bundle.objects import Object, Rendered, name_of

TYPES: Final = {
    "MutatingWebhookConfiguration": "MutatingAdmissionWebhook",
    "ValidatingWebhookConfiguration": "ValidatingAdmissionWebhook",
}
_COPIED: Final = (
    "admissionReviewVersions", "failurePolicy", "matchPolicy", "objectSelector", "reinvocationPolicy", "rules",
    "sideEffects", "timeoutSeconds",
)  # fmt: skip
_SET_BY_OLM: Final = {"name", "clientConfig", "namespaceSelector"}
_UNSUPPORTED: Final = {"matchConditions"}
"""Fields that webhook definitions do not have: see docs/decisions/bundle.md."""


def definitions(rendered: Rendered) -> list[dict[str, Any]]:
    """One definition for each webhook, sorted by name. Raises BundleError for a webhook that cannot be converted."""
    found = [
        _definition(rendered, each["kind"], webhook) for each in rendered.of(*TYPES) for webhook in each["webhooks"]
    ]
    return sorted(found, key=lambda definition: definition["generateName"])


def _definition(rendered: Rendered, kind: str, webhook: dict[str, Any]) -> dict[str, Any]:
    name = webhook["name"]
    if unknown := webhook.keys() - {*_COPIED, *_SET_BY_OLM, *_UNSUPPORTED}:
        raise BundleError(f"webhook {name} has {', '.join(sorted(unknown))}, which this generator does not support")
    service = _service(rendered, name, webhook["clientConfig"]["service"]["name"])
    deployment = _deployment(rendered, service)
    port = _port(service, webhook["clientConfig"]["service"].get("port", 443))
    return {
        "type": TYPES[kind],
        "generateName": name,
        "deploymentName": name_of(deployment),
        # Both must be explicit: OLM v1 reads an absent port as 0.
        "containerPort": port["port"],
        "targetPort": _number(deployment, port["targetPort"]),
        "webhookPath": webhook["clientConfig"]["service"]["path"],
        **{key: webhook[key] for key in _COPIED if key in webhook},
    }


def _service(rendered: Rendered, webhook: str, name: str) -> Object:
    for each in rendered.of("Service"):
        if name_of(each) == name:
            return each
    raise BundleError(f"webhook {webhook} names the Service {name}, which is not in config/webhook")


def _deployment(rendered: Rendered, service: Object) -> Object:
    selector = service["spec"]["selector"].items()
    for each in rendered.of("Deployment"):
        if selector <= each["spec"]["template"]["metadata"]["labels"].items():
            return each
    raise BundleError(f"the Service {name_of(service)} selects the pods of no Deployment: correct its selector")


def _port(service: Object, number: int) -> dict[str, Any]:
    for port in service["spec"]["ports"]:
        if port["port"] == number:
            return port
    raise BundleError(f"the Service {name_of(service)} has no port {number}, which its webhooks use")


def _number(deployment: Object, port: int | str) -> int:
    if isinstance(port, int):
        return port
    for container in deployment["spec"]["template"]["spec"]["containers"]:
        for each in container.get("ports", []):
            if each.get("name") == port:
                return each["containerPort"]
    raise BundleError(f"the Deployment {name_of(deployment)} has no port named {port!r}: see config/webhook")


def services(rendered: Rendered) -> set[str]:
    """The Services of the webhooks: OLM creates its own for each Deployment."""
    return {webhook["clientConfig"]["service"]["name"] for each in rendered.of(*TYPES) for webhook in each["webhooks"]}
