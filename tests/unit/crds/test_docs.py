"""The tables of docs/api.md that are not a list of fields or rules."""

import re
from collections.abc import Iterator

from crds.crd import object_schema
from crds.schema import Schema
from memcached_api.memcached.types import MEMCACHED

SETTINGS = {
    *("resources", "cache", "podTemplate", "podTemplate.metadata", "podTemplate.spec", "rollout", "service", "agent"),
    *("agent.resources", "cache.evictions", "cache.extstore.volume", "imagePullPolicy", "tls.minVersion"),
    *("inheritedMetadata", "scaling"),
}
"""Sections, booleans and enumerations that switch no feature on."""
OF_KUBERNETES = re.compile(r"podTemplate\.spec\.")
SPEC = object_schema(MEMCACHED)["properties"]["spec"]


def switches(schema: Schema, prefix: str = "") -> Iterator[str]:
    """The paths of all fields that could switch a feature on."""
    for name, field in schema.get("properties", {}).items():
        path = f"{prefix}{name}"
        section = "properties" in field
        if section or "enum" in field or (field.get("type") == "boolean" and name != "enabled"):
            yield path
        if section:
            yield from switches(field, f"{path}.")


def test_every_switch_is_a_feature_or_a_setting() -> None:
    found = {path for path in switches(SPEC) if not OF_KUBERNETES.match(path)}
    assert found - SETTINGS == set(MEMCACHED.features)
    assert found >= SETTINGS


def test_first_value_of_a_mode_is_its_default() -> None:
    for path in MEMCACHED.features:
        field = SPEC
        for name in path.split("."):
            field = field["properties"][name]
        if "enum" in field:
            assert f"Defaults to `{field['enum'][0]}`." in field["description"]
