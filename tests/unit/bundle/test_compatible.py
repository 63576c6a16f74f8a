"""Incompatible changes to a CRD since an earlier release are reported."""

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bundle.__main__ import main
from bundle.catalog import Packed, read_bundle
from bundle.compatible import changes, incompatible
from bundle.objects import Object, name_of
from bundle.release import CSV_FILE, MANIFESTS, ROOT

CRD = f"{MANIFESTS}/cache.example.com_memcacheds.yaml"
Change = Callable[[Any], object]


@dataclass(frozen=True)
class Parsed(Packed):
    """A bundle of objects instead of texts, to parse them only once."""

    parsed: Mapping[str, list[Object]] = field(default_factory=dict[str, list[Object]])

    def csv(self) -> Object:
        """The ClusterServiceVersion."""
        return self.parsed[CSV_FILE][0]

    def manifests(self) -> dict[str, list[Object]]:
        """The objects of each file."""
        return dict(self.parsed)

    def changed(self, path: str, change: Change) -> "Parsed":
        """A copy with a change of the object in one file."""
        obj = deepcopy(self.parsed[path][0])
        change(obj)
        return Parsed({}, parsed={**self.parsed, path: [obj]})


BUNDLE = read_bundle(ROOT)
GOOD = Parsed({}, parsed=BUNDLE.manifests())
EARLIER = GOOD.changed(CSV_FILE, lambda csv: csv["metadata"].update(name="memcached-operator.v0.0.9"))


def found(change: Change) -> list[str]:
    """The messages for a release with a changed CustomResourceDefinition of Memcached."""
    return list(incompatible(EARLIER, GOOD.changed(CRD, change)))


def of_spec(change: Callable[[dict[str, Any]], object]) -> Change:
    """A change of the spec schema in every version."""

    def edit(crd: dict[str, Any]) -> None:
        for version in crd["spec"]["versions"]:
            change(version["schema"]["openAPIV3Schema"]["properties"]["spec"])

    return edit


def of_field(name: str, **keywords: Any) -> Change:
    """A change of a spec field's schema keywords; None removes a keyword."""

    def change(spec: dict[str, Any]) -> None:
        field = spec["properties"][name]
        field.update(keywords)
        for keyword in [keyword for keyword, value in field.items() if value is None]:
            del field[keyword]

    return of_spec(change)


def test_unchanged_crd_is_compatible() -> None:
    assert found(lambda crd: None) == []


ADDITIONS: list[Change] = [
    of_spec(lambda spec: spec["properties"].update(more={"type": "object", "required": ["a"], "default": {}})),
    of_field("size", description="other words"),
    of_field("size", minimum=0),
    of_field("size", minimum=None),
    of_field("containerPort", maximum=65536),
    of_field("imagePullPolicy", enum=["Always", "IfNotPresent", "Never", "Sometimes"]),
    lambda crd: crd["spec"]["versions"].append({**crd["spec"]["versions"][0], "name": "v2"}),
    lambda crd: crd["spec"]["versions"][0].update(storage=True, deprecated=True, additionalPrinterColumns=[]),
    lambda crd: crd["spec"]["names"].update(shortNames=["mc", "mcd"], categories=["all"]),
]


@pytest.mark.parametrize("change", ADDITIONS)
def test_additions_are_compatible(change: Change) -> None:
    assert found(change) == []


INCOMPATIBLE: list[tuple[Change, str]] = [
    (lambda crd: crd["metadata"].update(name="others.cache.example.com"), "metadata.name: null: must stay memcach"),
    (lambda crd: crd["spec"].update(scope="Cluster"), 'spec.scope: "Cluster": must stay Namespaced'),
    (lambda crd: crd["spec"]["names"].update(kind="Cache"), 'spec.names.kind: "Cache": must stay Memcached'),
    (lambda crd: crd["spec"]["versions"].pop(), "spec.versions[v1alpha1]: null: must stay v1alpha1"),
    (lambda crd: crd["spec"]["versions"][0].update(served=False), "versions[v1].served: false: must stay True"),
    (lambda crd: crd["spec"]["versions"][0]["subresources"].pop("scale"), "].subresources.scale: null: must stay"),
    (of_spec(lambda spec: spec["properties"].pop("size")), "spec.versions[v1alpha1].spec.size: null: must stay"),
    (of_spec(lambda spec: spec.update(required=["image"])), 'spec: required: ["image"]: must be removed'),
    (of_spec(lambda spec: spec.pop("default")), "spec: default: null: must stay {}"),
    (of_spec(lambda spec: spec["x-kubernetes-validations"].append({"rule": "true"})), "x-kubernetes-validations: "),
    (of_field("size", type="string"), 'size: type: "string": must stay integer'),
    (of_field("size", default=2), "size: default: 2: must stay 1"),
    (of_field("size", minimum=2), "size: minimum: 2: must stay 1"),
    (of_field("size", maximum=9), "size: maximum: 9: must stay 2147483647"),
    (of_field("size", multipleOf=2), "size: multipleOf: 2: must be removed"),
    (of_field("image", maxLength=9), "image: maxLength: 9: must stay"),
    (of_field("image", default="any"), 'image: default: "any": must be removed'),
    (of_field("imagePullPolicy", enum=["Always"]), 'imagePullPolicy: enum: ["Always"]: must stay'),
    (of_field("imagePullPolicy", enum=None), "imagePullPolicy: enum: null: must stay"),
    (of_field("size", enum=[1, 2]), "size: enum: [1, 2]: must be removed"),
    (of_field("imagePullSecrets", items={"type": "string"}), "imagePullSecrets[].name: null: must stay"),
    (of_field("imagePullSecrets", **{"x-kubernetes-list-type": None}), "x-kubernetes-list-type: null: must stay"),
]


@pytest.mark.parametrize(("change", "message"), INCOMPATIBLE, ids=lambda each: each if isinstance(each, str) else "")
def test_incompatible_changes_are_reported(change: Change, message: str) -> None:
    assert any(message in each and each.startswith(f"{CRD}: ") for each in found(change)), found(change)


def schemas(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A schema and all nested schemas."""
    yield schema
    for each in [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]:
        yield from schemas(each)


def test_removal_of_any_field_is_reported() -> None:
    definitions = [each for each in EARLIER.objects() if each["kind"] == "CustomResourceDefinition"]
    roots = [each["schema"]["openAPIV3Schema"] for crd in definitions for each in crd["spec"]["versions"]]
    fields = [(schema, name) for root in roots for schema in schemas(root) for name in schema.get("properties", {})]
    assert len(fields) > 100
    for schema, name in fields:
        less = {**schema, "properties": {key: value for key, value in schema["properties"].items() if key != name}}
        assert [each.field for each in changes(schema, less, "here")] == [f"here.{name}"]


def test_command_prints_both_releases_or_the_incompatible_change(tmp_path: Path) -> None:
    name = name_of(GOOD.csv())
    for path, text in BUNDLE.files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text.replace(f"name: {name}", "name: memcached-operator.v0.0.9"))
    good = CliRunner().invoke(main, ["compatible", str(tmp_path)])
    assert good.output == f"{name} is compatible with memcached-operator.v0.0.9\n"
    (tmp_path / CRD).write_text(BUNDLE.files[CRD].replace("kind: Memcached\n", "kind: Cache\n"))
    bad = CliRunner().invoke(main, ["compatible", str(tmp_path)])
    assert bad.exit_code == 1
    assert "spec.names.kind" in bad.output
