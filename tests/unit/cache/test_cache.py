from itertools import permutations
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memcached_operator.cache.cache import Cache, transform
from memcached_operator.kube.resource import DEPLOYMENTS, PODS, Key, Object, key_of
from memcached_operator.reconcile.ownership import controller_reference
from unit.builders import LABELS, memcached, owned, pod

KEY = Key(DEPLOYMENTS, "test", "cache")


def live(version: int, **meta: Any) -> Object:
    """A Deployment of a Memcached at a version."""
    return owned(version=version, **meta)


def version_in(cache: Cache, key: Key = KEY) -> str | None:
    """What the store holds."""
    found = cache.get(key)
    return None if found is None else found["metadata"]["resourceVersion"]


def test_an_unknown_object_is_none() -> None:
    assert Cache().get(KEY) is None
    assert list(Cache().list_objects(DEPLOYMENTS)) == []


def test_the_newest_version_wins() -> None:
    cache = Cache()
    assert cache.put(DEPLOYMENTS, live(9))
    assert cache.put(DEPLOYMENTS, live(10))
    assert not cache.put(DEPLOYMENTS, live(9))
    assert version_in(cache) == "10"


def test_the_same_version_again_is_no_news() -> None:
    cache = Cache()
    cache.put(DEPLOYMENTS, live(9))
    assert not cache.put(DEPLOYMENTS, live(9))


def test_versions_are_compared_as_numbers() -> None:
    cache = Cache()
    cache.put(DEPLOYMENTS, live(9))
    assert cache.put(DEPLOYMENTS, live(100))


def test_what_is_gone_does_not_come_back_by_a_late_reply() -> None:
    cache = Cache()
    cache.put(DEPLOYMENTS, live(9))
    assert cache.remove(KEY, 12)
    assert not cache.put(DEPLOYMENTS, live(11))
    assert version_in(cache) is None


def test_what_was_never_seen_does_not_come_by_a_late_reply_either() -> None:
    cache = Cache()
    assert not cache.remove(KEY, 12)
    assert not cache.put(DEPLOYMENTS, live(11))


def test_what_is_made_anew_is_known_again() -> None:
    cache = Cache()
    cache.remove(KEY, 12)
    assert cache.put(DEPLOYMENTS, live(13))
    assert version_in(cache) == "13"


def test_an_older_deletion_does_not_remove_what_was_made_since() -> None:
    cache = Cache()
    cache.put(DEPLOYMENTS, live(13))
    assert not cache.remove(KEY, 12)
    assert version_in(cache) == "13"


def test_a_list_brings_what_is_new_and_drops_what_is_gone() -> None:
    cache = Cache()
    cache.put(DEPLOYMENTS, live(9, name="gone"))
    cache.replace(DEPLOYMENTS, None, [live(10)], 20)
    assert [obj["metadata"]["name"] for obj in cache.list_objects(DEPLOYMENTS)] == ["cache"]


def test_a_list_does_not_drop_what_is_newer_than_it() -> None:
    cache = Cache()
    cache.put(DEPLOYMENTS, live(21))
    cache.replace(DEPLOYMENTS, None, [], 20)
    assert version_in(cache) == "21"


def test_a_list_does_not_bring_back_what_was_deleted_after_it() -> None:
    cache = Cache()
    cache.remove(KEY, 21)
    cache.replace(DEPLOYMENTS, None, [live(10)], 20)
    assert version_in(cache) is None


def test_a_late_reply_after_a_list_that_lacks_the_object_is_news_only_if_newer() -> None:
    cache = Cache()
    cache.put(DEPLOYMENTS, live(9))
    cache.replace(DEPLOYMENTS, None, [], 20)
    assert cache.put(DEPLOYMENTS, live(21))


def test_the_list_of_a_namespace_says_nothing_of_others() -> None:
    cache = Cache()
    cache.put(DEPLOYMENTS, live(9, namespace="other"))
    cache.replace(DEPLOYMENTS, "test", [], 20)
    assert version_in(cache, Key(DEPLOYMENTS, "other", "cache")) == "9"


def test_the_list_of_a_resource_says_nothing_of_others() -> None:
    cache = Cache()
    cache.put(PODS, pod())
    cache.replace(DEPLOYMENTS, None, [], 20)
    assert len(list(cache.list_objects(PODS))) == 1


def test_children_are_found_by_the_uid_of_their_controller() -> None:
    cache = Cache()
    cache.put(DEPLOYMENTS, live(9))
    cache.put(DEPLOYMENTS, owned(memcached(uid="other"), name="other"))
    assert [obj["metadata"]["name"] for obj in cache.owned_by(DEPLOYMENTS, "cr")] == ["cache"]
    assert list(cache.owned_by(PODS, "cr")) == []


def test_a_child_that_changes_its_controller_is_found_under_the_new_one_only() -> None:
    cache = Cache()
    cache.put(DEPLOYMENTS, live(9))
    cache.put(DEPLOYMENTS, live(10, ownerReferences=[controller_reference(memcached(uid="new"))]))
    assert list(cache.owned_by(DEPLOYMENTS, "cr")) == []
    assert len(list(cache.owned_by(DEPLOYMENTS, "new"))) == 1


def test_a_child_that_is_gone_or_orphaned_is_not_found() -> None:
    cache = Cache()
    cache.put(DEPLOYMENTS, live(9))
    cache.put(DEPLOYMENTS, live(10, name="second"))
    cache.remove(KEY, 11)
    cache.put(DEPLOYMENTS, live(12, name="second", ownerReferences=[]))
    assert list(cache.owned_by(DEPLOYMENTS, "cr")) == []


def test_pods_are_found_by_the_labels_of_their_instance() -> None:
    cache = Cache()
    cache.put(PODS, pod("a"))
    cache.put(PODS, pod("b"))
    assert len(list(cache.of_instance(PODS, "test", "memcached", "cache"))) == 2
    assert list(cache.of_instance(PODS, "other", "memcached", "cache")) == []
    assert list(cache.of_instance(PODS, "test", "memcached", "other")) == []


def test_a_pod_that_loses_its_labels_is_not_found() -> None:
    cache = Cache()
    cache.put(PODS, pod(version=1))
    bare = pod(version=2)
    bare["metadata"] = {**bare["metadata"], "labels": {}}
    cache.put(PODS, bare)
    assert list(cache.of_instance(PODS, "test", "memcached", "cache")) == []


def test_trimming_keeps_the_places_of_managed_fields_and_who_they_belong_to() -> None:
    entries: list[Object] = [
        {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {}}, "time": "t", "apiVersion": "v1"},
        {"manager": "x", "operation": "Update", "subresource": "status", "fieldsType": "FieldsV1"},
    ]
    assert transform(live(9, managedFields=entries))["metadata"]["managedFields"] == [
        {"manager": "kubectl", "operation": "Update"},
        {"manager": "x", "operation": "Update", "subresource": "status"},
    ]


def test_trimming_drops_kubectls_copy_of_the_object_and_no_other_annotation() -> None:
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "{…}", "own": "kept"}
    obj = live(9, annotations=annotations)
    assert transform(obj)["metadata"]["annotations"] == {"own": "kept"}
    assert obj["metadata"]["annotations"] == annotations


def test_trimming_changes_nothing_else() -> None:
    obj = live(9, managedFields=None) | {"spec": {"a": 1}, "status": {"b": 2}}
    trimmed = transform(obj)
    assert trimmed["metadata"].pop("managedFields") == []
    obj["metadata"].pop("managedFields")
    assert trimmed == obj


EVENTS = st.lists(
    st.tuples(st.sampled_from(["seen", "gone"]), st.integers(1, 1000)), max_size=5, unique_by=lambda e: e[1]
)


@given(EVENTS)
def test_the_order_in_which_events_arrive_does_not_matter(events: list[tuple[str, int]]) -> None:
    results: set[str | None] = set()
    for order in permutations(events):
        cache = Cache()
        for what, version in order:
            _ = cache.put(DEPLOYMENTS, live(version)) if what == "seen" else cache.remove(KEY, version)
        results.add(version_in(cache))
    newest = max(events, key=lambda event: event[1], default=("gone", 0))
    assert results == {str(newest[1]) if newest[0] == "seen" else None}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["cr", "other", ""]), st.booleans()), max_size=12))
def test_the_indexes_always_agree_with_the_objects(steps: list[tuple[str, str, bool]]) -> None:
    cache = Cache()
    for version, (name, owner, present) in enumerate(steps, 1):
        owners = [controller_reference(memcached(uid=owner))] if owner else []
        obj = live(version, name=name, ownerReferences=owners, labels=LABELS if owner else {})
        _ = cache.put(DEPLOYMENTS, obj) if present else cache.remove(key_of(DEPLOYMENTS, obj), version)
    everything = list(cache.list_objects(DEPLOYMENTS))
    for owner in ("cr", "other"):
        expected = [obj for obj in everything if any(r["uid"] == owner for r in obj["metadata"]["ownerReferences"])]
        assert sorted(map(str, cache.owned_by(DEPLOYMENTS, owner))) == sorted(map(str, expected))
    labelled = [obj for obj in everything if obj["metadata"]["labels"]]
    found = list(cache.of_instance(DEPLOYMENTS, "test", "memcached", "cache"))
    assert sorted(map(str, found)) == sorted(map(str, labelled))


def test_what_one_list_lacks_by_mistake_is_back_with_the_next() -> None:
    cache = Cache()
    cache.put(DEPLOYMENTS, live(9))
    assert cache.replace(DEPLOYMENTS, None, [], 100) == [KEY]
    cache.replace(DEPLOYMENTS, None, [live(9)], 101)
    assert version_in(cache) == "9"
