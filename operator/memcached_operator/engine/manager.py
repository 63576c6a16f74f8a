"""Runs the kinds: fills the store, lets events in, keeps the workers going, and reads everything again now and then."""

import asyncio
import logging
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from memcached_operator.engine import labels, source
from memcached_operator.engine.client import ApiError, Client
from memcached_operator.engine.kind import Kind
from memcached_operator.engine.queue import Queue
from memcached_operator.engine.reconciler import Reconciler
from memcached_operator.engine.resource import PODS, Key, Object, Resource, controller_of, key_of, mapping
from memcached_operator.engine.session import Connection
from memcached_operator.engine.store import Store, version_of
from memcached_operator.engine.tasks import background

log = logging.getLogger(__name__)

WORKERS = 16
"""Objects worked on at the same time: enough that the API server, not this process, is what is waited for."""

RELIST_PERIOD = 600.0
"""Seconds between two readings of everything: it finds what watches missed, and looks at healthy objects again."""

FIRST_PAUSE, LAST_PAUSE = 1.0, 30.0
"""Seconds between tries to read everything: doubling from the first to the last."""


class Manager:
    """All kinds of one process. No namespaces means all of them."""

    def __init__(
        self,
        connection: Connection,
        client: Client,
        kinds: Sequence[Kind],
        namespaces: Sequence[str] = (),
        relist_period: float = RELIST_PERIOD,
    ) -> None:
        self._connection = connection
        self._client = client
        self._kinds = {kind.resource.kind: kind for kind in kinds}
        self._by_app = {kind.app_name: kind for kind in kinds}
        self._namespaces = tuple(namespaces)
        self._relist_period = relist_period
        self._store = Store()
        self._queue: Queue[Key] = Queue("reconcile")
        self._reconciler = Reconciler(client, self._store, self._queue, self._kinds)

    @property
    def children(self) -> tuple[Resource, ...]:
        """What is watched beside the kinds themselves, by label."""
        return tuple(dict.fromkeys([*(owned for kind in self._kinds.values() for owned in kind.owns), PODS]))

    @property
    def _resources(self) -> tuple[Resource, ...]:
        # Children first: an object must not be looked at before its children are known.
        return (*self.children, *(kind.resource for kind in self._kinds.values()))

    def objects(self, resource: Resource) -> Iterator[Object]:
        """Every object of a resource, as last seen."""
        return self._store.all(resource)

    async def run(self, stop: asyncio.Event) -> None:
        """Reconcile until `stop` is set or a signal arrives. Raises what made it impossible to go on."""
        await self._served()
        await self._read_everything()
        log.info("all objects are read; watching %s", ", ".join(self._namespaces) or "all namespaces")
        workers = self._reconciler.run(WORKERS)
        kinds = [kind.resource for kind in self._kinds.values()]
        async with background(stop, workers, self._read_again()):
            await source.watch(self._connection, kinds, self.children, self._namespaces, self.notice, stop)

    def notice(self, resource: Resource, what: Literal["seen", "gone"], obj: Object) -> None:
        """Note one event and enqueue the objects it may matter to."""
        key = key_of(resource, obj)
        previous = self._store.get(key)
        news = self._store.put(resource, obj) if what == "seen" else self._store.remove(key, version_of(obj))
        if news:
            for state in (previous, obj):
                self._enqueue(self._concerned(key, state))

    def _enqueue(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self._queue.add(key)

    def _concerned(self, key: Key, obj: Object | None) -> Iterator[Key]:
        """The object itself if it is of a kind of ours, else the ones its owner reference and its labels name."""
        if key.resource.kind in self._kinds:
            yield key
            return
        if obj is None:
            return
        controller = controller_of(obj)
        kind = self._kinds.get(controller["kind"]) if controller is not None else None
        if kind is not None and controller is not None and _group(controller) == kind.resource.group:
            yield Key(kind.resource, key.namespace, controller["name"])
        own = mapping(obj, "metadata", "labels")
        kind = self._by_app.get(own.get(labels.NAME, ""))
        if kind is not None and labels.INSTANCE in own:
            yield Key(kind.resource, key.namespace, own[labels.INSTANCE])

    async def _served(self) -> None:
        """Wait until discovery tells of every kind: kopf reads it once, and would never watch what it misses."""
        pause = FIRST_PAUSE
        for kind in self._kinds.values():
            while not await self._is_served(kind.resource):
                message = "the API server does not serve %s; install the CustomResourceDefinitions; next try in %.0f s"
                log.warning(message, kind.resource.path(), pause)
                await asyncio.sleep(pause)
                pause = min(LAST_PAUSE, pause * 2)

    async def _is_served(self, resource: Resource) -> bool:
        try:
            groups = (await self._client.request("GET", "/apis"))["groups"]
            found = await self._client.request("GET", f"/apis/{resource.api_version}")
        except ApiError as error:
            log.warning("discovery: %s", error)
            return False
        listed = any(group["name"] == resource.group for group in groups)
        return listed and any(entry["name"] == resource.plural for entry in found["resources"])

    async def _read_everything(self) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                for resource in self._resources:
                    for namespace in self._namespaces or (None,):
                        await self._read(resource, namespace)
            except ApiError as error:
                log.warning("cannot read the cluster: %s; trying again in %.0f s", error, pause)
                await asyncio.sleep(max(pause, error.retry_after or 0))
                pause = min(LAST_PAUSE, pause * 2)
            else:
                break
        for kind in self._kinds.values():
            self._enqueue(key_of(kind.resource, obj) for obj in self._store.all(kind.resource))

    async def _read(self, resource: Resource, namespace: str | None) -> None:
        selector = "" if resource.kind in self._kinds else labels.SELECTOR
        items, version = await self._client.list(resource, namespace, selector)
        gone = self._store.replace(resource, namespace, items, int(version))
        if resource.kind in self._kinds:
            self._enqueue(gone)

    async def _read_again(self) -> None:
        while True:
            await asyncio.sleep(self._relist_period * (0.9 + random.random() / 5))  # noqa: S311 - jitter
            await self._read_everything()


def _group(owner: Mapping[str, Any]) -> str:
    return owner["apiVersion"].partition("/")[0]
