"""The reference page: types of Kubernetes are described as a whole."""

from typing import Any

import msgspec
import pytest

from crds.docs import page
from crds.whole import WHOLE, whole_fields
from memcached_api.memcached.types import MEMCACHED, MemcachedSpec
from memcached_api.registry import KINDS
from memcached_api.scheduling import LabelSelector

PAGE = page([MEMCACHED])


def row(field: str) -> str:
    """The only row of a field."""
    (found,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{field}` |")]
    return found


def test_type_of_kubernetes_has_one_row_with_the_names_of_its_fields():
    tolerations = "podTemplate.spec.tolerations"
    assert "*As in Kubernetes*: Toleration with `key`, `operator`, `value`, `effect` and `tolerationSeconds`. |" in row(
        tolerations
    )
    assert f"`{tolerations}[]." not in PAGE
    assert "matchExpressions[]" not in PAGE


def test_our_own_description_of_a_field_of_such_a_type_has_a_row():
    assert "If absent, the pods of this object" in row("podTemplate.spec.topologySpreadConstraints[].labelSelector")
    assert "a file on the node" in row("podTemplate.spec.securityContext.seccompProfile.type")


@pytest.mark.parametrize(
    ("field", "type_"),
    [
        ("podTemplate.spec.nodeSelector", "map of strings"),
        ("resources.limits", "map of quantities"),
        ("networkPolicy.from", "list of objects"),
        ("rollout.maxSurge", "integer or string"),
    ],
)
def test_types(field: str, type_: str):
    assert row(field).split(" | ")[1] == type_


def test_every_row_has_the_number_of_cells_of_its_table():
    width = 0
    for line in page(KINDS).splitlines():
        cells = line.replace(r"\|", "").count("|") if line.startswith("|") else 0
        assert cells in (width, 0) or not width, line
        width = cells


class Inner(msgspec.Struct):
    selector: LabelSelector | None = None


class Outer(msgspec.Struct):
    entries: list[Inner] = []
    name: str = ""


@pytest.mark.parametrize(("item", "path"), [("[]", "entries[].selector"), ("[0]", "entries[0].selector")])
def test_whole_fields_are_found_below_structs_and_lists(item: str, path: str):
    found: dict[str, Any] = whole_fields(Outer, item)
    assert found == {path: LabelSelector}


def test_every_whole_type_is_used():
    assert set(whole_fields(MemcachedSpec).values()) == set(WHOLE)
