from inspect import isclass
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

import goldens
from crds.descriptions import kubernetes_type
from memcached_api.annotations import INTENT_ANNOTATION
from memcached_api.appservice.types import AppServiceSpec
from memcached_api.images import Images
from memcached_api.memcached.types import MemcachedSpec
from memcached_api.memcachedproxy.types import MemcachedProxySpec
from memcached_api.values import nested_field
from memcached_operator.engine.writes.apply import build_intent
from memcached_operator.engine.writes.ownership import is_current
from memcached_operator.kube.resource import Object, key_of
from memcached_operator.memcached.controller import memcached
from memcached_operator.memcached.desired.extstore import SAFE_TO_EVICT
from unit.builders import NOW

PATHS = [path for kind in goldens.KINDS for path in goldens.paths(kind).values()]
SPECS = {"memcached": MemcachedSpec, "memcachedproxy": MemcachedProxySpec, "appservice": AppServiceSpec}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_children_equal_the_golden_byte_for_byte(path: Path) -> None:
    assert goldens.render(goldens.objects(path)[0]) == path.read_text()


@pytest.mark.parametrize("path", PATHS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_owner_of_every_child_is_known_by_its_name(path: Path) -> None:
    """The cache keeps children in any case, if `owners` names an existing object."""
    cr, *children = goldens.objects(path)
    kind = goldens.KINDS[cr["kind"].lower()]
    keys = map(kind.key_of, children)
    unknown = [key for key in keys if cr["metadata"]["name"] not in dict(kind.owners(key.resource, key.name))]
    assert unknown == []


@pytest.mark.parametrize("path", PATHS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_pods_have_no_local_storage_that_keeps_cluster_autoscaler_from_removing_their_node(path: Path) -> None:
    """It counts `hostPath` and `emptyDir`, except in memory, and those that an annotation names (cluster-autoscaler's
    utils/drain)."""
    for child in goldens.objects(path)[1:]:
        template: Object = nested_field(child, "spec", "template") or {}
        volumes: list[Object] = nested_field(template, "spec", "volumes") or []
        local = [volume for volume in volumes if volume.keys() & {"hostPath", "emptyDir"}]
        kept = [each["name"] for each in local if each.get("emptyDir", {}).get("medium") != "Memory"]
        assert kept == (nested_field(template, "metadata", "annotations", SAFE_TO_EVICT) or "").split()


@pytest.mark.parametrize("path", goldens.released().values(), ids=goldens.released().keys())
def test_upgrade_does_not_change_children_of_an_earlier_release(path: Path) -> None:
    cr, *before = goldens.objects(path)
    kind = {**goldens.KINDS, "memcached": memcached(Images("example.com/memcached:next"))}[cr["kind"].lower()]
    resources = {resource.kind: resource for resource in kind.owns}
    live = {key_of(resources[child["kind"]], child): child for child in before}
    after = [build_intent(cr, child) for child in kind.plan(goldens.snapshot(cr, live), NOW).children or ()]
    assert goldens.text(*map(without_digest, after)) == goldens.text(*map(without_digest, before))
    assert [is_current(*pair) for pair in zip(after, before, strict=True)] == [True] * len(before)


def without_digest(child: Object) -> Object:
    """A child without the intent digest; only its effect is stable between releases, not its value."""
    annotations = {name: text for name, text in child["metadata"]["annotations"].items() if name != INTENT_ANNOTATION}
    return {**child, "metadata": {**child["metadata"], "annotations": annotations}}


def test_first_release_has_goldens_of_both_kinds() -> None:
    shapes = goldens.released()
    assert {
        "0.1.0/memcached/minimal-v1-unadmitted",
        "0.1.0/memcached/every-field",
        "0.1.0/appservice/every-field",
    } <= set(shapes)


@pytest.mark.parametrize("kind", goldens.KINDS)
def test_every_field_of_the_spec_is_in_a_golden(kind: str) -> None:
    covered: set[str] = set()
    for path in goldens.paths(kind).values():
        spec = goldens.objects(path)[0]["spec"]
        covered |= {name for name in fields_of(SPECS[kind]) if nested_field(spec, *name.split(".")) is not None}
    assert covered == set(fields_of(SPECS[kind]))


def fields_of(struct: type[msgspec.Struct], prefix: str = "") -> list[str]:
    """The names of the fields in YAML, with those of structs that are not Kubernetes' own."""
    found: list[str] = []
    for field in msgspec.structs.fields(struct):
        name = f"{prefix}{field.encode_name}"
        found.append(name)
        for inner in (field.type, *get_args(field.type)):
            if isclass(inner) and issubclass(inner, msgspec.Struct) and kubernetes_type(inner) is None:
                found += fields_of(inner, f"{name}.")
    return found


def test_both_api_versions_have_the_same_children() -> None:
    def children(shape: str) -> list[dict[str, Any]]:
        cr = goldens.objects(goldens.paths("memcached")[shape])[0]
        return goldens.children({**cr, "metadata": {**cr["metadata"], "name": "cache"}})

    assert children("minimal-v1") == children("minimal-v1alpha1")
