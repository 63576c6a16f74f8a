"""The plugin says of the fields in its advice what a change of them does in the operator."""

from typing import Any, Final

import msgspec
import pytest

from kubectl_memcached.model.losses import sentences
from memcached_api.memcached.changes.effect import effect_of
from memcached_api.memcached.effects import Effect
from memcached_api.memcached.types import MemcachedSpec

Object = dict[str, Any]
SPECS: Final[dict[str, Object]] = {
    "Pooled": {},
    "Stable": {"identity": "Stable"},
    "Stable with monitoring": {"identity": "Stable", "monitoring": {}},
    "Stable with disabled monitoring": {"identity": "Stable", "monitoring": {"enabled": False}},
    "Stable with its memory": {"identity": "Stable", "monitoring": {}, "cache": {"memory": "64Mi"}},
    "Stable with warm restarts": {"identity": "Stable", "cache": {"warmRestart": True, "memory": "64Mi"}},
    "Stable with a derived memory": {"identity": "Stable", "cache": {"warmRestart": True}},
}
LIMIT: Final[Object] = {"resources": {"limits": {"memory": "400Mi"}}}
ADVICE: Final[dict[str, Object]] = {
    "raise spec.resources.limits.memory": LIMIT,
    "raise spec.agent.resources.limits.memory": {"agent": LIMIT},
    "raise spec.cache.maxConnections, or let clients keep fewer open": {"cache": {"maxConnections": 2048}},
    "raise spec.cache.memory": {"cache": {"memory": "128Mi"}},
    "Lower spec.cache.memory": {"cache": {"memory": "32Mi"}},
    "lower spec.resources.requests.cpu, or add a node": {"resources": {"requests": {"cpu": "5m"}}},
    "lower spec.cache.verbosity": {"cache": {"verbosity": 2}},
    "add spec.podTemplate.spec.tolerations": {"podTemplate": {"spec": {"tolerations": [{"operator": "Exists"}]}}},
    "renew the Secret in spec.tls.secretName": {},
    "set spec.auth.secretName to it: this replaces the pods, and their items are lost": {},
}


def is_possible(advice: str, spec: Object) -> bool:
    """Whether a Memcached can get this advice: one about the agent needs an agent."""
    return "agent" not in advice or bool({"monitoring", "cache"} & spec.keys())


@pytest.mark.parametrize(
    ("advice", "name"), [(each, name) for each in ADVICE for name, spec in SPECS.items() if is_possible(each, spec)]
)
def test_loss_is_that_of_a_change(advice: str, name: str) -> None:
    spec, change = SPECS[name], ADVICE[advice]
    if "Lower spec.cache.memory" in advice and "Stable with warm restarts" in name:
        change = {"cache": {"memory": "64Mi"}}
        spec = {**spec, "cache": {**spec["cache"], "memory": "128Mi"}}
    if "requests.cpu" in advice:
        spec = {**spec, "resources": {"requests": {"cpu": "10m"}}}
    changed = {**spec, **change, "cache": {**spec.get("cache", {}), **change.get("cache", {})}}
    new, old = (msgspec.convert(each, MemcachedSpec) for each in (changed, spec))
    loses = effect_of(new, old).effect is Effect.REPLACE
    found = list(sentences({"spec": spec}, [f"sessions-0: {advice}"]))
    field = next((word.strip(",") for word in advice.split() if word.startswith("spec.")), "")
    assert found == ([f"Changing {field} replaces the pods, and their items are lost."] if loses else [])


def test_fields_are_named_once_and_advice_without_a_field_loses_nothing() -> None:
    (sentence,) = sentences({}, ["raise spec.cache.memory", "lower spec.cache.verbosity; raise spec.cache.memory"])
    assert sentence.startswith("Changing spec.cache.memory or spec.cache.verbosity replaces")
    assert list(sentences({}, ["uncordon a node"])) == []
