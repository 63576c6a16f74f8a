"""What every kind shares: the check of a spec, once."""

from typing import Any

import msgspec
import pytest

from memcached_api.validation.field_errors import FieldError
from memcached_api.values import nested_field
from memcached_operator.kind import once_per_spec
from memcached_operator.kube.resource import Object


class Spec(msgspec.Struct):
    size: Any = None


def obj(spec: Any, name: str = "cache", **metadata: Any) -> Object:
    return {"metadata": {"name": name, **metadata}, "spec": spec}


@pytest.mark.parametrize(
    ("second", "calls"),
    [
        (obj({"size": 1}), 1),
        (obj({"size": 1}, generation=2, uid="other"), 1),
        (obj({"size": 1}, name="other"), 2),
        (obj({"size": 2}), 2),
        (obj({"size": 1.0}), 2),
        (obj({"size": True}), 2),
        (obj({}), 2),
        (obj(None), 2),
        ({"metadata": {"name": "cache"}}, 2),
    ],
)
def test_spec_is_checked_again_only_if_the_name_or_the_spec_differs(second: Object, calls: int) -> None:
    seen: list[Object] = []

    def check(cr: Object) -> tuple[Spec | None, list[FieldError]]:
        seen.append(cr)
        return Spec(nested_field(cr, "spec", "size")), []

    checked = once_per_spec(check)
    first = obj({"size": 1})
    assert checked(first)[0] == Spec(1)
    found = checked(second)[0]
    assert len(seen) == calls
    assert found is not None
    assert type(found.size) is type(nested_field(second, "spec", "size"))
