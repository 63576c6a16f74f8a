"""Deletion of objects: preconditions, grace periods, finalizers.

Source: k8s.io/apiserver, Store.Delete and rest.BeforeDelete.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from memcached_operator.kube.resource import Key, Object, nested_map
from simulation.api.errors import deletion_conflict, not_found
from simulation.api.kinds import NAMESPACES, PODS, Kind
from simulation.api.registry import timestamp
from simulation.api.storage import Storage

ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"
"""The finalizers of the garbage collector."""

RETURNED: Final = frozenset(
    {"pods", "services", "namespaces", "serviceaccounts", "resourcequotas", "persistentvolumeclaims"}
)
"""The resources whose deleted object is the response (ReturnDeletedObject). For all others, it is a Status."""


class DeleteOptions(NamedTuple):
    """The options of a deletion. `seconds`: the grace period; None is the default of the object."""

    uid: str | None = None
    version: str | None = None
    propagation: str = ""
    seconds: int | None = None
    dry_run: bool = False


def options_of(body: Object | None, propagation: str = "", *, dry_run: bool = False) -> DeleteOptions:
    """The options in a body. `propagation`, `dry_run`: those in the query."""
    body = body or {}
    preconditions = nested_map(body, "preconditions")
    orphans = body.get("orphanDependents")
    old = "" if orphans is None else "Orphan" if orphans else "Background"
    return DeleteOptions(
        preconditions.get("uid"),
        preconditions.get("resourceVersion"),
        body.get("propagationPolicy") or propagation or old,
        body.get("gracePeriodSeconds"),
        dry_run or "All" in (body.get("dryRun") or ()),
    )


class Deleter:
    """Deletes objects, or marks them for deletion."""

    def __init__(self, storage: Storage, now: Callable[[], datetime]) -> None:
        self._storage = storage
        self._now = now

    def delete(self, kind: Kind, key: Key, options: DeleteOptions) -> Object:
        """Delete an object; returns the response. Raises StatusError."""
        live = self._storage.get(key)
        if live is None:
            raise not_found(kind.resource, key.name)
        _check_preconditions(key, live, options)
        if kind.resource == NAMESPACES:
            return self._terminate(key, live, options)
        seconds = _grace_period(live, options) if kind.resource == PODS else 0
        if seconds is None:  # the pod is being deleted already
            return live
        finalizers = _finalizers(live, options)
        if seconds or finalizers:
            return self._mark(key, live, seconds, finalizers, dry_run=options.dry_run)
        if kind.resource == PODS and live["metadata"].get("deletionGracePeriodSeconds") != 0:
            live = self._mark(key, live, 0, [], dry_run=options.dry_run)
        last = live if options.dry_run else self._storage.remove(key)
        return last if kind.resource.plural in RETURNED else success(key, live)

    def _mark(self, key: Key, live: Object, seconds: int, finalizers: list[str], *, dry_run: bool) -> Object:
        """Mark an object for deletion in some seconds."""
        before = live["metadata"]
        meta: Object = {**before, "deletionGracePeriodSeconds": seconds, "finalizers": finalizers}
        if not finalizers:
            del meta["finalizers"]
        if "deletionTimestamp" not in before:
            meta["deletionTimestamp"] = timestamp(self._now() + timedelta(seconds=seconds))
            if "generation" in before:
                meta["generation"] = before["generation"] + 1
        elif seconds < before.get("deletionGracePeriodSeconds", 0):
            earlier = timedelta(seconds=before["deletionGracePeriodSeconds"] - seconds)
            deleted_at = datetime.fromisoformat(before["deletionTimestamp"]) - earlier
            meta["deletionTimestamp"] = timestamp(max(deleted_at, self._now()))
        new = {**live, "metadata": meta}
        return new if dry_run or new == live else self._storage.put(key, new)

    def _terminate(self, key: Key, live: Object, options: DeleteOptions) -> Object:
        """Mark a namespace: it exists until its controller has deleted its content."""
        if "deletionTimestamp" in live["metadata"]:
            return live
        meta = {**live["metadata"], "deletionTimestamp": timestamp(self._now())}
        new = {**live, "metadata": meta, "status": {**live["status"], "phase": "Terminating"}}
        return new if options.dry_run else self._storage.put(key, new)


def success(key: Key, obj: Object) -> Object:
    """The response to a deletion."""
    group = {"group": key.resource.group} if key.resource.group else {}
    details = {"name": key.name, **group, "kind": key.resource.plural, "uid": obj["metadata"]["uid"]}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def _check_preconditions(key: Key, live: Object, options: DeleteOptions) -> None:
    meta = live["metadata"]
    for name, wanted, found, cause in (
        ("UID", options.uid, meta["uid"], "deleted and then recreated"),
        ("ResourceVersion", options.version, meta["resourceVersion"], "modified"),
    ):
        if wanted is not None and wanted != found:
            problem = f"the {name} in the precondition ({wanted}) does not match the {name} in record ({found})"
            raise deletion_conflict(key.resource, key.name, f"{problem}. The object might have been {cause}")


def _grace_period(pod: Object, options: DeleteOptions) -> int | None:
    """Seconds until a pod must be deleted; None if it is being deleted at least as early."""
    meta, spec = pod["metadata"], pod["spec"]
    if "deletionTimestamp" in meta:
        left = meta.get("deletionGracePeriodSeconds", 0)
        if left == 0:
            return 0
        return options.seconds if options.seconds is not None and options.seconds < left else None
    is_over = not spec.get("nodeName") or pod["status"].get("phase") in ("Failed", "Succeeded")
    wanted = spec.get("terminationGracePeriodSeconds", 0) if options.seconds is None else options.seconds
    return 0 if is_over else wanted if wanted >= 0 else 1


def _finalizers(live: Object, options: DeleteOptions) -> list[str]:
    """The finalizers with those of the garbage collector that the propagation needs."""
    found: list[str] = live["metadata"].get("finalizers", [])
    mine = {"Orphan": [ORPHAN], "Foreground": [FOREGROUND], "Background": []}.get(options.propagation)
    if mine is None:
        return found
    return [each for each in found if each not in (ORPHAN, FOREGROUND)] + mine
