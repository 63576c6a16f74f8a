"""A later release keeps what objects and clients of an earlier one need: CustomResourceDefinitions only grow."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bundle.__main__ import main
from bundle.checks.subject import Subject
from bundle.compatible import changes, incompatible
from bundle.errors import BundleError
from bundle.release import ROOT
from unit.bundle import broken
from unit.bundle.broken import CRD, GOOD, Change

EARLIER = Subject(broken.csv(lambda csv: csv["metadata"].update(name="memcached-operator.v0.0.9")), {})


def found(change: Change) -> list[str]:
    """What is told of a release whose CRD of Memcacheds was changed."""
    return [str(each) for each in incompatible(EARLIER, Subject(broken.changed(CRD, change), {}))]


def of_spec(change: Callable[[dict[str, Any]], object]) -> Change:
    """A change of the spec's schema, in every version: they have the same."""

    def edit(crd: dict[str, Any]) -> None:
        for version in crd["spec"]["versions"]:
            change(version["schema"]["openAPIV3Schema"]["properties"]["spec"])

    return edit


def of_field(name: str, **keywords: Any) -> Change:
    """Other keywords of a field of the spec; None takes one away."""

    def change(spec: dict[str, Any]) -> None:
        field = spec["properties"][name]
        field.update(keywords)
        for keyword in [keyword for keyword, value in field.items() if value is None]:
            del field[keyword]

    return of_spec(change)


def test_the_release_of_this_tree_keeps_all_of_its_own() -> None:
    assert found(lambda crd: None) == []


GROWTH: list[Change] = [
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


@pytest.mark.parametrize("change", GROWTH)
def test_growth_is_let_pass(change: Change) -> None:
    assert found(change) == []


LOSSES: list[tuple[Change, str]] = [
    (lambda crd: crd["metadata"].update(name="others.cache.example.com"), "metadata.name: null: must stay memcach"),
    (lambda crd: crd["spec"].update(scope="Cluster"), 'spec.scope: "Cluster": must stay Namespaced'),
    (lambda crd: crd["spec"]["names"].update(kind="Cache"), 'spec.names.kind: "Cache": must stay Memcached'),
    (lambda crd: crd["spec"]["versions"].pop(), "spec.versions[v1alpha1]: null: must stay v1alpha1"),
    (lambda crd: crd["spec"]["versions"][0].update(served=False), "versions[v1].served: false: must stay True"),
    (lambda crd: crd["spec"]["versions"][0]["subresources"].pop("scale"), "].subresources.scale: null: must stay"),
    (of_spec(lambda spec: spec["properties"].pop("size")), "spec.versions[v1alpha1].spec.size: null: must stay"),
    (of_spec(lambda spec: spec.update(required=["image"])), 'spec: required: ["image"]: must go'),
    (of_spec(lambda spec: spec.pop("default")), "spec: default: null: must stay {}"),
    (of_spec(lambda spec: spec["x-kubernetes-validations"].append({"rule": "true"})), "x-kubernetes-validations: "),
    (of_field("size", type="string"), 'size: type: "string": must stay integer'),
    (of_field("size", default=2), "size: default: 2: must stay 1"),
    (of_field("size", minimum=2), "size: minimum: 2: must stay 1"),
    (of_field("size", maximum=9), "size: maximum: 9: must stay 2147483647"),
    (of_field("size", multipleOf=2), "size: multipleOf: 2: must go"),
    (of_field("image", maxLength=9), "image: maxLength: 9: must stay"),
    (of_field("image", default="any"), 'image: default: "any": must go'),
    (of_field("imagePullPolicy", enum=["Always"]), 'imagePullPolicy: enum: ["Always"]: must stay'),
    (of_field("imagePullPolicy", enum=None), "imagePullPolicy: enum: null: must stay"),
    (of_field("size", enum=[1, 2]), "size: enum: [1, 2]: must go"),
    (of_field("imagePullSecrets", items={"type": "string"}), "imagePullSecrets[].name: null: must stay"),
    (of_field("imagePullSecrets", **{"x-kubernetes-list-type": None}), "x-kubernetes-list-type: null: must stay"),
]


@pytest.mark.parametrize(("change", "told"), LOSSES, ids=lambda each: each if isinstance(each, str) else "")
def test_what_takes_something_away_is_told(change: Change, told: str) -> None:
    assert any(told in each and each.startswith(f"{CRD}: ") for each in found(change)), found(change)


def schemas(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A schema and all within it."""
    yield schema
    for each in [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]:
        yield from schemas(each)


def test_no_field_of_any_kind_can_go_unnoticed() -> None:
    definitions = EARLIER.of("CustomResourceDefinition").values()
    roots = [each["schema"]["openAPIV3Schema"] for crd in definitions for each in crd["spec"]["versions"]]
    fields = [(schema, name) for root in roots for schema in schemas(root) for name in schema.get("properties", {})]
    assert len(fields) > 100
    for schema, name in fields:
        less = {**schema, "properties": {key: value for key, value in schema["properties"].items() if key != name}}
        assert [each.field for each in changes(schema, less, "here")] == [f"here.{name}"]


def test_a_release_is_not_compared_with_itself() -> None:
    with pytest.raises(BundleError, match="both bundles are"):
        list(incompatible(Subject(GOOD, {}), Subject(GOOD, {})))


def test_the_command_names_both_releases_or_what_is_wrong(tmp_path: Path) -> None:
    for path, text in EARLIER.files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    good = CliRunner().invoke(main, ["compatible", str(tmp_path)])
    assert good.output == f"the objects of memcached-operator.v0.0.9 live on with {broken.NAME}\n"
    (tmp_path / CRD).write_text(EARLIER.files[CRD].replace("kind: Memcached\n", "kind: Cache\n"), encoding="utf-8")
    bad = CliRunner().invoke(main, ["compatible", str(tmp_path), "--bundle", str(ROOT)])
    assert bad.exit_code == 1
    assert "spec.names.kind" in bad.output
