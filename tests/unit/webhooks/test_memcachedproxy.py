"""Admission of a MemcachedProxy: defaults and warnings. test_memcached.py tests what all kinds have in common."""

from typing import Any

import pytest

from memcached_api.images import Images
from memcached_webhooks.kinds import memcachedproxy
from memcached_webhooks.kinds.memcachedproxy import defaults
from memcached_webhooks.review import GroupVersionKind, ReviewResponse
from memcached_webhooks.stored import Stored

from .reviews import request

KIND = GroupVersionKind("cache.example.com", "v1alpha1", "MemcachedProxy")
IMAGE = "docker.io/library/memcached:1.6.45"
AGENT = "example.com/agent:1"
IMAGES = Images(IMAGE, AGENT)
HANDLERS = memcachedproxy.admission(IMAGES).handlers()
MUTATE, VALIDATE = sorted(HANDLERS)


def obj(spec: Any) -> dict[str, Any]:
    """A proxy with this spec."""
    return {"metadata": {"name": "front"}, "spec": {"memcachedRef": {"name": "sessions"}, **spec}}


def respond(path: str, new: Any, old: Any = None) -> ReviewResponse:
    """The response to a request that creates or changes a proxy."""
    return HANDLERS[path](request(obj(new), None if old is None else obj(old), kind=KIND, name=""))


def warned(new: Any, old: Any = None) -> list[str]:
    """The warnings about a valid proxy."""
    found = respond(VALIDATE, new, old)
    assert found.denial is None
    return list(found.warnings)


def test_paths() -> None:
    assert MUTATE == "/mutate-cache-example-com-v1alpha1-memcachedproxy"


def test_defaults_of_a_new_object() -> None:
    found = defaults({}, None, IMAGES)
    assert {name: found[name] for name in ("size", "port", "image", "podDisruptionBudget")} == {
        "size": 2,
        "port": 11211,
        "image": IMAGE,
        "podDisruptionBudget": {"enabled": True, "maxUnavailable": 1},
    }
    spread = found["podTemplate/spec/topologySpreadConstraints"]
    assert [each["topologyKey"] for each in spread] == ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]
    assert all(each["matchLabelKeys"] == ["pod-template-hash"] for each in spread)
    assert len(found) == 5


def test_set_values_are_kept() -> None:
    spec: dict[str, Any] = {
        "size": 3,
        "port": 11300,
        "image": "a",
        "podDisruptionBudget": {},
        "podTemplate": {"spec": {"topologySpreadConstraints": []}},
    }
    assert defaults(spec, None, IMAGES) == {}


def test_update_sets_only_what_it_removes() -> None:
    assert defaults({}, Stored({}), IMAGES) == {"size": 2, "port": 11211}
    old = {"podDisruptionBudget": {"enabled": False}, "rollout": {"restartedAt": "2026-11-22T10:00:00Z"}}
    assert defaults({"size": 2, "port": 11211}, Stored(old), IMAGES) == {
        "podDisruptionBudget": {"enabled": True, "maxUnavailable": 1},
        "rollout/restartedAt": "2026-11-22T10:00:00Z",
    }


@pytest.mark.parametrize("spec", [{"monitoring": {}}, {"tls": {"secretName": "a"}}])
def test_image_of_the_agent_is_set_when_it_is_needed(spec: dict[str, Any]) -> None:
    assert defaults(spec, None, IMAGES)["agent/image"] == AGENT
    sized = {"size": 2, "port": 11211}
    assert defaults({**sized, **spec}, Stored(sized), IMAGES) == {"agent/image": AGENT}
    old = {**sized, **spec, "agent": {"image": "example.com/agent:0"}}
    assert defaults({**sized, **spec}, Stored(old), IMAGES) == {"agent/image": "example.com/agent:0"}
    assert defaults(sized, Stored(old), IMAGES) == {}


def test_image_of_an_earlier_release_is_kept() -> None:
    assert defaults({"size": 2, "port": 1}, Stored({"image": "memcached:1.6.99"}), IMAGES) == {
        "image": "memcached:1.6.99"
    }


def test_removed_field_is_a_warning() -> None:
    found = respond(MUTATE, {}, {"podDisruptionBudget": {"enabled": False}})
    assert list(found.warnings) == [
        "spec.podDisruptionBudget was removed, so its default is set; to have none, set enabled: false"
    ]


WARNINGS: dict[str, tuple[Any, Any, list[str]]] = {
    "nothing": ({"image": IMAGE}, {"image": IMAGE}, []),
    "a new object": ({"image": IMAGE}, None, []),
    "more pods": ({"size": 4}, {"size": 2}, []),
    "fewer pods": (
        {"size": 2},
        {"size": 5},
        ["3 of 5 pods will be deleted; the connections of their clients are closed"],
    ),
    "another cache": (
        {"memcachedRef": {"name": "other"}},
        {},
        [
            "spec.memcachedRef.name: all keys are read from Memcached other, where they are cold",
            "spec.memcachedRef.name: this change replaces 2 pods; each connection of a client is closed once",
        ],
    ),
    "one pod": (
        {"size": 1, "port": 11300},
        {"size": 1},
        ["spec.port: this change replaces 1 pod; each connection of a client is closed once"],
    ),
    "many fields": (
        {"threads": 4, "maxConnections": 100, "timeouts": {"read": "1s"}},
        {},
        ["spec.threads and 2 more fields: this change replaces 2 pods; each connection of a client is closed once"],
    ),
    "a restart": (
        {"rollout": {"restartedAt": "2030-01-01T12:00:00Z"}},
        {"rollout": {"restartedAt": "2030-01-01T11:00:00Z"}},
        ["spec.rollout.restartedAt: this change replaces 2 pods; each connection of a client is closed once"],
    ),
    "TLS": (
        {"tls": {"secretName": "a"}},
        {},
        ["spec.tls.secretName: this change replaces 2 pods; each connection of a client is closed once"],
    ),
    "another interval of the metrics": ({"monitoring": {"podMonitor": {"interval": "1m"}}}, {"monitoring": {}}, []),
    "the same values": (
        {"threads": 2, "maxConnections": 4096, "timeouts": {"read": "500ms"}, "rollout": {"maxSurge": 1}},
        {},
        [],
    ),
    "a mutable image": (
        {"image": "memcached"},
        None,
        ["spec.image memcached has no fixed version; new pods may run a different one"],
    ),
    "an outdated image": (
        {"image": "docker.io/library/memcached:1.6.46"},
        {"image": "docker.io/library/memcached:1.6.46"},
        ["spec.image docker.io/library/memcached:1.6.46 is kept; this operator's default is " + IMAGE],
    ),
    "too many threads": (
        {"threads": 3, "resources": {"limits": {"cpu": "1"}}},
        None,
        ["spec.threads of 3 is more than twice the CPU limit: threads that wait for a CPU make memcached slower"],
    ),
    "too many threads as before": (
        {"size": 3, "threads": 3, "resources": {"limits": {"cpu": "1"}}},
        {"threads": 3, "resources": {"limits": {"cpu": "1"}}},
        [],
    ),
    "slow scrapes": (
        {"agent": {"image": "a:1"}, "monitoring": {"podMonitor": {"interval": "3m"}}},
        None,
        [
            "spec.monitoring.podMonitor.interval of 3m is more than 2m: Prometheus drops a sample after 5m, so alerts "
            "may not fire"
        ],
    ),
    "a CPU limit below the default threads": (
        {"resources": {"limits": {"cpu": "900m"}}},
        None,
        ["spec.threads of 2 is more than twice the CPU limit: threads that wait for a CPU make memcached slower"],
    ),
}


@pytest.mark.parametrize(("new", "old", "expected"), WARNINGS.values(), ids=WARNINGS.keys())
def test_warnings(new: Any, old: Any, expected: list[str]) -> None:
    assert warned(new, old) == expected


def test_rule_of_the_whole_object_denies() -> None:
    found = respond(VALIDATE, {"memcachedRef": {"name": "front"}})
    assert found.denial is not None
    assert "spec.memcachedRef.name" in str(found.denial)


LOW: dict[str, Any] = {"resources": {"limits": {"memory": "32Mi"}}}
"""A limit that objects may have had before admission rejected it."""
KEPT: dict[str, tuple[dict[str, Any], bool]] = {
    "another field": ({**LOW, "size": 5}, False),
    "the default as a number": ({**LOW, "threads": 2, "maxConnections": 4096}, False),
    "more threads": ({**LOW, "threads": 3}, True),
    "TLS": ({**LOW, "tls": {"secretName": "a"}}, True),
    "another limit that is too low": ({"resources": {"limits": {"memory": "33Mi"}}}, True),
    "few connections": ({**LOW, "threads": 1, "maxConnections": 100}, False),
}


@pytest.mark.parametrize(("new", "denied"), KEPT.values(), ids=KEPT.keys())
def test_stored_object_with_a_low_memory_limit_can_be_changed(new: dict[str, Any], denied: bool) -> None:
    found = respond(VALIDATE, new, LOW).denial
    assert (found is not None) == denied
    assert found is None or "spec.resources.limits[memory]" in str(found)
