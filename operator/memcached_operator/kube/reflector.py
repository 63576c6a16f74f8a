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

Notice = Callable[[Resource, Literal["seen", "gone"], Object], None]
"""What is told of each event; must return at once and must not raise."""

FIRST_PAUSE, LAST_PAUSE = 1.0, 30.0
"""Seconds before a failed list or watch is tried again: doubling from the first to the last."""

SHORT = 5.0
"""Seconds. A watch that ends sooner than this is followed by a pause, as one that failed."""


@dataclass(eq=False)
class Feed:
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


Read = Callable[[Feed], Awaitable[None]]
"""Lists a feed, takes note of what there is and of what is gone, and sets its version. Raises ApiError."""


async def watch(
    client: Client,
    feeds: Iterable[Feed],
    read: Read,
    notice: Notice,
    stop: asyncio.Event,
    last_pause: float = LAST_PAUSE,
) -> None:
    """Tell `notice` of every event of these feeds until `stop` is set."""
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_follow(client, feed, read, notice, last_pause), name=f"watch {feed}") for feed in feeds
        ]
        await stop.wait()
        for task in tasks:
            task.cancel()


async def _follow(client: Client, feed: Feed, read: Read, notice: Notice, last_pause: float) -> None:
    pause = FIRST_PAUSE
    while True:
        started = time.monotonic()
        reason, at_least = "closed early", 0.0
        try:
            if not feed.version:
                await read(feed)
            await _watch(client, feed, notice)
        except ApiError as error:
            log.warning("cannot list or watch %s: %s", feed, explain(error))
            reason, at_least = str(error.code or error.reason), error.retry_after or 0.0
            if error.code == 410:
                # The place is too old. A list also shows what was deleted meanwhile.
                feed.version = ""
        if time.monotonic() - started >= SHORT and not at_least:
            pause = FIRST_PAUSE
            continue
        metrics.WATCH_RETRIES.labels(feed.resource.plural, reason).inc()
        await asyncio.sleep(max(pause, at_least) * (0.9 + random.random() / 5))  # noqa: S311 - jitter, not a secret
        pause = min(last_pause, pause * 2)


def explain(error: ApiError) -> str:
    """Why something cannot be listed or watched, with the remedy where there is one."""
    return "it is not served; install the CustomResourceDefinitions" if error.code == 404 else str(error)


async def _watch(client: Client, feed: Feed, notice: Notice) -> None:
    async for what, obj in client.watch(feed.resource, feed.namespace, feed.selector, feed.version):
        if what != "BOOKMARK":
            notice(feed.resource, "gone" if what == "DELETED" else "seen", obj)
        feed.version = obj["metadata"]["resourceVersion"]
