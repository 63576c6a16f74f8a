from types import MappingProxyType

import pytest

from memcached_api.memcached.types import MemcachedSpec, decode_spec, validate
from memcached_api.validation.field_errors import SpecDecodeError


@pytest.mark.parametrize("obj", [None, [], "x"])
def test_value_that_is_not_an_object_is_not_decoded(obj: object):
    with pytest.raises(SpecDecodeError, match="must be an object of kind Memcached"):
        decode_spec(obj)  # pyright: ignore[reportArgumentType]


def test_any_mapping_is_accepted():
    obj = MappingProxyType({"metadata": {"name": "a"}, "spec": {"size": 2}})
    assert validate(obj) == []
    assert decode_spec(obj) == MemcachedSpec(size=2)
