"""What a reconcile decodes is counted, and the pods of one snapshot are limited: anyone decides how large they are."""

import pytest

from memcached_operator.engine.reconciler import gather
from memcached_operator.kube.resource import DEPLOYMENTS, PODS, SERVICES, Key, Object, key_of
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.world import sizes as module
from memcached_operator.world.sizes import Sizes
from memcached_operator.world.store import Store
from support.stores import whole_store
from unit import builders
from unit.engine.test_gather import KEY, KIND, member


def with_text(obj: Object, size: int) -> Object:
    """The object with a status of so many bytes."""
    return {**obj, "status": {"message": "x" * size}}


def made(*pods: Object) -> Store:
    """A cache with a Memcached, its Deployment and these pods."""
    cache = whole_store()
    for resource, obj in (
        (MEMCACHEDS, builders.memcached()),
        (DEPLOYMENTS, builders.owned()),
        *((PODS, pod) for pod in pods),
    ):
        cache.put(resource, obj)
    return cache


def names(cache: Store) -> list[str]:
    """The names of the pods in a snapshot."""
    snapshot = gather(cache, KIND, builders.memcached(), {})
    return sorted(pod.name for pod in snapshot.pods)


def test_everything_that_a_snapshot_has_is_counted() -> None:
    cache = made(member("a"))
    size = Sizes(cache, [KIND]).of
    assert size(KEY) == sum(
        cache.bytes_of(key_of(*each))
        for each in ((MEMCACHEDS, builders.memcached()), (PODS, member("a")), (DEPLOYMENTS, builders.owned()))
    )
    before = size(KEY)
    for resource, obj in (
        (SERVICES, builders.owned(resource=SERVICES, name="cache-7")),
        (PODS, with_text(member("b"), 5000)),
    ):
        cache.put(resource, obj)
        assert size(KEY) == before + cache.bytes_of(key_of(resource, obj))
        before = size(KEY)
    assert size(Key(MEMCACHEDS, "test", "unknown")) == 0


def test_pods_are_counted_up_to_the_limit_of_a_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PODS", 10_000)
    cache = made()
    without = Sizes(cache, [KIND]).of(KEY)
    for name in "abc":
        cache.put(PODS, with_text(member(name), 5000))
    assert Sizes(cache, [KIND]).of(KEY) == without + 10_000


def test_large_copies_of_pods_do_not_displace_real_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PODS", 20_000)
    copies = [with_text(member(f"copy-{number}"), 8000) for number in range(8)]
    assert names(made(*copies, member("a"), member("b")))[:2] == ["a", "b"]
    assert len(names(made(*copies, member("a"), member("b")))) == 4


def test_copies_that_are_not_of_the_workload_are_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PODS", 20_000)
    copies = [member(f"copy-{number}", "other-abc") for number in range(100)]
    assert names(made(*copies, with_text(member("a"), 8000))) == ["a"]
