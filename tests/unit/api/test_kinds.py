from types import MappingProxyType
from typing import Any

import pytest

from memcached_api.memcached.types import MEMCACHED, MemcachedSpec, decode_spec, validate
from memcached_api.validation.field_errors import SpecDecodeError


@pytest.mark.parametrize("obj", [None, [], "x"])
def test_value_that_is_not_an_object_is_not_decoded(obj: object):
    with pytest.raises(SpecDecodeError, match="must be an object of kind Memcached"):
        decode_spec(obj)  # pyright: ignore[reportArgumentType]


def test_any_mapping_is_accepted():
    obj = MappingProxyType({"metadata": {"name": "a"}, "spec": {"size": 2}})
    assert validate(obj) == []
    assert decode_spec(obj) == MemcachedSpec(size=2)


CHECKED: dict[str, tuple[Any, bool, int]] = {
    "valid": ({"metadata": {"name": "a"}, "spec": {"size": 2}}, True, 0),
    "violates a rule": ({"metadata": {"name": "1a"}, "spec": {"size": 2}}, True, 1),
    "wrong type": ({"metadata": {"name": "a"}, "spec": {"size": "two"}}, False, 1),
    "not an object": (7, False, 1),
}


@pytest.mark.parametrize(("obj", "decoded", "errors"), CHECKED.values(), ids=CHECKED.keys())
def test_check_decodes_and_validates(obj: Any, decoded: bool, errors: int) -> None:
    spec, found = MEMCACHED.check(obj)
    assert (spec is not None, len(found)) == (decoded, errors)
    assert found == MEMCACHED.validate(obj)
