"""The permissions and limits of the controller's account, from its roles and the admission policies."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from pages.blocks import table

Rule = Mapping[str, Any]
ROLES: Final = {
    "config/rbac/role.yaml": "the watched namespaces",
    "config/rbac/leader_election_role.yaml": "its own namespace",
    "config/certificates/role.yaml": "with operator-managed certificates: {}",
}
"""The files with the roles of the controller's account, and where they apply."""
PLACES: Final = {"Role": "its own namespace", "ClusterRole": "the cluster"}
POLICIES: Final = "config/admission-policies"
ACCOUNT: Final = "memcached-operator "
"""The subject of the message of each limit."""


def blocks(root: Path) -> dict[str, str]:
    """The generated blocks of docs/security.md."""
    return {"permissions": _permissions(root), "limits": "\n\n".join(_limits(root))}


def granted(rules: Iterable[Rule]) -> list[tuple[str, str]]:
    """Resources and verbs of rules, such as ("`pods/resize`, `nodes` named `a`", "list, watch").

    Rules with equal verbs are one pair.
    """
    found: dict[str, list[str]] = {}
    for rule in rules:
        names = " and ".join(f"`{name}`" for name in rule.get("resourceNames", ()))
        found.setdefault(", ".join(sorted(rule["verbs"])), []).extend(
            f"`{resource}`{names and f' named {names}'}" for resource in rule["resources"]
        )
    return [(", ".join(resources), verbs) for verbs, resources in found.items()]


def _permissions(root: Path) -> str:
    rows = [("Resources", "Verbs", "In")]
    for path, place in ROLES.items():
        for role in _documents(root / path):
            rows += [(*pair, place.format(PLACES[role["kind"]])) for pair in granted(role["rules"])]
    return table(rows)


def _limits(root: Path) -> Iterator[str]:
    """A heading and a table for each policy."""
    found = [each for path in sorted((root / POLICIES).glob("*.yaml")) for each in _documents(path)]
    for policy in [each for each in found if each.get("kind") == "ValidatingAdmissionPolicy"]:
        spec = policy["spec"]
        matched = spec["matchConstraints"]["resourceRules"]
        resources = ", ".join(f"`{each}`" for rule in matched for each in rule["resources"] if "/" not in each)
        verbs = ", ".join(matched[0]["operations"])
        yield f"`memcached-operator-{policy['metadata']['name']}` checks {verbs} of {resources}:"
        rows = [(_scope(each["expression"], spec.get("variables", ())), *_limit(each)) for each in spec["validations"]]
        yield table([("Object", "Field", "The controller"), *rows])


def _scope(expression: str, variables: Iterable[Mapping[str, str]]) -> str:
    """The resources that an expression limits: those that its variables `writes…` or its comparisons name."""
    tested = [
        each["expression"] if each["name"] != "writesTemplate" else "resource == 'pod templates'"
        for each in variables
        if each["name"].startswith("writes") and f"variables.{each['name']}" in expression
    ]
    names = re.findall(r"\bresource [!=]= '([\w ]+)'", " ".join([expression.partition("||")[0], *tested]))
    return ", ".join(dict.fromkeys(names)) or "all"


def _limit(validation: Mapping[str, str]) -> tuple[str, str]:
    """The field and the limit of a message such as `spec.type: memcached-operator sets ClusterIP`.

    Raises ValueError if the message has another form.
    """
    field, limit = validation["message"].split(ACCOUNT, 1)
    return (f"`{field.removesuffix(': ')}`" if field else ""), limit.replace("<", "&lt;")


def _documents(path: Path) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all(path.read_text(encoding="utf-8")) if each]
