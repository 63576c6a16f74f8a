"""What every kind shares: the check of a spec, once, and the names of its children."""

from typing import Any

import msgspec
import pytest

from memcached_api.images import Images
from memcached_api.kind import Checked
from memcached_api.values import nested_field
from memcached_operator.engine.kind import CHECKED_BYTES, CHECKED_SPECS, once_per_spec
from memcached_operator.kinds import kinds
from memcached_operator.kube.resource import Object
from unit.builders import appservice, memcached, memcachedproxy


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

    def check(cr: Object) -> Checked[Spec]:
        seen.append(cr)
        return Checked(Spec(nested_field(cr, "spec", "size")), [])

    checked = once_per_spec(check)
    first = obj({"size": 1})
    assert checked(first)[0] == Spec(1)
    found = checked(second)[0]
    assert len(seen) == calls
    assert found is not None
    assert type(found.size) is type(nested_field(second, "spec", "size"))


@pytest.mark.parametrize(
    ("size", "kept"),
    [(1, CHECKED_SPECS), (CHECKED_BYTES // 4, 3), (CHECKED_BYTES, 0)],
    ids=["many", "large", "larger than all"],
)
def test_specs_are_kept_as_far_as_number_and_bytes_allow(size: int, kept: int) -> None:
    seen: list[str] = []

    def check(cr: Object) -> Checked[Spec]:
        seen.append(cr["metadata"]["name"])
        return Checked(Spec(), [])

    checked = once_per_spec(check)
    objects = [obj({"size": "x" * size}, name=f"{number:04d}") for number in range(kept + 2)]
    for each in objects:
        checked(each)
    for each in reversed(objects):  # the newest are known
        checked(each)
    assert len(seen) == len(objects) + 2


METADATA = "add what it requires to spec.podTemplate.metadata, or change the policy"
TEMPLATE_REMEDIES = {
    "Memcached": (
        memcached(),
        f"{METADATA}. Changing spec.podTemplate.metadata replaces the pods, and their items are lost",
    ),
    "MemcachedProxy": (memcachedproxy(), METADATA),
    "AppService": (appservice(), ""),
}


@pytest.mark.parametrize(("cr", "expected"), TEMPLATE_REMEDIES.values(), ids=TEMPLATE_REMEDIES)
def test_metadata_that_a_policy_requires_of_the_pod_template(cr: Object, expected: str) -> None:
    by_name = {kind.resource.kind: kind for kind in kinds(Images("memcached:1"))}
    remedy = by_name[cr["kind"]].template_remedy
    assert (remedy(cr) if remedy else "") == expected
