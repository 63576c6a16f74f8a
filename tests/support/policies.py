"""The admission policies of config/admission-policies, bound to the service account of a test."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]

DIRECTORY = Path(__file__).parents[2] / "config/admission-policies"
GROUP = "/apis/admissionregistration.k8s.io/v1"
POLICIES, BINDINGS = f"{GROUP}/validatingadmissionpolicies", f"{GROUP}/validatingadmissionpolicybindings"
"""API paths."""


@cache
def _documents() -> tuple[Object, ...]:
    names: list[str] = yaml.safe_load((DIRECTORY / "kustomization.yaml").read_text())["resources"]
    return tuple(each for name in names for each in yaml.safe_load_all((DIRECTORY / name).read_text()))


def policies() -> list[Object]:
    """All policies, with the names they have before kustomize adds a prefix."""
    return [each for each in _documents() if each["kind"] == "ValidatingAdmissionPolicy"]


def bindings(namespace: str, account: str) -> list[Object]:
    """The bindings of all policies to a ServiceAccount; their names end with its namespace."""
    found = [each for each in _documents() if each["kind"] == "ValidatingAdmissionPolicyBinding"]
    return [_bound(each, namespace, account) for each in found]


def _bound(binding: Object, namespace: str, account: str) -> Object:
    spec = binding["spec"]
    param = {**spec["paramRef"], "namespace": namespace, "name": account}
    metadata = {"name": f"{binding['metadata']['name']}-{namespace}"}
    return {**binding, "metadata": metadata, "spec": {**spec, "paramRef": param}}


@cache
def messages() -> frozenset[str]:
    """The messages of all rules, except those that depend on the object."""
    rules = [rule for each in policies() for rule in each["spec"]["validations"]]
    return frozenset(rule["message"] for rule in rules if "messageExpression" not in rule)


def message(part: str) -> str:
    """The whole message of the only rule whose message contains a text. Raises ValueError if there is no such rule."""
    found = [each for each in messages() if part in each]
    if len(found) != 1:
        raise ValueError(f"{part!r} is a part of {len(found)} messages")
    return found[0]
