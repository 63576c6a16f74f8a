"""Every field of both kinds has a descriptor. The fields are read from the types, independently of the generator.

Large types of Kubernetes are exceptions: the field has a descriptor, and a console renders the fields below from the
CRD. With descriptors for all of them, the annotations of the CSV would mostly repeat the Kubernetes documentation.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from bundle.catalog import Packed
from bundle.csv.descriptors import spec_descriptors, status_descriptors, title
from memcached_api.kinds import Kind
from memcached_api.registry import KINDS
from memcached_api.scheduling import Affinity
from unit.bundle.tree import GOOD

KNOWN = (
    "advanced", "arrayFieldGroup:", "booleanSwitch", "fieldGroup:", "imagePullPolicy", "nodeAffinity", "number",
    "podAffinity", "podAntiAffinity", "podCount", "resourceRequirements", "select:", "text",
)  # fmt: skip


def fields(cls: Any, prefix: str = "") -> Iterator[str]:
    """The paths of all fields of a struct, including nested structs."""
    yield from typed_fields(cls, prefix)


def typed_fields(cls: Any, prefix: str = "") -> dict[str, inspect.Type]:
    """The type of each field of a struct, by path, including nested structs that are not described as a whole."""
    found: dict[str, inspect.Type] = {}
    for field in msgspec.structs.fields(cls):
        path, type_ = f"{prefix}{field.encode_name}", inspect.type_info(field.type)
        found[path] = type_
        for struct, dots in _structs(type_):
            found |= {} if _is_whole(struct) else typed_fields(struct, f"{path}{dots}")
    return found


def _is_whole(struct: Any) -> bool:
    """Whether this is a type of Kubernetes for scheduling. An Affinity is not: its three fields have widgets."""
    return struct.__module__ == Affinity.__module__ and struct is not Affinity


def _structs(type_: Any) -> Iterator[tuple[Any, str]]:
    if isinstance(type_, inspect.Metadata):
        yield from _structs(type_.type)
    elif isinstance(type_, inspect.StructType):
        yield type_.cls, "."
    elif isinstance(type_, inspect.UnionType):
        for member in type_.types:
            yield from _structs(member)
    elif isinstance(type_, inspect.ListType):
        for struct, _ in _structs(type_.item_type):
            yield struct, "[0]."


def in_bundle(kind: Kind[Any], part: str) -> Iterator[dict[str, dict[str, Any]]]:
    """The descriptors in the bundle for each version of a kind, by path."""
    owned = Packed(GOOD).csv()["spec"]["customresourcedefinitions"]["owned"]
    for each in owned:
        if each["kind"] == kind.name:
            yield {entry["path"]: entry for entry in each[f"{part}Descriptors"]}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_field_has_a_descriptor_in_every_version(kind: Kind[Any]) -> None:
    specs, statuses = list(in_bundle(kind, "spec")), list(in_bundle(kind, "status"))
    assert len(specs) == len(statuses) == len(kind.versions)
    for described in specs:
        assert set(described) == set(fields(kind.spec))
    for described in statuses:
        assert set(described) == set(fields(kind.status))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_descriptor_is_complete(kind: Kind[Any]) -> None:
    for entry in [*spec_descriptors(kind), *status_descriptors(kind)]:
        assert entry["displayName"][0].isupper(), entry
        assert len(entry["description"]) > 10, entry
        assert entry["x-descriptors"], entry
        assert "More info: https://" not in entry["description"], entry
        assert not entry["description"][0].islower(), entry
        for hint in entry["x-descriptors"]:
            words = hint.removeprefix("urn:alm:descriptor:com.tectonic.ui:")
            assert words.startswith(KNOWN) or hint.startswith("urn:alm:descriptor:io.kubernetes"), hint


def _has_one_value(type_: inspect.Type) -> bool:
    """Whether the value is a number, a text or a boolean, which a form needs a widget for; no object, map or list."""
    if isinstance(type_, inspect.Metadata):
        return _has_one_value(type_.type)
    if isinstance(type_, inspect.UnionType):
        return any(_has_one_value(member) for member in type_.types)
    return isinstance(type_, inspect.IntType | inspect.StrType | inspect.BoolType | inspect.LiteralType)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_input_field_has_a_widget(kind: Kind[Any]) -> None:
    types = typed_fields(kind.spec)
    needed = [entry for entry in spec_descriptors(kind) if _has_one_value(types[entry["path"]])]
    assert needed
    for entry in needed:
        widgets = [hint for hint in entry["x-descriptors"] if "ieldGroup" not in hint and "advanced" not in hint]
        assert widgets, entry


@pytest.mark.parametrize("path", ["rollout.maxSurge", "rollout.maxUnavailable", "podDisruptionBudget.maxUnavailable"])
def test_number_of_pods_is_not_entered_as_text(path: str) -> None:
    (entry,) = [entry for entry in spec_descriptors(KINDS[0]) if entry["path"] == path]
    assert "urn:alm:descriptor:com.tectonic.ui:number" in entry["x-descriptors"]


@pytest.mark.parametrize(
    ("name", "words"),
    [("containerPort", "Container Port"), ("envs", "Environment"), ("size", "Pods"), ("nodes", "Pod Names")],
)
def test_titles(name: str, words: str) -> None:
    assert title(name) == words


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("cache", "fieldGroup:cache"),
        ("cache.memory", "fieldGroup:cache"),
        ("imagePullSecrets", "arrayFieldGroup:imagePullSecrets"),
        ("resources", "resourceRequirements"),
        ("podTemplate", "fieldGroup:podTemplate"),
        ("podTemplate.spec.affinity.nodeAffinity", "nodeAffinity"),
    ],
)
def test_field_with_subfields_starts_a_group(path: str, hint: str) -> None:
    (entry,) = [entry for entry in spec_descriptors(KINDS[0]) if entry["path"] == path]
    assert f"urn:alm:descriptor:com.tectonic.ui:{hint}" in entry["x-descriptors"]


def test_versions_have_different_display_names() -> None:
    owned = Packed(GOOD).csv()["spec"]["customresourcedefinitions"]["owned"]
    assert [each["displayName"] for each in owned] == ["Memcached", "Memcached (v1alpha1)", "App Service"]
    assert "v1, which new objects should use" in owned[1]["description"]
