"""The manager: fills the store, handles events, runs the workers, and resyncs periodically."""

import asyncio
import logging
import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from memcached_operator.engine.discovery import discover_resize, is_served
from memcached_operator.engine.kind import ReconciledKind
from memcached_operator.engine.reconciler import Reconciler
from memcached_operator.engine.runtime.fair_queue import Limits
from memcached_operator.engine.runtime.queue import MAX_DELAY, Queue
from memcached_operator.engine.runtime.tasks import background
from memcached_operator.findings.disruptions import disruption
from memcached_operator.kube import labels
from memcached_operator.kube.client import ApiClient, ApiError
from memcached_operator.kube.resource import (
    POD_DISRUPTION_BUDGETS,
    PODS,
    Key,
    Object,
    OwnerReference,
    Resource,
    controller_of,
    key_of,
    nested_map,
)
from memcached_operator.world.kept_objects import Retention
from memcached_operator.world.knowledge import LASTING, LISTED, NOT_SERVED, UNLISTED, Knowledge
from memcached_operator.world.pod import pod_of
from memcached_operator.world.references import References
from memcached_operator.world.reflector import MAX_BACKOFF, Change, Reflector, WatchFunc, explain, run_reflectors
from memcached_operator.world.sizes import Sizes
from memcached_operator.world.store import Entry, Store, version_of

log = logging.getLogger(__name__)

WORKERS = 16
"""Maximum concurrent reconciliations: enough that the API server, not this process, limits the throughput."""

WORKERS_PER_NAMESPACE = 8
"""Maximum concurrent reconciliations of objects of one namespace: the others are for the other namespaces."""

SYNC_PERIOD = 600.0
"""Seconds between resyncs, which list all resources and reconcile all objects, to correct for missed watch events."""

SETTLE_PERIOD = 0.1
"""Seconds for which the event of a child or a pod waits for others: a cause has several, and needs one reconcile."""

RELIST_PERIOD = 30.0
"""Seconds until a list that failed in a resync is tried again."""

START_GRACE = 5.0
"""Seconds for which a kind waits, at its start, for lists that have failed once. An API server that has
just started rejects requests for a moment. Without the wait, many statuses would report it."""


class Manager:
    """Runs the controllers of all kinds. An empty `namespaces` means all namespaces.

    `watch`: watches the custom resources; None for the client's watch, as for children and pods.
    """

    def __init__(
        self,
        client: ApiClient,
        kinds: Sequence[ReconciledKind],
        namespaces: Sequence[str] = (),
        sync_period: float = SYNC_PERIOD,
        max_retry_delay: float = MAX_DELAY,
        watch: WatchFunc | None = None,
    ) -> None:
        self._client = client
        self._kinds = {(kind.resource.group, kind.resource.kind): kind for kind in kinds}
        self._by_app = {kind.app_name: kind for kind in kinds}
        self._namespaces = tuple(namespaces)
        self._sync_period = sync_period
        self._max_backoff = min(MAX_BACKOFF, max_retry_delay)
        self._retention = Retention(kinds)
        of_pods = [each for kind in kinds for each in kind.pod_references]
        references = References({**{kind.resource: kind.references for kind in kinds}, PODS: of_pods})
        self._store = Store(self._retention, references, lambda keys: self._enqueue(keys))
        # A fair queue with one flow per namespace: many objects in one namespace do not delay the other namespaces.
        limits = Limits(WORKERS_PER_NAMESPACE, Sizes(self._store, kinds).of)
        self._queue: Queue[Key] = Queue("reconcile", lambda key: key.namespace, max_retry_delay, limits)
        optional = {resource for kind in kinds for resource in kind.optional}
        self._reflectors = [
            Reflector(resource, namespace, "", watch=watch, is_known=self._store.is_known)
            if self._kind_of(resource)
            else Reflector(resource, namespace, labels.SELECTOR, optional=resource in optional)
            for resource in self._resources
            for namespace in self._namespaces or (None,)
        ]
        self._knowledge: dict[tuple[Resource, str | None], Knowledge] = {
            each.place: UNLISTED for each in self._reflectors
        }
        self._starting: set[tuple[Resource, str | None]] = set()  # kinds that wait for lists, by watched namespace
        self._reconciler = Reconciler(client, self._store, self._queue, kinds, self._knowledge)

    @property
    def child_resources(self) -> tuple[Resource, ...]:
        """The resources of the children, and pods."""
        return tuple(dict.fromkeys([*(owned for kind in self._kinds.values() for owned in kind.owns), PODS]))

    @property
    def _resources(self) -> tuple[Resource, ...]:
        kinds = (kind.resource for kind in self._kinds.values())
        return tuple(dict.fromkeys([*self.child_resources, *kinds]))

    def _kind_of(self, resource: Resource) -> ReconciledKind | None:
        """The kind of a custom resource; None for a child or a pod."""
        return self._kinds.get((resource.group, resource.kind))

    def objects(self, resource: Resource) -> Iterator[Object]:
        """Every stored object of a resource."""
        return self._store.list_objects(resource)

    def counts(self) -> Iterable[tuple[int, ...]]:
        """The numbers of every object, of which the sums are metrics."""
        return self._reconciler.counts.values()

    def waiting(self) -> Iterable[tuple[Key, int]]:
        """The objects with a change that waits, and the Unix time from which it does."""
        return self._reconciler.waiting.items()

    async def run(self, stop: asyncio.Event) -> None:
        """Reconcile until `stop` is set. Raises the error of a task that failed.

        Each kind starts when its objects and its children have been listed. A failed list is retried, and delays no
        other kind for more than START_GRACE.
        """
        workers = self._reconciler.run(WORKERS)
        discovery = [self._discover()] if any(kind.updates_pods for kind in self._kinds.values()) else []
        async with background(stop, workers, self._resync(), *discovery):
            await run_reflectors(
                self._client,
                self._reflectors,
                self._list_and_enqueue,
                self.handle_event,
                stop,
                max_backoff=self._max_backoff,
            )

    def handle_event(self, resource: Resource, change: Change, obj: Object) -> None:
        """Update the store with one event and enqueue the affected objects."""
        key = key_of(resource, obj)
        if resource == PODS and (pod := pod_of(obj)) is not None and disruption(pod, datetime.now(UTC)) is not None:
            for owner in self._affected(key, obj):
                self._reconciler.observe_pod(owner, pod)
        before = self._store.entry(key)
        if not self._put(key, change, obj) or (change == "updated" and self._keeps_content(key, before)):
            return
        if change == "deleted" and before is not None:
            self._release(key.resource, before)
        if change == "updated" and self._is_echo(key, before, obj):
            return
        self._enqueue(self._affected(key, obj), 0.0 if self._kind_of(resource) else SETTLE_PERIOD)
        if before is not None and before.index_keys != self._store.index_keys(key, obj):
            # The object had another owner or instance label before.
            self._enqueue(self._affected(key, before.object()))

    def _put(self, key: Key, change: Change, obj: Object) -> bool:
        """Update the store. Returns False if the event is no news."""
        if change == "updated":
            return self._store.put_event(key.resource, obj)
        return self._store.remove(key, version_of(obj))

    def _release(self, resource: Resource, before: Entry) -> None:
        """After the deletion of a custom resource, its children are those of others."""
        if (kind := self._kind_of(resource)) is not None:
            self._store.release(self._retention.of_deleted(self._store, kind, before.object()))

    def _keeps_content(self, key: Key, before: Entry | None) -> bool:
        """True if only the status of a PodDisruptionBudget has changed, which no plan reads."""
        if key.resource != POD_DISRUPTION_BUDGETS or before is None or before.from_live_read:
            return False
        return self._has_same_content(key, before)

    def _is_echo(self, key: Key, before: Entry | None, obj: Object) -> bool:
        """Whether the event of a custom resource is only that of the status that is being written."""
        return before is not None and self._reconciler.is_echo(key, obj) and self._has_same_content(key, before)

    def _has_same_content(self, key: Key, before: Entry) -> bool:
        """Whether an object has changed only in its status. Of both versions, what is kept is compared."""
        after = self._store.entry(key)
        return after is not None and _content(before.object()) == _content(after.object())

    def _enqueue(self, keys: Iterable[Key], delay: float = 0.0) -> None:
        for key in keys:
            if not self._starting & {(key.resource, None), (key.resource, key.namespace)}:
                self._queue.add_after(key, delay) if delay else self._queue.add(key)

    def _affected(self, key: Key, obj: Object) -> Iterator[Key]:
        """The object itself if it is a custom resource, otherwise those that its owner reference and labels name."""
        if self._kind_of(key.resource):
            yield key
            return
        controller = controller_of(obj)
        kind = self._kinds.get((_api_group(controller), controller["kind"])) if controller is not None else None
        if kind is not None and controller is not None:
            yield Key(kind.resource, key.namespace, controller["name"])
        own = nested_map(obj, "metadata", "labels")
        kind = self._by_app.get(own.get(labels.NAME, ""))
        if kind is not None and labels.INSTANCE in own:
            yield Key(kind.resource, key.namespace, own[labels.INSTANCE])

    async def _list_and_enqueue(self, reflector: Reflector) -> None:
        """List a resource at the start, or after its resourceVersion has expired. Raises ApiError."""
        kind, was_missing = self._kind_of(reflector.resource), reflector.missing
        if kind is None:
            if not reflector.synced.is_set():
                await self._until_kinds_are_listed(reflector.namespace)
            await self._list(reflector)
        elif not reflector.synced.is_set() or reflector.place in self._starting:
            await self._start(reflector, kind)
        else:
            await self._list(reflector)
        if not (was_missing and reflector.missing):
            self._enqueue_affected(reflector)

    async def _until_kinds_are_listed(self, namespace: str | None) -> None:
        """Wait for the custom resources, on which it depends what is kept of an object, unless they are not served."""
        for reflector in self._reflectors:
            if reflector.namespace == namespace and self._kind_of(reflector.resource):
                await reflector.tried.wait()

    async def _start(self, reflector: Reflector, kind: ReconciledKind) -> None:
        """List a kind, and wait a moment until what its plans need has been listed. Raises ApiError.

        Plans know which lists have failed, and keep what depends on these. The reconciler makes none while the children
        are not listed: they would be created again.
        """
        self._starting.add(reflector.place)
        await self._list(reflector)
        read = [
            other
            for other in self._reflectors
            if other.namespace == reflector.namespace and other.resource in self._read_by(kind)
        ]
        for other in read:
            await other.tried.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(START_GRACE):
                for other in read:
                    await other.synced.wait()
        self._starting.discard(reflector.place)

    def _read_by(self, kind: ReconciledKind) -> set[Resource]:
        """The resources that the plans of a kind read, besides its own."""
        named = (reference.resource for reference in kind.references)
        read = {*kind.owns, *named, *self._store.naming(kind.resource), PODS}
        return read - {kind.resource}

    def _may_fail(self, reflector: Reflector) -> bool:
        """Whether plans can be made without this list."""
        return reflector.optional or self._kind_of(reflector.resource) is not None

    async def _list(self, reflector: Reflector) -> None:
        resource, namespace = reflector.resource, reflector.namespace
        listing = self._store.listing(resource, namespace)
        watched = int(reflector.version or 0)  # bookmarks make it newer than all objects
        try:
            async for page in self._client.list(resource, namespace, reflector.selector):
                version = int(page.version)
                self._check(reflector, older=listing.is_older(version) or version < watched)
                listing.add(page.items, version)
        except ApiError as error:
            if error.code != 404 or await self._is_served(resource):
                reflector.missing = False
                self._learn(reflector, self._knowledge[reflector.place].failed(error.code, error.message))
                raise
            self._set_unserved(reflector)
            if reflector.optional:
                return
            raise
        finally:
            reflector.tried.set()
        reflector.missing = False
        deleted = listing.end()
        reflector.version = str(listing.version)
        if self._kind_of(resource):
            for before in deleted.values():
                self._release(resource, before)
            self._enqueue(deleted)
        if not reflector.synced.is_set():
            log.info("listed %s", reflector)
            reflector.synced.set()
        self._learn(reflector, LISTED)

    def _check(self, reflector: Reflector, *, older: bool) -> None:
        """Raise ApiError if a list may not be used. `older`: it is older than what was known before its request."""
        if not reflector.accepts(older=older):
            raise ApiError(0, "Outdated", "the list is older than what is known; the API server may be outdated")
        if older:
            log.warning("%s: the API server's data was restored from a backup; all of it is read again", reflector)

    async def _is_served(self, resource: Resource) -> bool:
        """Whether the API server may serve a resource: only its discovery can say that it does not."""
        try:
            return await is_served(self._client, resource)
        except ApiError as error:
            log.warning("cannot determine whether %s are served: %s", resource.plural, error)
            return True

    def _set_unserved(self, reflector: Reflector) -> None:
        """The API server does not serve a resource, so it has no objects."""
        if reflector.optional:
            if not reflector.missing:
                log.info("%s: this optional resource is not available", reflector)
            reflector.missing = True
            reflector.version = ""
            self._store.clear(reflector.resource, reflector.namespace)
        if self._may_fail(reflector):
            reflector.synced.set()
        self._learn(reflector, NOT_SERVED)

    def _learn(self, reflector: Reflector, knowledge: Knowledge) -> None:
        """What is known of a resource now. A change enqueues the objects whose plans read it."""
        before = self._knowledge[reflector.place]
        self._knowledge[reflector.place] = knowledge
        if before != knowledge:
            self._enqueue_affected(reflector)

    def _enqueue_affected(self, reflector: Reflector) -> None:
        """Enqueue the objects that the listed resource may affect."""
        for kind in self._kinds.values():
            if reflector.resource in (kind.resource, *self._read_by(kind)):
                keys = self._store.keys(kind.resource)
                self._enqueue(key for key in keys if reflector.namespace in (None, key.namespace))

    async def _discover(self) -> None:
        """Find out what the cluster can do with running pods, now and at each resync, after upgrades of the cluster."""
        while True:
            try:
                resize = await discover_resize(self._client)
            except ApiError as error:
                log.warning("cannot determine whether pods can be resized: %s", explain(error))
                await asyncio.sleep(self._max_backoff)
                continue
            if resize is not self._reconciler.resize:
                self._reconciler.resize = resize
                for kind in self._kinds.values():
                    self._enqueue(self._store.keys(kind.resource) if kind.updates_pods else ())
            await asyncio.sleep(self._sync_period)

    async def _resync(self) -> None:
        while True:
            await asyncio.sleep(self._sync_period * (0.9 + random.random() / 5))  # noqa: S311 - jitter
            synced = [each for each in self._reflectors if each.synced.is_set() and each.place not in self._starting]
            failed = await self._list_each(synced)
            for kind in self._kinds.values():
                self._enqueue(self._store.keys(kind.resource))
            for _ in range(LASTING - 1):  # a failure that lasts is in the status before the next resync
                if failed:
                    await asyncio.sleep(min(RELIST_PERIOD, self._sync_period))
                    failed = await self._list_each(failed)

    async def _list_each(self, reflectors: Iterable[Reflector]) -> list[Reflector]:
        """List some resources; returns those that failed. An error is logged and does not delay the others."""
        failed: list[Reflector] = []
        for reflector in reflectors:
            try:
                await self._list(reflector)
            except ApiError as error:
                log.warning("cannot list %s: %s", reflector, explain(error))
                failed.append(reflector)
        return failed


def _content(obj: Object) -> Object:
    """An object without its status and without what changes with it."""
    meta = {name: value for name, value in obj["metadata"].items() if name not in ("resourceVersion", "managedFields")}
    return {**{name: value for name, value in obj.items() if name != "status"}, "metadata": meta}


def _api_group(owner: OwnerReference) -> str:
    return owner["apiVersion"].partition("/")[0]
