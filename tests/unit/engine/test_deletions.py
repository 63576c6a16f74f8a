"""A child that is being deleted: its successor is created after the event of the deletion, or after a rare read."""

import pytest

from memcached_operator.world.live import FIRST_RECHECK, StaleError
from unit.builders import memcached, owned
from unit.engine.test_apply import DELETED_AT, DEPLOYMENT, Owner, child, reasons


def test_child_is_created_in_the_pass_that_finds_the_old_one_deleted() -> None:
    owner = Owner()
    owner.api.put(DEPLOYMENT, owner.api.objects[DEPLOYMENT], deletionTimestamp=DELETED_AT)
    owner.observe()
    outcome = owner.apply(child(minReadySeconds=2))
    assert (reasons(outcome), outcome.requeue_after) == (["WaitingForDeletion"], pytest.approx(FIRST_RECHECK, abs=0.5))
    del owner.api.objects[DEPLOYMENT]
    owner.wait(FIRST_RECHECK)
    outcome = owner.apply(child(minReadySeconds=2))
    assert (outcome.problems, outcome.errors, outcome.requeue_after) == ([], [], None)
    assert owner.spec == {"minReadySeconds": 2}


def test_deletion_is_awaited_with_few_reads() -> None:
    """For example because of a user's finalizer. The event of the deletion causes the next reconcile."""
    owner = Owner()
    owner.api.put(DEPLOYMENT, owner.api.objects[DEPLOYMENT], deletionTimestamp=DELETED_AT)
    owner.observe()
    for _ in range(5):
        assert reasons(owner.apply(child(minReadySeconds=2))) == ["WaitingForDeletion"]
    assert owner.api.verbs() == []
    delays: list[float] = []
    for _ in range(11):
        owner.wait(delays[-1] if delays else FIRST_RECHECK)
        delays.append(owner.apply(child(minReadySeconds=2)).requeue_after or 0)
    assert [round(delay) for delay in delays] == [2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]
    assert owner.api.verbs() == ["get"] * 11
    owner.api.calls.clear()
    del owner.api.objects[DEPLOYMENT]
    owner.cache.remove(DEPLOYMENT, 10**6)
    assert owner.apply(child(minReadySeconds=2)).problems == []
    assert owner.api.verbs() == ["create"]


def test_next_deletion_is_awaited_as_the_first_one() -> None:
    owner = Owner()
    for _ in range(2):
        owner.api.put(DEPLOYMENT, owner.api.objects[DEPLOYMENT], deletionTimestamp=DELETED_AT)
        owner.observe()
        assert owner.apply(child(minReadySeconds=2)).requeue_after == pytest.approx(FIRST_RECHECK, abs=0.5)
        owner.wait(FIRST_RECHECK)
        assert owner.apply(child(minReadySeconds=2)).requeue_after == pytest.approx(2 * FIRST_RECHECK, abs=0.5)
        del owner.api.objects[DEPLOYMENT]
        owner.api.version += 1
        owner.cache.remove(DEPLOYMENT, owner.api.version)
        assert owner.apply(child(minReadySeconds=2)).requeue_after is None


def test_owner_is_not_read_while_the_deletion_of_an_earlier_child_is_awaited() -> None:
    """A reconcile that may create a child reads its owner first. Each of these would read it."""
    owner = Owner()
    earlier = {**memcached(), "metadata": {**memcached()["metadata"], "uid": "earlier"}}
    owner.api.put(DEPLOYMENT, {**owner.api.objects[DEPLOYMENT], "metadata": owned(earlier)["metadata"]})
    owner.observe()
    assert owner.would_create(child())
    assert reasons(owner.apply(child())) == ["WaitingForDeletion"]
    assert not owner.would_create(child())
    owner.wait(FIRST_RECHECK)
    del owner.api.objects[DEPLOYMENT]
    assert not owner.would_create(child())
    with pytest.raises(StaleError):
        owner.apply(child())
    assert owner.would_create(child())
    assert owner.api.verbs() == ["get"]
