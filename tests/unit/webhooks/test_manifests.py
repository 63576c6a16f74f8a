"""Admission changes nothing that a manifest sets, items of lists included: GitOps tools would show a difference."""

from typing import Any

import pytest

from memcached_api.images import Images
from memcached_api.values import is_object
from memcached_webhooks.admission import path_of
from memcached_webhooks.kinds import handlers
from memcached_webhooks.review import GroupVersionKind
from support.reviewing import patched
from support.rule_tables import TABLES, Tables

from .reviews import DEFAULT, request

HANDLERS = handlers(Images(DEFAULT, "example.com/agent:1"))


def keeps(stored: Any, manifest: Any) -> bool:
    """Whether a stored value has everything that the manifest sets. Lists are compared as a whole."""
    if is_object(manifest) and is_object(stored):
        return all(value is None or keeps(stored.get(name), value) for name, value in manifest.items())
    return stored == manifest


@pytest.mark.parametrize("tables", TABLES, ids=lambda tables: tables.kind.name)
def test_admission_keeps_what_the_manifest_sets(tables: Tables) -> None:
    kind = tables.kind
    changed: list[str] = []
    for name, spec in tables.valid.items():
        obj = tables.obj(spec)
        for old in (None, tables.obj({}), *map(tables.obj, tables.valid.values())):
            review = request(obj, old, kind=GroupVersionKind(kind.group, kind.versions[0], kind.name))
            stored = patched(obj, HANDLERS[path_of("mutate", kind)](review).patch)
            changed += [name] * (not keeps(stored, obj))
    assert changed == []
