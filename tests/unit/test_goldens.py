from pathlib import Path
from typing import Any

import msgspec
import pytest

import goldens
from memcached_api.appservice import AppServiceSpec
from memcached_api.memcached import MemcachedSpec

PATHS = [path for kind in goldens.KINDS for path in goldens.paths(kind).values()]
SPECS = {"memcached": MemcachedSpec, "appservice": AppServiceSpec}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_children_are_byte_for_byte_as_they_were(path: Path) -> None:
    assert goldens.render(goldens.objects(path)[0]) == path.read_text()


@pytest.mark.parametrize("kind", goldens.KINDS)
def test_every_field_of_the_spec_is_in_a_golden(kind: str) -> None:
    named: set[str] = set()
    for path in goldens.paths(kind).values():
        named |= goldens.objects(path)[0]["spec"].keys()
    assert named == {field.encode_name for field in msgspec.structs.fields(SPECS[kind])}


def test_both_api_versions_give_the_same_children() -> None:
    def children(shape: str) -> list[dict[str, Any]]:
        cr = goldens.objects(goldens.paths("memcached")[shape])[0]
        return goldens.children({**cr, "metadata": {**cr["metadata"], "name": "cache"}})

    assert children("minimal-v1") == children("minimal-v1alpha1")
