"""What runs, with which permissions, from which images."""

import re
from collections.abc import Iterator
from typing import Any, Final

from bundle.checks.subject import Finding, Subject, of_csv
from bundle.images import RELATED, related_images, related_variables
from bundle.objects import Object, containers, name_of
from bundle.permissions import BINDINGS
from bundle.release import MANIFESTS
from memcached_api.image import is_reference
from memcached_api.values import nested_field

TARGETS: Final = {"fieldRef": {"fieldPath": "metadata.annotations['olm.targetNamespaces']"}}
DEPLOYMENTS: Final = ("memcached-operator-controller-manager", "memcached-operator-webhook")
WATCHER: Final = DEPLOYMENTS[0]
PREFIXED: Final = "memcached-operator-"
"""What config/overlays/olm puts before every name."""
_KUSTOMIZATION: Final = "/kustomization.yaml"
ROLES: Final = ("config/rbac/role.yaml", "config/rbac/leader_election_role.yaml")
_DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_OWN_CERTIFICATES: Final = "--manage-certificates"
_CERTIFICATE: Final = "--webhook-cert-path"
MOUNTED: Final = "/tmp/k8s-webhook-server/serving-certs"
"""Where OLM, v0 and v1, mounts the certificate under the names that our webhook reads."""
_VOLUMES: Final = ("emptyDir", "configMap", "downwardAPI")
_LOOSENED: Final = {"privileged": True, "runAsNonRoot": False, "runAsUser": 0}
_RESTRICTED: Final = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def pods(subject: Subject) -> Iterator[Finding]:
    """7: two Deployments that need no Secret, are told what to watch, ask for resources and are restricted."""
    names = [each["name"] for each in subject.deployments]
    if sorted(names) != sorted(DEPLOYMENTS):
        yield of_csv("deployments", ", ".join(names), f"must be {' and '.join(DEPLOYMENTS)}, each once")
    for each in subject.deployments:
        place, pod = f"deployments[{each['name']}]", each["spec"]["template"]["spec"]
        if not _DNS_LABEL.fullmatch(each["name"]):
            yield of_csv(f"{place}.name", each["name"], "must be a DNS label, without dots: OLM makes a Service of it")
        if each["spec"].get("replicas", 1) < 1:
            yield of_csv(f"{place}.replicas", each["spec"]["replicas"], "must be 1 at least: nobody would work")
        yield from _pod(place, pod)
        for container in containers([each]):
            yield from _container(f"{place}.containers[{container['name']}]", container)
        for container in pod["containers"]:
            yield from _told(f"{place}.containers[{container['name']}]", each["name"], container)


def _pod(place: str, pod: dict[str, Any]) -> Iterator[Finding]:
    for volume in pod.get("volumes", []):
        if not volume.keys() <= {"name", *_VOLUMES}:
            remedy = f"must be one of {', '.join(_VOLUMES)}: OLM mounts its own certificate, and only that"
            yield of_csv(f"{place}.volumes", volume["name"], remedy)
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.get(field):
            yield of_csv(f"{place}.{field}", pod[field], "must go: Pod Security restricted")
    context = pod.get("securityContext", {})
    if context.get("runAsNonRoot") is not True:
        value = context.get("runAsNonRoot")
        yield of_csv(f"{place}.securityContext.runAsNonRoot", value, "must be true: Pod Security restricted")
    if nested_field(context, "seccompProfile", "type") != "RuntimeDefault":
        value = context.get("seccompProfile")
        yield of_csv(
            f"{place}.securityContext.seccompProfile", value, "must be RuntimeDefault: Pod Security restricted"
        )


def _container(place: str, container: dict[str, Any]) -> Iterator[Finding]:
    """What holds for init containers, too."""
    secrets = [each for each in container.get("envFrom", []) if "secretRef" in each]
    secrets += [each for each in container.get("env", []) if nested_field(each, "valueFrom", "secretKeyRef")]
    for each in secrets:
        yield of_csv(f"{place}.env", each, "must go: there is no Secret beside OLM's certificate")
    requests = container.get("resources", {}).get("requests", {})
    for resource in ("cpu", "memory"):
        if resource not in requests:
            yield of_csv(f"{place}.resources.requests.{resource}", None, "must be asked for")
    context = container.get("securityContext", {})
    for field, wanted in _RESTRICTED.items():
        if context.get(field) != wanted:
            yield of_csv(f"{place}.securityContext.{field}", context.get(field), f"must be {wanted}")
    for field, refused in _LOOSENED.items():
        if context.get(field) == refused:
            yield of_csv(f"{place}.securityContext.{field}", refused, "must go: Pod Security restricted")


def _told(place: str, deployment: str, container: dict[str, Any]) -> Iterator[Finding]:
    """What our own processes are told: nothing of certificates of their own, and which namespaces to watch."""
    for argument in container.get("args", []):
        if argument.startswith(_OWN_CERTIFICATES):
            yield of_csv(f"{place}.args", argument, "must go: OLM issues the certificate")
        if argument.startswith(_CERTIFICATE) and argument != f"{_CERTIFICATE}={MOUNTED}":
            yield of_csv(f"{place}.args", argument, f"must be {MOUNTED}: OLM mounts its certificate there")
    variables = {variable["name"]: variable for variable in container.get("env", [])}
    if deployment == WATCHER and variables.get("WATCH_NAMESPACE", {}).get("valueFrom") != TARGETS:
        yield of_csv(f"{place}.env[WATCH_NAMESPACE]", variables.get("WATCH_NAMESPACE"), f"must be from {TARGETS}")


def permissions(subject: Subject) -> Iterator[Finding]:
    """8: the controller has exactly the rules of config/rbac, the webhook an account and none, and nobody more."""
    install = subject.spec["install"]["spec"]
    for each in install.get("clusterPermissions", []):
        remedy = "must be under permissions: OLM narrows these to the namespaces that are watched"
        yield of_csv("clusterPermissions", each["serviceAccountName"], remedy)
    found: dict[str, list[Any]] = {}
    for each in install.get("permissions", []):
        found.setdefault(each["serviceAccountName"], []).append(each["rules"])
    for each in subject.deployments:
        account = each["spec"]["template"]["spec"].get("serviceAccountName")
        if account not in found:
            yield of_csv("permissions", account, "must have an entry, be it without rules: else OLM makes no account")
        if account != each["name"]:
            yield of_csv(f"deployments[{each['name']}].serviceAccountName", account, "must be named as the Deployment")
    yield from _granted_to(subject, found)


def _granted_to(subject: Subject, found: dict[str, list[Any]]) -> Iterator[Finding]:
    """`found`: the rules of each of an account's entries."""
    declared = [rule for path in ROLES for role in subject.configured(path) for rule in role["rules"]]
    for account, entries in found.items():
        if len(entries) > 1:
            yield of_csv(f"permissions[{account}]", len(entries), "must be one entry")
        if account not in DEPLOYMENTS:
            yield of_csv(f"permissions[{account}]", account, f"must go: accounts are {', '.join(DEPLOYMENTS)}")
        rules, wanted = [rule for entry in entries for rule in entry], declared if account == WATCHER else []
        for rule in _beyond(rules, wanted):
            yield of_csv(f"permissions[{account}]", _said(rule), f"must go: {', '.join(ROLES)} do not grant it")
        for rule in _beyond(wanted, rules):
            yield of_csv(f"permissions[{account}]", _said(rule), f"is missing, but in {', '.join(ROLES)}")


def _beyond(rules: list[Any], others: list[Any]) -> list[Any]:
    return [rule for rule in rules if rule not in others]


def _said(rule: dict[str, Any]) -> str:
    return f"{','.join(rule['verbs'])} {','.join(rule.get('resources', rule.get('nonResourceURLs', [])))}"


def roles(subject: Subject) -> Iterator[Finding]:
    """8: the roles in the bundle are those of config/rbac that are for people, with the same rules and labels."""
    places = [path for path in subject.config if path.startswith("config/rbac/") and not path.endswith(_KUSTOMIZATION)]
    there = [each for path in places for each in subject.configured(path)]
    bound = {each["roleRef"]["name"] for each in there if each["kind"] in BINDINGS}
    wanted = {
        f"{PREFIXED}{name_of(each)}": _granted(each)
        for each in there
        if each["kind"] in BINDINGS.values() and name_of(each) not in bound
    }
    found = {
        name_of(each): (path, _granted(each)) for kind in BINDINGS.values() for path, each in subject.of(kind).items()
    }
    for name in sorted(wanted.keys() - found.keys()):
        yield Finding(MANIFESTS, "roles", name, "is missing, but in config/rbac: run `make bundle`")
    for name, (path, granted) in found.items():
        if granted != wanted.get(name):
            yield Finding(path, "rules", name, "must be as in config/rbac, or go: run `make bundle`")


def _granted(role: Object) -> dict[str, Any]:
    """All that makes a role what it is, its name apart."""
    return {key: value for key, value in role.items() if key != "metadata"} | {"labels": role["metadata"].get("labels")}


def images(subject: Subject) -> Iterator[Finding]:
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
        yield of_csv(f"env[{RELATED}*]", [sorted(value) for value in values], "must be the same for both processes")
    ours = subject.annotations.get("containerImage")
    if ours not in {container["image"] for container in subject.containers}:
        yield of_csv("metadata.annotations[containerImage]", ours, "must be the image of the Deployments")
