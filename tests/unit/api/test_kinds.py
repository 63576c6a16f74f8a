from types import MappingProxyType

import pytest

from memcached_api.field_errors import SpecDecodeError
from memcached_api.memcached import MemcachedSpec, decode_spec, validate


@pytest.mark.parametrize("obj", [None, [], "x"])
def test_what_is_no_object_is_not_decoded(obj: object):
    with pytest.raises(SpecDecodeError, match="must be an object of kind Memcached"):
        decode_spec(obj)  # pyright: ignore[reportArgumentType]


def test_any_mapping_will_do():
    obj = MappingProxyType({"metadata": {"name": "a"}, "spec": {"size": 2}})
    assert validate(obj) == []
    assert decode_spec(obj) == MemcachedSpec(size=2)
