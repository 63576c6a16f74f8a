"""Admission of a Memcached: the image of the agent, and warnings about it."""

from typing import Any

import pytest

from memcached_api.images import Images
from memcached_webhooks.kinds.memcached import defaults, removals, warnings
from memcached_webhooks.stored import Stored

from .reviews import memcached, raw

IMAGES = Images("memcached:1", "operator:2")
SIZES = {"size": 1, "containerPort": 11211, "image": "memcached:1"}
OLD, NEXT = {"image": "operator:1"}, {"image": "operator:2"}


def spec(monitoring: Any = None, agent: Any = None) -> dict[str, Any]:
    """A spec with these fields, without those that are None."""
    given = {"monitoring": monitoring, "agent": agent}
    return SIZES | {name: value for name, value in given.items() if value is not None}


@pytest.mark.parametrize(
    ("new", "old", "image"),
    [
        (spec(), None, None),
        (spec(monitoring={}), None, "operator:2"),
        (spec(monitoring={"enabled": True}), None, "operator:2"),
        (spec(monitoring={"enabled": False}), None, None),
        (spec(monitoring=1), None, None),
        (spec(monitoring={}, agent=OLD), None, None),
        (spec(monitoring={}, agent={}), None, "operator:2"),
        ({**SIZES, "tls": {"secretName": "a"}}, None, "operator:2"),
        ({**SIZES, "auth": {"secretName": "a"}}, spec(), "operator:2"),
        ({**SIZES, "auth": {"secretName": "a"}}, spec(monitoring={}, agent=OLD), "operator:1"),
        ({**SIZES, "cache": {"warmRestart": True}}, spec(), "operator:2"),
        ({**SIZES, "cache": {"warmRestart": False}}, spec(), None),
        ({**SIZES, "cache": {"warmRestart": True}}, spec(monitoring={}, agent=OLD), "operator:1"),
        # First needed later.
        (spec(monitoring={}), spec(), "operator:2"),
        (spec(monitoring={}), spec(monitoring={"enabled": False}), "operator:2"),
        (spec(monitoring={}), spec(agent=OLD), "operator:2"),
        # Kept by an update of a file without it, while there is an agent.
        (spec(monitoring={}), spec(monitoring={}, agent=OLD), "operator:1"),
        (spec(), spec(monitoring={}, agent=OLD), None),
        # The webhook was unavailable: the controller keeps the image that it chose.
        (spec(monitoring={}), spec(monitoring={}), None),
    ],
)
def test_image_of_the_agent(new: dict[str, Any], old: dict[str, Any] | None, image: str | None) -> None:
    assert defaults(new, None if old is None else Stored(old), IMAGES).get("agent/image") == image


def test_image_that_a_client_removes_is_set_to_the_default() -> None:
    metadata: dict[str, Any] = {"managedFields": [{"fieldsV1": {"f:spec": {"f:agent": {"f:image": {}}}}}]}
    old = spec(monitoring={}, agent=OLD)
    fields = defaults(spec(monitoring={}), Stored(old, raw(memcached(old, **metadata))), IMAGES)
    assert fields == {"agent/image": "operator:2"}
    assert removals(fields, old) == [
        "spec.agent.image was removed, so its default is set, operator:2; to use another value, set the field"
    ]


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        (spec(monitoring={}, agent={"image": "operator"}), None, "spec.agent.image operator has no fixed version"),
        (spec(monitoring={}, agent=OLD), None, ""),
        (
            spec(monitoring={}, agent=OLD),
            spec(monitoring={}, agent=OLD),
            "spec.agent.image operator:1 is kept; this operator's default is operator:2",
        ),
        (spec(agent=OLD), spec(agent=OLD), ""),
    ],
)
def test_warnings(new: dict[str, Any], old: dict[str, Any] | None, expected: str) -> None:
    found = warnings(memcached(new), None if old is None else memcached(old), IMAGES)
    assert [expected] * bool(expected) == [each.partition("; new pods")[0] for each in found]
