"""Webhook definitions: the validators of OLM's own tools do not look at them, OLM refuses them at installation."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from bundle.checks.kinds import handlers
from bundle.checks.subject import MAX_NAME_LENGTH, Finding, Subject, of_csv
from bundle.webhooks import TYPES

CONFIGURED: Final = "config/webhook/manifests.yaml"
SERVICE_PORT: Final = 443
POD_PORT: Final = 9443
_SLOWEST: Final = 10
"""Seconds; Kubernetes allows 30, but a webhook that is away then stops every client for as long."""
_SEGMENT: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME: Final = re.compile(rf"{_SEGMENT}(\.{_SEGMENT}){{2,}}")
_FORBIDDEN: Final = {"*", "operators.coreos.com", "olm.operatorframework.io", "admissionregistration.k8s.io"}
_COPIED: Final = ("rules", "failurePolicy", "matchPolicy", "timeoutSeconds", "reinvocationPolicy", "objectSelector")

_FIELDS: Final = frozenset(
    {
        "type", "generateName", "deploymentName", "containerPort", "targetPort", "webhookPath", "sideEffects",
        "admissionReviewVersions", *_COPIED,
    }
)  # fmt: skip
"""Those of an admission webhook: the other ones are for conversions, and a namespaceSelector OLM writes itself."""


def webhooks(subject: Subject) -> Iterator[Finding]:
    """6: every definition is one that OLM takes, and leads to a handler; all of config/webhook is there."""
    names = Counter(each.get("generateName") for each in subject.webhooks)
    for each in subject.webhooks:
        place = f"webhookdefinitions[{each.get('generateName')}]"
        yield from _name(place, each, names)
        for field in sorted(each.keys() - _FIELDS):
            yield of_csv(f"{place}.{field}", each[field], "must go: it is for conversions, or OLM has no such field")
        yield from _target(subject, place, each)
        yield from _behaviour(place, each)
        yield from _rules(place, each)
    yield from _as_configured(subject)


def _name(place: str, each: dict[str, Any], names: Counter[Any]) -> Iterator[Finding]:
    name = str(each.get("generateName"))
    if len(name) > MAX_NAME_LENGTH or not _NAME.fullmatch(name):
        remedy = f"must be a DNS name of three parts or more, at most {MAX_NAME_LENGTH} characters: it is in a label"
        yield of_csv(f"{place}.generateName", name, remedy)
    if names[each.get("generateName")] > 1:
        yield of_csv(f"{place}.generateName", name, "must be unique among webhooks of all types")
    if each.get("type") not in TYPES.values():
        yield of_csv(f"{place}.type", each.get("type"), f"must be one of {', '.join(TYPES.values())}")


def _target(subject: Subject, place: str, each: dict[str, Any]) -> Iterator[Finding]:
    deployments = {deployment["name"]: deployment for deployment in subject.deployments}
    target = deployments.get(str(each.get("deploymentName")))
    if target is None:
        remedy = f"must be a Deployment of the CSV: {', '.join(sorted(deployments))}"
        yield of_csv(f"{place}.deploymentName", each.get("deploymentName"), remedy)
    for field, port in (("containerPort", SERVICE_PORT), ("targetPort", POD_PORT)):
        if each.get(field) != port:
            yield of_csv(f"{place}.{field}", each.get(field), f"must be {port}, and written: OLM v1 takes none for 0")
    open_ports = [
        port["containerPort"]
        for container in (target["spec"]["template"]["spec"]["containers"] if target else ())
        for port in container.get("ports", [])
    ]
    if target and each.get("targetPort") not in open_ports:
        yield of_csv(f"{place}.targetPort", each.get("targetPort"), f"must be a port of the pod: {open_ports}")
    served = handlers(subject)
    if each.get("webhookPath") not in served:
        yield of_csv(f"{place}.webhookPath", each.get("webhookPath"), f"must be served: {', '.join(sorted(served))}")


def _behaviour(place: str, each: dict[str, Any]) -> Iterator[Finding]:
    for field, wanted in (("sideEffects", "None"), ("admissionReviewVersions", ["v1"])):
        if each.get(field) != wanted:
            yield of_csv(f"{place}.{field}", each.get(field), f"must be {wanted}")
    seconds = each.get("timeoutSeconds")
    if not isinstance(seconds, int) or not 1 <= seconds <= _SLOWEST:
        yield of_csv(f"{place}.timeoutSeconds", seconds, f"must be written, and be 1 to {_SLOWEST}")


def _rules(place: str, each: dict[str, Any]) -> Iterator[Finding]:
    rules: list[dict[str, Any]] = each.get("rules") or []
    if not rules:
        yield of_csv(f"{place}.rules", None, "must name the kinds it handlers")
    for rule in rules:
        for group in _FORBIDDEN.intersection(rule.get("apiGroups", [])):
            yield of_csv(f"{place}.rules.apiGroups", group, "must be groups of our own: OLM refuses this one")
        for resource in rule.get("resources", []):
            if "*" in resource:
                yield of_csv(f"{place}.rules.resources", resource, "must be named one by one")


def _as_configured(subject: Subject) -> Iterator[Finding]:
    wanted = {
        webhook["name"]: {"type": TYPES[each["kind"]], "webhookPath": webhook["clientConfig"]["service"]["path"]}
        | {key: webhook[key] for key in _COPIED if key in webhook}
        for each in subject.configured(CONFIGURED)
        for webhook in each["webhooks"]
    }
    found = {each.get("generateName"): each for each in subject.webhooks}
    for name in sorted(wanted.keys() | {str(each) for each in found}):
        for key in ("type", "webhookPath", *_COPIED):
            here, there = found.get(name, {}).get(key), wanted.get(name, {}).get(key)
            if here != there:
                remedy = f"must be as in {CONFIGURED}, {there}: run `make bundle`"
                yield of_csv(f"webhookdefinitions[{name}].{key}", here, remedy)
