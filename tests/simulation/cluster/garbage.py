"""The garbage collector, and the deletion of namespaces."""

from typing import Final

from memcached_operator.kube.resource import Key, Object
from simulation.cluster.access import Access, is_deleted, references

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"


def after_deletion(access: Access, obj: Object) -> None:
    """Delete what only this object owned, and continue with its owners, which may wait for it."""
    uid = obj["metadata"]["uid"]
    for dependent in _dependents(access, uid):
        without_owner(access, access.key_of(dependent))
    for owner in sorted(owners_of(obj)):
        without_dependent(access, owner)


def without_dependent(access: Access, uid: str) -> None:
    """Continue with the deletion of the owner of this uid: one dependent less blocks it."""
    for key, owner in list(access.server.objects.items()):
        if owner["metadata"]["uid"] == uid and is_deleted(owner):
            while_deleting(access, key)


def without_owner(access: Access, key: Key) -> None:
    """Delete an object if none of the owners exists that it names."""
    obj = access.get(key)
    if obj is not None and not any(_exists(access, obj, each) for each in references(obj)):
        access.delete(key)


def while_deleting(access: Access, key: Key) -> None:
    """Carry out the propagation policy of an object that is being deleted."""
    obj = access.get(key)
    if obj is None or not is_deleted(obj):
        return
    finalizers = _finalizers(obj)
    dependents = _dependents(access, obj["metadata"]["uid"])
    if ORPHAN in finalizers:
        for each in dependents:
            kept = [one for one in references(each) if one["uid"] != obj["metadata"]["uid"]]
            access.put({**each, "metadata": {**each["metadata"], "ownerReferences": kept}})
        _finish(access, obj, ORPHAN)
    elif FOREGROUND in finalizers:
        for each in dependents:
            if not is_deleted(each):
                access.delete(access.key_of(each), "Foreground")
        if not _blocking(access, obj):
            _finish(access, obj, FOREGROUND)


def sync_namespace(access: Access, key: Key) -> float | None:
    """Delete what a namespace contains, then the namespace itself."""
    live = access.get(key)
    if live is None or not is_deleted(live):
        return None
    inside = [each for each in access.server.objects if each.namespace == key.name]
    for each in inside:
        if not is_deleted(access.server.objects[each]):
            access.delete(each)
    if not any(each.namespace == key.name for each in access.server.objects):
        access.remove(key)
        return None
    return 1.0


def owners_of(obj: Object) -> set[str]:
    """The uids of an object's owners."""
    return {each["uid"] for each in references(obj)}


def _dependents(access: Access, uid: str) -> list[Object]:
    return [obj for obj in access.server.objects.values() if any(each["uid"] == uid for each in references(obj))]


def _blocking(access: Access, obj: Object) -> bool:
    uid = obj["metadata"]["uid"]
    mine = [each for dependent in _dependents(access, uid) for each in references(dependent) if each["uid"] == uid]
    return any(each.get("blockOwnerDeletion") for each in mine)


def _exists(access: Access, dependent: Object, reference: Object) -> bool:
    """Whether the owner that a reference names exists in the namespace of the dependent."""
    namespace = dependent["metadata"].get("namespace", "")
    return any(
        owner["metadata"]["uid"] == reference["uid"]
        for key, owner in access.server.objects.items()
        if key.namespace in (namespace, "")
    )


def _finalizers(obj: Object) -> list[str]:
    return obj["metadata"].get("finalizers") or []


def _finish(access: Access, obj: Object, finalizer: str) -> None:
    kept = [each for each in _finalizers(obj) if each != finalizer]
    access.put({**obj, "metadata": {**obj["metadata"], "finalizers": kept}})
