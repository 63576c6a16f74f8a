"""Warnings about a change. Each row: old spec, new spec, warnings."""

from typing import Any

import pytest

from memcached_webhooks.kinds.memcached import warnings

from .reviews import DEFAULT, memcached

REPLACES = "this change replaces all pods in a rolling update; the cached data of these pods is lost"
NOT_FIXED = "has no fixed version; new pods may run a different one"
LONG = "memcached:" + "t" * 100


def resources(**limits: Any) -> dict[str, Any]:
    return {"resources": {"limits": limits}}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, {}, []),
        (None, {"image": "memcached:1"}, []),
        (None, {"image": "memcached"}, [f"spec.image memcached {NOT_FIXED}"]),
        (None, {"image": "memcached:latest"}, [f"spec.image memcached:latest {NOT_FIXED}"]),
        ({"size": 1}, {"size": 3}, []),
        ({"size": 3}, {"size": 2}, ["1 of 3 pods will be deleted; the cached data of these pods is lost"]),
        ({"size": 3}, {}, ["2 of 3 pods will be deleted; the cached data of these pods is lost"]),
        ({}, {"containerPort": 11211, "cache": {"memory": "65536Ki"}, "resources": {}}, []),
        ({}, {"containerPort": 2000}, [f"spec.containerPort: {REPLACES}"]),
        ({}, {"cache": {"memory": "65Mi"}}, [f"spec.cache.memory: {REPLACES}"]),
        (resources(memory="1Gi", cpu="0.5"), resources(memory="1024Mi", cpu="500m"), []),
        (resources(memory="1Gi"), resources(memory="2Gi"), [f"spec.resources: {REPLACES}"]),
        (
            {},
            {"imagePullPolicy": "Always", "imagePullSecrets": [{"name": "a"}]},
            [f"spec.imagePullPolicy, spec.imagePullSecrets: {REPLACES}"],
        ),
        (
            {"image": "memcached:1"},
            {"image": "memcached"},
            [f"spec.image: {REPLACES}", f"spec.image memcached {NOT_FIXED}"],
        ),
        ({"image": DEFAULT}, {"image": DEFAULT}, []),
        ({"image": "other/memcached:1"}, {"image": "other/memcached:1"}, []),
        (
            {"image": "docker.io/library/memcached:1.6.20"},
            {"image": "docker.io/library/memcached:1.6.20"},
            [f"spec.image docker.io/library/memcached:1.6.20 is kept; this operator's default is {DEFAULT}"],
        ),
        ({"size": "x"}, {"image": "memcached"}, [f"spec.image memcached {NOT_FIXED}"]),
    ],
)
def test_warnings(old: Any, new: Any, expected: list[str]):
    assert warnings(memcached(new), None if old is None else memcached(old), DEFAULT) == expected


def test_long_images_are_truncated():
    spec = memcached({"image": LONG})
    (warning,) = warnings(spec, spec, "memcached:1")
    assert warning == f"spec.image {LONG[:79]}… is kept; this operator's default is memcached:1"
