"""Registered kinds → the parts of config/admission-policies/children.yaml that follow from them.

The rest of that file is written manually, so that it can be read and changed as one policy.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from crds.descriptions import plural
from crds.registered import Registered, children
from memcached_api.kind import Kind
from memcached_operator.kube.resource import Resource


def with_kinds(text: str, registered: Sequence[Registered]) -> str:
    """The text of the policy with the rules, owners, names and messages of these kinds.

    Raises ValueError if the text lacks one of these parts.
    """
    resources = children(registered)
    owners = ",\n      ".join(pair for each in registered for pair in _owners(each.kind))
    parts = {
        r"(?<=\n    resourceRules:\n)(?:    [- ] .*\n)+": "".join(map(_resource_rule, resources)),
        r"(?<=\n  - name: owners\n    expression: >-\n)(?:      .*\n)+": f"      [{owners}]\n",
        r"(?<='app\.kubernetes\.io/name'\]\.orValue\(''\) in )\[.*?\]": str([each.app_name for each in registered]),
        r"(?<=subresources of )[\w, ]+": _listed(plural(each.kind) for each in resources),
        rf"\ban? {registered[0].kind.name}\b(?:(?:,| or) an? [A-Z]\w+)*": _listed(
            _with_article(each.kind.name) for each in registered
        ),
    }
    for pattern, part in parts.items():
        text = _replaced(text, pattern, part)
    return text


def _replaced(text: str, pattern: str, part: str) -> str:
    text, count = re.subn(pattern, lambda _: part, text)
    if not count:
        raise ValueError(f"config/admission-policies/children.yaml has no text that matches {pattern}")
    return text


def _resource_rule(resource: Resource) -> str:
    return (
        f"    - apiGroups: [{resource.group or chr(34) * 2}]\n"
        f"      apiVersions: [{resource.version}]\n"
        f"      resources: [{resource.plural}, {resource.plural}/*]\n"
        "      operations: [CREATE, UPDATE, DELETE]\n"
    )


def _owners(kind: Kind[Any]) -> list[str]:
    return [f"['{kind.group}/{version}', '{kind.name}']" for version in kind.versions]


def _with_article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def _listed(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last
