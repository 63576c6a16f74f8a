"""Label selectors."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcached_operator.kube.selectors import Selector

LABELS = {"app": "web", "tier": "front"}


def expression(operator: str, key: str, *values: str) -> dict[str, Any]:
    """A selector with one expression."""
    return {"matchExpressions": [{"key": key, "operator": operator, **({"values": [*values]} if values else {})}]}


def twice(operator: str, *values: list[str]) -> dict[str, Any]:
    """A selector with several expressions for one label."""
    return {"matchExpressions": [{"key": "app", "operator": operator, "values": each} for each in values]}


EXISTS = {"key": "app", "operator": "Exists"}
IN_DB = {"key": "app", "operator": "In", "values": ["db"]}

SELECTORS: dict[str, tuple[dict[str, Any], bool]] = {
    "empty": ({}, True),
    "equal label": ({"matchLabels": {"app": "web"}}, True),
    "all labels": ({"matchLabels": LABELS}, True),
    "another value": ({"matchLabels": {"app": "db"}}, False),
    "another label as well": ({"matchLabels": {"app": "web", "zone": "a"}}, False),
    "In": (expression("In", "app", "db", "web"), True),
    "In, other values": (expression("In", "app", "db"), False),
    "In, no such label": (expression("In", "zone", "a"), False),
    "NotIn": (expression("NotIn", "app", "db"), True),
    "NotIn, no such label": (expression("NotIn", "zone", "a"), True),
    "NotIn, this value": (expression("NotIn", "app", "web"), False),
    "Exists": (expression("Exists", "app"), True),
    "Exists, no such label": (expression("Exists", "zone"), False),
    "DoesNotExist": (expression("DoesNotExist", "zone"), True),
    "DoesNotExist, this label": (expression("DoesNotExist", "app"), False),
    "unknown operator": (expression("Like", "app", "w"), False),
    "both parts": ({"matchLabels": {"app": "web"}, **expression("Exists", "zone")}, False),
    "In twice, a value of both": (twice("In", ["web", "db"], ["web"]), True),
    "In twice, the first with this value": (twice("In", ["web"], ["db"]), False),
    "In twice, the second with this value": (twice("In", ["db"], ["web"]), False),
    "NotIn twice, the first with this value": (twice("NotIn", ["web"], ["db"]), False),
    "NotIn twice, the second with this value": (twice("NotIn", ["db"], ["web"]), False),
    "In and NotIn": ({"matchLabels": {"app": "web"}, **expression("NotIn", "app", "web")}, False),
    "Exists and In, other values": ({"matchExpressions": [EXISTS, IN_DB]}, False),
    "In, other values, and Exists": ({"matchExpressions": [IN_DB, EXISTS]}, False),
    "nulls": ({"matchLabels": None, "matchExpressions": None}, True),
}


@pytest.mark.parametrize(("selector", "expected"), SELECTORS.values(), ids=SELECTORS.keys())
def test_selects(selector: dict[str, Any], expected: bool) -> None:
    assert Selector(selector).selects(LABELS) is expected


def holds(requirement: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether labels fulfil one requirement, as Kubernetes documents it."""
    key = requirement["key"]
    is_named = labels.get(key) in requirement["values"]
    present = {"In": is_named, "NotIn": not is_named, "Exists": True, "DoesNotExist": False}
    return present[requirement["operator"]] if key in labels else requirement["operator"] in ("NotIn", "DoesNotExist")


REQUIREMENTS = st.fixed_dictionaries(
    {
        "key": st.sampled_from("abc"),
        "operator": st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
        "values": st.lists(st.sampled_from("xyz"), max_size=3),
    }
)


@given(st.lists(REQUIREMENTS, max_size=4), st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz")))
def test_all_requirements_must_hold(requirements: list[dict[str, Any]], labels: dict[str, str]) -> None:
    selector = Selector({"matchExpressions": requirements})
    assert selector.selects(labels) is all(holds(each, labels) for each in requirements)
    for key in "abc":
        assert selector.names_any([key]) is any(each["key"] == key for each in requirements)
