from pathlib import Path
from typing import Any

import msgspec
import pytest

import goldens
from memcached_api.memcached import MemcachedSpec

PATHS = {path.stem: path for path in goldens.paths()}


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS.keys())
def test_the_children_are_byte_for_byte_as_they_were(path: Path) -> None:
    assert goldens.render(goldens.objects(path)[0]) == path.read_text()


def test_every_field_of_the_spec_is_in_a_golden() -> None:
    named: set[str] = set()
    for path in PATHS.values():
        named |= goldens.objects(path)[0]["spec"].keys()
    assert named == {field.encode_name for field in msgspec.structs.fields(MemcachedSpec)}


def test_both_api_versions_give_the_same_children() -> None:
    def children(shape: str) -> list[dict[str, Any]]:
        cr = goldens.objects(PATHS[shape])[0]
        return goldens.children({**cr, "metadata": {**cr["metadata"], "name": "cache"}})

    assert children("minimal-v1") == children("minimal-v1alpha1")
