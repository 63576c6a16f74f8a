"""Reflectors: one list and one watch per resource, restarted until stopped.

A watch resumes at the last known resourceVersion, which bookmarks keep recent. If the API server has expired that
version, the resource is listed again. An error response never ends the process and never causes a busy loop.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from memcached_operator import metrics
from memcached_operator.kube.client import ApiClient, ApiError
from memcached_operator.kube.resource import Key, Object, Resource
from memcached_operator.world.knowledge import LASTING

log = logging.getLogger(__name__)

Change = Literal["updated", "deleted"]

EventHandler = Callable[[Resource, Change, Object], None]
"""Called for each event; must not block and must not raise."""

IsKnown = Callable[[Key, str], bool]
"""Whether an event of this resourceVersion of an object has no effect. False is always correct."""

MIN_BACKOFF, MAX_BACKOFF = 1.0, 30.0
"""Bounds of the exponential backoff, in seconds, before a failed list or watch is retried."""

MISSING_PERIOD = 30.0
"""Seconds until a missing optional resource is listed again: its CRD is noticed within a minute."""

OUTDATED_PERIOD = 30.0
"""Seconds for which lists must be older than what is known until they are right: an API server may be outdated for a
moment, but not for so long. Then its data was restored from a backup."""

MIN_WATCH_DURATION = 5.0
"""Seconds. A watch that ends earlier counts as failed and is followed by a backoff."""


@dataclass(eq=False)
class Reflector:
    """One resource, in one namespace or in all. `version`: the resourceVersion to resume at; empty before a list.

    `missing`: the API server does not serve this `optional` resource. `tried` is set by the first list, also if it
    failed; `synced` by the first successful one, or when the API server does not serve the resource. `watch`: None for
    the client's watch. `is_known`: for a `watch` that can leave out events.
    """

    resource: Resource
    namespace: str | None
    selector: str
    version: str = ""
    optional: bool = False
    missing: bool = False
    watch: "WatchFunc | None" = None
    is_known: IsKnown = lambda _key, _version: False
    tried: asyncio.Event = field(default_factory=asyncio.Event)
    synced: asyncio.Event = field(default_factory=asyncio.Event)
    _outdated_since: float | None = None
    _watching: asyncio.Timeout | None = None

    def __str__(self) -> str:
        return f"{self.resource.plural} of {self.namespace or 'all namespaces'}"

    @property
    def place(self) -> tuple[Resource, str | None]:
        """The resource, and the namespace or None."""
        return self.resource, self.namespace

    def is_missing(self, error: ApiError) -> bool:
        """True if an error can mean that the API server does not serve this optional resource."""
        return self.optional and error.code == 404

    async def watch_events(self, client: ApiClient, on_event: EventHandler) -> None:
        """Watch until the watch ends. Raises ApiError."""
        try:
            async with asyncio.timeout(None) as self._watching:
                await (self.watch or partial(_watch, client))(self, on_event)
        except TimeoutError:
            self.version = ""
        finally:
            self._watching = None

    def accepts(self, *, older: bool) -> bool:
        """Whether a list may be used. `older`: it has a lower version than was known before.

        Ends the current watch of such a list, so that the next list follows soon. If the data was restored, the watch
        would report nothing until the resourceVersion is as high again as at its start.
        """
        if not older:
            self._outdated_since = None
            return True
        now = time.monotonic()
        self._outdated_since = self._outdated_since or now
        if self._watching is not None:
            self._watching.reschedule(0)
        return now - self._outdated_since >= OUTDATED_PERIOD


ListFunc = Callable[[Reflector], Awaitable[None]]
"""Lists a reflector's resource, updates the store and sets the reflector's version or `missing`. Raises ApiError."""

WatchFunc = Callable[[Reflector, EventHandler], Awaitable[None]]
"""Watches a reflector's resource from its version until the watch ends. Sets the version to resume at, or to an empty
string if the resource must be listed again. Raises ApiError."""


async def run_reflectors(
    client: ApiClient,
    reflectors: Iterable[Reflector],
    list_func: ListFunc,
    on_event: EventHandler,
    stop: asyncio.Event,
    max_backoff: float = MAX_BACKOFF,
) -> None:
    """Call `on_event` for every event of these reflectors until `stop` is set."""
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(
                _list_and_watch(client, reflector, list_func, on_event, max_backoff), name=f"watch {reflector}"
            )
            for reflector in reflectors
        ]
        await stop.wait()
        for task in tasks:
            task.cancel()


async def _list_and_watch(
    client: ApiClient, reflector: Reflector, list_func: ListFunc, on_event: EventHandler, max_backoff: float
) -> None:
    backoff, forbidden = MIN_BACKOFF, 0
    while True:
        started = time.monotonic()
        reason, min_delay, failed = "closed early", 0.0, False
        try:
            # An event that comes after a list which found no such resource has set the version again.
            if reflector.missing or not reflector.version:
                await list_func(reflector)
                started = time.monotonic()
            if reflector.missing:
                await _pause(MISSING_PERIOD)
                continue
            await reflector.watch_events(client, on_event)
        except ApiError as error:
            failed = True
            if not reflector.is_missing(error):
                log.warning("cannot list or watch %s: %s", reflector, explain(error))
            reason, min_delay = str(error.code or error.reason), error.retry_after or 0.0
            forbidden = forbidden + 1 if error.code == 403 else 0
            if error.code == 410 or forbidden >= LASTING or reflector.is_missing(error):
                # The resourceVersion has expired, or a right is missing. A list reveals objects deleted in the
                # meantime, and says what is not known any more.
                forbidden = 0
                reflector.version = ""
        if time.monotonic() - started >= MIN_WATCH_DURATION:
            backoff = MIN_BACKOFF
            if not failed:
                continue
        metrics.WATCH_RETRIES.labels(reflector.resource.plural, reason).inc()
        await _pause(max(backoff, min_delay))
        backoff = min(max_backoff, backoff * 2)


async def _pause(seconds: float) -> None:
    await asyncio.sleep(seconds * (0.9 + random.random() / 5))  # noqa: S311 - jitter, not a secret


def explain(error: ApiError) -> str:
    """The cause of a failed list or watch, with the remedy if there is one."""
    return "the resource is not served; install the CRDs" if error.code == 404 else str(error)


async def _watch(client: ApiClient, reflector: Reflector, on_event: EventHandler) -> None:
    events = client.watch(reflector.resource, reflector.namespace, reflector.selector, reflector.version)
    async for event_type, obj in events:
        if event_type != "BOOKMARK":
            on_event(reflector.resource, "deleted" if event_type == "DELETED" else "updated", obj)
        reflector.version = max(reflector.version, obj["metadata"]["resourceVersion"], key=lambda text: int(text or 0))
        del obj  # else it would stay in memory until the next event
