from itertools import permutations
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memcached_api.images import Images
from memcached_operator.engine.writes.ownership import controller_reference
from memcached_operator.kube.resource import DEPLOYMENTS, PODS, Key, Object, Resource, key_of
from memcached_operator.memcached.controller import memcached as memcached_kind
from memcached_operator.world.kept_fields import whole
from memcached_operator.world.store import Store, version_of
from support.stores import whole_store
from unit.builders import LABELS, memcached, owned, pod

KIND = memcached_kind(Images("example.com/memcached:1"))
KEY = Key(DEPLOYMENTS, "test", "cache")


def live(version: int, **meta: Any) -> Object:
    """A Deployment of a Memcached at this resourceVersion."""
    return owned(version=version, **meta)


def replace(cache: Store, resource: Resource, namespace: str | None, items: list[Object], version: int) -> list[Key]:
    """Replace the objects of a resource by a list; returns the keys of those that it does not have."""
    listing = cache.listing(resource, namespace)
    listing.add(items[:1], version)
    listing.add(items[1:], version)
    return list(listing.end())


def version_in(cache: Store, key: Key = KEY) -> str | None:
    """The resourceVersion in the cache."""
    found = cache.get(key)
    return None if found is None else found["metadata"]["resourceVersion"]


def test_same_version_again_is_not_a_change() -> None:
    cache = whole_store()
    cache.put(DEPLOYMENTS, live(9))
    assert not cache.put(DEPLOYMENTS, live(9))


def test_late_reply_does_not_add_an_unseen_deleted_object() -> None:
    cache = whole_store()
    assert not cache.remove(KEY, 12)
    assert not cache.put(DEPLOYMENTS, live(11))


def test_list_adds_new_objects_and_removes_deleted_ones() -> None:
    cache = whole_store()
    cache.put(DEPLOYMENTS, live(9, name="deleted"))
    replace(cache, DEPLOYMENTS, None, [live(10)], 20)
    assert [obj["metadata"]["name"] for obj in cache.list_objects(DEPLOYMENTS)] == ["cache"]


def test_list_does_not_remove_newer_objects() -> None:
    cache = whole_store()
    listing = cache.listing(DEPLOYMENTS, None)
    cache.put(DEPLOYMENTS, live(21))
    listing.add([], 20)
    listing.end()
    assert version_in(cache) == "21"


def test_list_does_not_restore_objects_deleted_after_it() -> None:
    cache = whole_store()
    listing = cache.listing(DEPLOYMENTS, None)
    cache.remove(KEY, 21)
    listing.add([live(10)], 20)
    listing.end()
    assert version_in(cache) is None


def test_list_that_is_older_than_what_was_known_before_it_is_right() -> None:
    cache = whole_store()
    for namespace in ("test", "other"):
        cache.put(DEPLOYMENTS, live(30, name="created", namespace=namespace))
        cache.put(DEPLOYMENTS, live(31, namespace=namespace))
    cache.remove(Key(DEPLOYMENTS, "test", "deleted"), 32)
    replace(cache, DEPLOYMENTS, "test", [live(10), live(11, name="deleted")], 20)
    known = sorted((each["metadata"]["name"], version_of(each)) for each in cache.list_objects(DEPLOYMENTS))
    assert known == [("cache", 10), ("cache", 31), ("created", 30), ("deleted", 11)]


def test_reply_newer_than_a_list_without_the_object_adds_it() -> None:
    cache = whole_store()
    cache.put(DEPLOYMENTS, live(9))
    replace(cache, DEPLOYMENTS, None, [], 20)
    assert cache.put(DEPLOYMENTS, live(21))


def test_list_of_a_namespace_does_not_affect_others() -> None:
    cache = whole_store()
    cache.put(DEPLOYMENTS, live(9, namespace="other"))
    cache.remove(Key(DEPLOYMENTS, "other", "deleted"), 12)
    replace(cache, DEPLOYMENTS, "test", [], 20)
    assert version_in(cache, Key(DEPLOYMENTS, "other", "cache")) == "9"
    assert not cache.put(DEPLOYMENTS, live(11, namespace="other", name="deleted"))


def test_newest_version_is_that_of_an_object_or_of_a_deletion() -> None:
    cache = whole_store()
    assert cache.newest(DEPLOYMENTS, None) == 0
    cache.put(DEPLOYMENTS, live(9))
    cache.put(PODS, pod(version=20))
    cache.remove(Key(DEPLOYMENTS, "other", "deleted"), 12)
    found = [
        cache.newest(*each) for each in ((DEPLOYMENTS, None), (DEPLOYMENTS, "test"), (PODS, None), (PODS, "other"))
    ]
    assert found == [12, 9, 20, 0]


def test_each_change_of_an_object_changes_the_revision() -> None:
    cache = whole_store()
    revisions = [cache.revision]
    for change in (lambda: cache.put(DEPLOYMENTS, live(9)), lambda: cache.remove(KEY, 10)):
        change()
        revisions.append(cache.revision)
    assert len({*revisions}) == 3


def test_children_are_found_by_the_uid_of_their_controller() -> None:
    cache = whole_store()
    cache.put(DEPLOYMENTS, live(9))
    cache.put(DEPLOYMENTS, owned(memcached(uid="other"), name="other"))
    cache.put(DEPLOYMENTS, live(9, name="forged", namespace="attacker"))
    assert [key.name for key in cache.owned_by(DEPLOYMENTS, "test", "cr")] == ["cache"]
    assert cache.owned_by(PODS, "test", "cr") == []


def test_pods_are_found_by_the_labels_of_their_instance() -> None:
    cache = whole_store()
    cache.put(PODS, pod("a"))
    cache.put(PODS, pod("b"))
    assert len(list(cache.entries_of_instance(PODS, "test", "memcached", "cache"))) == 2
    assert list(cache.entries_of_instance(PODS, "other", "memcached", "cache")) == []
    assert list(cache.entries_of_instance(PODS, "test", "memcached", "other")) == []


def test_whole_object_keeps_manager_operation_subresource_and_time_of_managed_fields() -> None:
    entries: list[Object] = [
        {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {}}, "time": "t", "apiVersion": "v1"},
        {"manager": "x", "operation": "Update", "subresource": "status", "fieldsType": "FieldsV1"},
    ]
    assert whole(live(9, managedFields=entries))["metadata"]["managedFields"] == [
        {"manager": "kubectl", "operation": "Update", "time": "t"},
        {"manager": "x", "operation": "Update", "subresource": "status"},
    ]


def test_whole_object_removes_only_the_last_applied_annotation() -> None:
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "{…}", "own": "kept"}
    obj = live(9, annotations=annotations)
    assert whole(obj)["metadata"]["annotations"] == {"own": "kept"}
    assert obj["metadata"]["annotations"] == annotations


def test_whole_object_changes_nothing_else() -> None:
    obj = live(9, managedFields=None) | {"spec": {"a": 1}, "status": {"b": 2}}
    found = whole(obj)
    assert found["metadata"].pop("managedFields") == []
    obj["metadata"].pop("managedFields")
    assert found == obj


EVENTS = st.lists(
    st.tuples(st.sampled_from(["updated", "deleted"]), st.integers(1, 1000)), max_size=5, unique_by=lambda e: e[1]
)


@given(EVENTS)
def test_order_of_events_does_not_matter(events: list[tuple[str, int]]) -> None:
    results: set[str | None] = set()
    for order in permutations(events):
        cache = whole_store()
        for change, version in order:
            _ = cache.put(DEPLOYMENTS, live(version)) if change == "updated" else cache.remove(KEY, version)
        results.add(version_in(cache))
    newest = max(events, key=lambda event: event[1], default=("deleted", 0))
    assert results == {str(newest[1]) if newest[0] == "updated" else None}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["cr", "other", ""]), st.booleans()), max_size=12))
def test_indexes_agree_with_the_objects(steps: list[tuple[str, str, bool]]) -> None:
    cache = whole_store()
    for version, (name, owner, present) in enumerate(steps, 1):
        owners = [controller_reference(memcached(uid=owner))] if owner else []
        obj = live(version, name=name, ownerReferences=owners, labels=LABELS if owner else {})
        _ = cache.put(DEPLOYMENTS, obj) if present else cache.remove(key_of(DEPLOYMENTS, obj), version)
    objects = list(cache.list_objects(DEPLOYMENTS))
    for owner in ("cr", "other"):
        expected = [obj for obj in objects if any(r["uid"] == owner for r in obj["metadata"]["ownerReferences"])]
        assert sorted(cache.owned_by(DEPLOYMENTS, "test", owner)) == sorted(
            key_of(DEPLOYMENTS, obj) for obj in expected
        )
    labelled = [obj for obj in objects if obj["metadata"]["labels"]]
    carriers = [entry.object() for entry in cache.entries_of_instance(DEPLOYMENTS, "test", "memcached", "cache")]
    assert sorted(map(str, carriers)) == sorted(map(str, labelled))


def test_object_that_one_list_misses_is_restored_by_the_next() -> None:
    cache = whole_store()
    cache.put(DEPLOYMENTS, live(9))
    assert replace(cache, DEPLOYMENTS, None, [], 100) == [KEY]
    replace(cache, DEPLOYMENTS, None, [live(9)], 101)
    assert version_in(cache) == "9"


@given(st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["reply", "read", "event"]))), st.integers(1, 5))
def test_a_known_event_has_no_effect(steps: list[tuple[int, str]], version: int) -> None:
    cache = whole_store()
    for at, how in steps:
        if how == "event":
            cache.put_event(DEPLOYMENTS, live(at))
        else:
            cache.put(DEPLOYMENTS, live(at), from_live_read=how == "read")
    known, before = cache.is_known(KEY, str(version)), cache.entry(KEY)
    had_effect = cache.put_event(DEPLOYMENTS, live(version))
    assert not (known and had_effect)
    assert not known or cache.entry(KEY) == before
    assert cache.is_known(KEY, str(version)) or version < max((at for at, _ in steps), default=0)
