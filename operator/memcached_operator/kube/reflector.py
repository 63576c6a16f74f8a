"""Where events come from: one list and one watch for each resource, kept up for ever.

A watch goes on where the last one ended (bookmarks keep that place young); where the API server no longer knows the
place, everything is read anew. No answer of the API server ends the process or makes it spin.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

from memcached_operator import metrics
from memcached_operator.kube.client import ApiError, Client
from memcached_operator.kube.resource import Object, Resource

log = logging.getLogger(__name__)

Change = Literal["updated", "deleted"]

EventHandler = Callable[[Resource, Change, Object], None]
"""What is told of each event; must return at once and must not raise."""

MIN_PAUSE, MAX_PAUSE = 1.0, 30.0
"""Seconds before a failed list or watch is tried again: doubling from the first to the last."""

MIN_WATCH = 5.0
"""Seconds. A watch that ends sooner than this is followed by a pause, as one that failed."""


@dataclass(eq=False)
class Reflector:
    """One resource, in one namespace or in all, and up to which version it is known ("": not at all).

    `synced` is set by the first list that succeeds.
    """

    resource: Resource
    namespace: str | None
    selector: str
    version: str = ""
    synced: asyncio.Event = field(default_factory=asyncio.Event)

    def __str__(self) -> str:
        return f"{self.resource.plural} of {self.namespace or 'all namespaces'}"


Lister = Callable[[Reflector], Awaitable[None]]
"""Lists a feed, takes note of what there is and of what is gone, and sets its version. Raises ApiError."""


async def watch(
    client: Client,
    reflectors: Iterable[Reflector],
    list_all: Lister,
    on_event: EventHandler,
    stop: asyncio.Event,
    max_pause: float = MAX_PAUSE,
) -> None:
    """Tell `notice` of every event of these feeds until `stop` is set."""
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_follow(client, each, list_all, on_event, max_pause), name=f"watch {each}")
            for each in reflectors
        ]
        await stop.wait()
        for task in tasks:
            task.cancel()


async def _follow(
    client: Client, reflector: Reflector, list_all: Lister, on_event: EventHandler, max_pause: float
) -> None:
    pause = MIN_PAUSE
    while True:
        started = time.monotonic()
        reason, at_least = "closed early", 0.0
        try:
            if not reflector.version:
                await list_all(reflector)
            await _watch(client, reflector, on_event)
        except ApiError as error:
            log.warning("cannot list or watch %s: %s", reflector, explain(error))
            reason, at_least = str(error.code or error.reason), error.retry_after or 0.0
            if error.code == 410:
                # The place is too old. A list also shows what was deleted meanwhile.
                reflector.version = ""
        if time.monotonic() - started >= MIN_WATCH and not at_least:
            pause = MIN_PAUSE
            continue
        metrics.WATCH_RETRIES.labels(reflector.resource.plural, reason).inc()
        await asyncio.sleep(max(pause, at_least) * (0.9 + random.random() / 5))  # noqa: S311 - jitter, not a secret
        pause = min(max_pause, pause * 2)


def explain(error: ApiError) -> str:
    """Why something cannot be listed or watched, with the remedy where there is one."""
    return "it is not served; install the CustomResourceDefinitions" if error.code == 404 else str(error)


async def _watch(client: Client, reflector: Reflector, on_event: EventHandler) -> None:
    async for what, obj in client.watch(reflector.resource, reflector.namespace, reflector.selector, reflector.version):
        if what != "BOOKMARK":
            on_event(reflector.resource, "deleted" if what == "DELETED" else "updated", obj)
        reflector.version = obj["metadata"]["resourceVersion"]
