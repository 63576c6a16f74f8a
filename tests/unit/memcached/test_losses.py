"""Each remedy that names fields says whether items are lost, as a change of these fields does."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
import pytest

from memcached_api.memcached.changes.effect import effect_of
from memcached_api.memcached.effects import Effect
from memcached_api.memcached.types import MemcachedSpec
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.containers import CONTAINERS, DISRUPTIONS
from memcached_operator.memcached.interventions import RECOMMENDED
from memcached_operator.memcached.losses import PHRASES, loss_with
from memcached_operator.shared.containers import METADATA, SURGE
from memcached_operator.shared.pause import RESUME
from memcached_operator.workloads.problems.creation_remedies import REMEDIES
from memcached_operator.workloads.problems.image_errors import ERRORS, OTHER

SPECS: Final[dict[str, Object]] = {
    "Pooled": {"monitoring": {}},
    "Stable": {"identity": "Stable", "monitoring": {}},
    "Stable, with its memory": {"identity": "Stable", "monitoring": {}, "cache": {"memory": "64Mi"}},
    "Stable, warm restarts": {"identity": "Stable", "cache": {"warmRestart": True}},
    "Stable, warm restarts, with its memory": {"identity": "Stable", "cache": {"warmRestart": True, "memory": "64Mi"}},
}
POD: Final[Object] = {"podTemplate": {"spec": {"serviceAccountName": "other"}}}
LOWER: Final[Object] = {"resources": {"requests": {"memory": "300Mi"}, "limits": {"memory": "300Mi"}}}
MORE: Final[Object] = {"resources": {"limits": {"cpu": "1"}}}
STORAGE: Final[Object] = {"resources": {"limits": {"ephemeral-storage": "1Gi"}}}
CHANGES: Final[Mapping[str, Object]] = {
    "spec.image": {"image": "a:2"},
    "spec.imagePullSecrets": {"imagePullSecrets": [{"name": "a"}]},
    "spec.podTemplate.spec.securityContext.runAsUser": {"podTemplate": {"spec": {"securityContext": {"runAsUser": 7}}}},
    "spec.cache.warmRestart": {"cache": {"warmRestart": False}},
    "spec.agent.image": {"agent": {"image": "a:2"}},
    "spec.resources.limits.memory": {"resources": {"limits": {"memory": "400Mi"}}},
    "spec.agent.resources.limits.memory": {"agent": {"resources": {"limits": {"memory": "64Mi"}}}},
    "spec.size": {"size": 2},
    "spec.resources": LOWER,
    "spec.agent.resources": {"agent": {"resources": {"limits": {"memory": "64Mi"}}}},
    "spec.resources.requests.memory": {"resources": {"requests": {"memory": "400Mi"}}},
    "spec.resources.limits": STORAGE,
    "spec.agent.resources.limits": {"agent": STORAGE},
    "spec.cache.verbosity": {"cache": {"verbosity": 2}},
    "spec.podTemplate.spec.priorityClassName": {"podTemplate": {"spec": {"priorityClassName": "a"}}},
    "spec.podTemplate.spec.tolerations": {"podTemplate": {"spec": {"tolerations": [{"operator": "Exists"}]}}},
    "spec.podTemplate.spec.nodeSelector": {"podTemplate": {"spec": {"nodeSelector": {"a": "b"}}}},
    METADATA: {"podTemplate": {"metadata": {"labels": {"team": "a"}}}},
    "spec.rollout.maxSurge": {"rollout": {"maxSurge": 0}},
    "spec.rollout.maxUnavailable": {"rollout": {"maxUnavailable": 1}},
    "spec.rollout.paused": {"rollout": {"paused": False}},
    **dict.fromkeys(PHRASES, POD),
}
"""A change of each field that a remedy names."""

LOWER_SIZE: Final[Mapping[str, str]] = {
    "Pooled": "Lowering spec.size can delete pods, and their items are then lost",
    "Stable": "Lowering spec.size deletes the highest slots, and their items are lost",
}


def remedies() -> Iterator[str]:
    """The remedies that name fields."""
    for row in CONTAINERS.values():
        yield from (error.advice(row) for error in (*ERRORS, OTHER))
        yield from (row.memory, *(text for _, text in row.start))
    yield from (remedy for _, remedy in REMEDIES)
    yield from DISRUPTIONS.values()
    yield from (RECOMMENDED, RESUME, SURGE, f"add what it requires to {METADATA}, or change the policy")


def loses(base: Object, change: Object, remedy: str) -> bool:
    """Whether a change of a spec loses items. Where amounts are set, they are others than before. A size is lower."""
    if "set what it names" in remedy or "set spec.resources.limits" in remedy or remedy == RECOMMENDED:
        change = {**change, **MORE} if "resources" in change else {"agent": MORE}
    base = {"size": 3, **base}
    merged = {**base, **change, "cache": {**base.get("cache", {}), **change.get("cache", {})}}
    new, old = (msgspec.convert(spec, MemcachedSpec) for spec in (merged, base))
    return new.size < old.size or effect_of(new, old).effect is Effect.REPLACE


def is_possible(remedy: str, base: Object) -> bool:
    """Whether a Memcached can get this remedy: one is for an error of a warm restart."""
    return "spec.cache.warmRestart" not in remedy or bool(base.get("cache", {}).get("warmRestart"))


@pytest.mark.parametrize(
    ("remedy", "name"),
    [(each, name) for each in dict.fromkeys(remedies()) for name, base in SPECS.items() if is_possible(each, base)],
)
def test_loss_is_that_of_a_change(remedy: str, name: str) -> None:
    base: dict[str, Any] = SPECS[name]
    named = sorted((each for each in CHANGES if each in remedy), key=len, reverse=True)
    named = [each for index, each in enumerate(named) if not any(each in longer for longer in named[:index])]
    found = loss_with(msgspec.convert(base, MemcachedSpec))(remedy)
    losing = {each for each in named if loses(base, CHANGES[each], remedy)}
    assert bool(found) is bool(losing), found
    if " spec." in found:
        assert {each for each in named if each in found} == losing
    assert found == "" or found.endswith((" replaces the pods, and their items are lost", *LOWER_SIZE.values()))


@pytest.mark.parametrize(("name", "expected"), LOWER_SIZE.items())
def test_lower_size_deletes_pods(name: str, expected: str) -> None:
    spec = msgspec.convert(SPECS[name], MemcachedSpec)
    assert loss_with(spec)("raise ResourceQuota q, or lower spec.size") == f". {expected}"
    assert loss_with(spec)("correct spec.size") == ""


def test_invalid_spec_keeps_nothing() -> None:
    assert loss_with(None)("correct spec.image") == ". This replaces the pods, and their items are lost"
    assert loss_with(None)("correct the image") == ""
