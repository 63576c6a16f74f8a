"""What runs, with which permissions, from which images."""

import re
from collections.abc import Iterator
from typing import Any, Final

from bundle.checks.subject import Fault, Subject, of_csv
from bundle.images import RELATED, related_images, related_variables
from memcached_api.image import is_reference

TARGETS: Final = {"fieldRef": {"fieldPath": "metadata.annotations['olm.targetNamespaces']"}}
DEPLOYMENTS: Final = ("memcached-operator-controller-manager", "memcached-operator-webhook")
WATCHER: Final = DEPLOYMENTS[0]
ROLES: Final = ("config/rbac/role.yaml", "config/rbac/leader_election_role.yaml")
_DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_OWN_CERTIFICATES: Final = "--manage-certificates"
_RESTRICTED: Final = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def pods(subject: Subject) -> Iterator[Fault]:
    """7: two Deployments that need no Secret, are told what to watch, ask for resources and are restricted."""
    names = [each["name"] for each in subject.deployments]
    if sorted(names) != sorted(DEPLOYMENTS):
        yield of_csv("deployments", ", ".join(names), f"must be {' and '.join(DEPLOYMENTS)}")
    for each in subject.deployments:
        place, pod = f"deployments[{each['name']}]", each["spec"]["template"]["spec"]
        if not _DNS_LABEL.fullmatch(each["name"]):
            yield of_csv(f"{place}.name", each["name"], "must be a DNS label, without dots: OLM makes a Service of it")
        for volume in pod.get("volumes", []):
            if "secret" in volume or "projected" in volume:
                yield of_csv(
                    f"{place}.volumes", volume["name"], "must go: OLM mounts its own certificate, and only that"
                )
        if pod.get("securityContext", {}).get("runAsNonRoot") is not True:
            yield of_csv(f"{place}.securityContext.runAsNonRoot", None, "must be true: Pod Security restricted")
        if pod.get("securityContext", {}).get("seccompProfile", {}).get("type") != "RuntimeDefault":
            yield of_csv(
                f"{place}.securityContext.seccompProfile", None, "must be RuntimeDefault: Pod Security restricted"
            )
        for container in pod["containers"]:
            yield from _container(place, each["name"], container)


def _container(place: str, deployment: str, container: dict[str, Any]) -> Iterator[Fault]:
    place = f"{place}.containers[{container['name']}]"
    if _OWN_CERTIFICATES in container.get("args", []):
        yield of_csv(f"{place}.args", _OWN_CERTIFICATES, "must go: OLM issues the certificate")
    variables = {variable["name"]: variable for variable in container.get("env", [])}
    if deployment == WATCHER and variables.get("WATCH_NAMESPACE", {}).get("valueFrom") != TARGETS:
        yield of_csv(f"{place}.env[WATCH_NAMESPACE]", str(variables.get("WATCH_NAMESPACE")), f"must be from {TARGETS}")
    requests = container.get("resources", {}).get("requests", {})
    for resource in ("cpu", "memory"):
        if resource not in requests:
            yield of_csv(f"{place}.resources.requests.{resource}", None, "must be asked for")
    context = container.get("securityContext", {})
    for field, wanted in _RESTRICTED.items():
        if context.get(field) != wanted:
            yield of_csv(f"{place}.securityContext.{field}", str(context.get(field)), f"must be {wanted}")


def permissions(subject: Subject) -> Iterator[Fault]:
    """8: the controller has exactly the rules of config/rbac, the webhook an account and none, and nobody more."""
    install = subject.spec["install"]["spec"]
    for each in install.get("clusterPermissions", []):
        remedy = "must be under permissions: OLM narrows these to the namespaces that are watched"
        yield of_csv("clusterPermissions", each["serviceAccountName"], remedy)
    found = {each["serviceAccountName"]: each["rules"] for each in install.get("permissions", [])}
    for each in subject.deployments:
        account = each["spec"]["template"]["spec"].get("serviceAccountName")
        if account not in found:
            yield of_csv("permissions", account, "must have an entry, be it without rules: else OLM makes no account")
    declared = [rule for path in ROLES for role in subject.configured(path) for rule in role["rules"]]
    wanted = {name: declared if name == WATCHER else [] for name in DEPLOYMENTS}
    for account, rules in found.items():
        for rule in _beyond(rules, wanted.get(account, [])):
            yield of_csv(f"permissions[{account}]", _said(rule), f"must go: {', '.join(ROLES)} do not grant it")
        for rule in _beyond(wanted.get(account, []), rules):
            yield of_csv(f"permissions[{account}]", _said(rule), f"is missing, but in {', '.join(ROLES)}")


def _beyond(rules: list[Any], others: list[Any]) -> list[Any]:
    return [rule for rule in rules if rule not in others]


def _said(rule: dict[str, Any]) -> str:
    return f"{','.join(rule['verbs'])} {','.join(rule.get('resources', rule.get('nonResourceURLs', [])))}"


def images(subject: Subject) -> Iterator[Fault]:
    """9: relatedImages are all images there are, each a full reference: clusters without a network copy just these."""
    wanted = {each["image"] for each in related_images(subject.deployments)}
    found = [each.get("image", "") for each in subject.spec.get("relatedImages", [])]
    for image in sorted(wanted - set(found)):
        yield of_csv("spec.relatedImages", image, "is missing: run `make bundle`")
    for image in found:
        if image not in wanted or found.count(image) > 1:
            yield of_csv(
                "spec.relatedImages", image, f"must stand once, and be of a container or a {RELATED}* variable"
            )
        if not is_reference(image) or "/" not in image:
            yield of_csv("spec.relatedImages", image, "must be a full reference, with the registry's host")
    values = [set(related_variables(container).items()) for container in subject.containers]
    if any(value != values[0] for value in values):
        yield of_csv(f"env[{RELATED}*]", str(values), "must be the same for both processes")
    ours = subject.annotations.get("containerImage")
    if ours not in {container["image"] for container in subject.containers}:
        yield of_csv("metadata.annotations[containerImage]", ours, "must be the image of the Deployments")
