"""Label selectors."""

from typing import Any

import pytest

from memcached_operator.workloads.selectors import selects

LABELS = {"app": "web", "tier": "front"}


def expression(operator: str, key: str, *values: str) -> dict[str, Any]:
    """A selector with one expression."""
    return {"matchExpressions": [{"key": key, "operator": operator, **({"values": [*values]} if values else {})}]}


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
    "nulls": ({"matchLabels": None, "matchExpressions": None}, True),
}


@pytest.mark.parametrize(("selector", "expected"), SELECTORS.values(), ids=SELECTORS.keys())
def test_selects(selector: dict[str, Any], expected: bool) -> None:
    assert selects(selector, LABELS) is expected
