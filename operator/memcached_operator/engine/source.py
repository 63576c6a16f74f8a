"""Where events come from: kopf's watches. Everything of kopf that the engine uses is in this file.

Only `on.event` is used, with nothing behind it but a note of the object: kopf's other handlers write finalizers and
annotations (docs/decisions/kopf.md).
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import Any, Literal, cast

import kopf

from memcached_operator.engine import labels
from memcached_operator.engine.resource import Object, Resource
from memcached_operator.engine.session import Connection
from memcached_operator.engine.watchguard import WatchGuard

Notice = Callable[[Resource, Literal["seen", "gone"], Object], None]
"""What is told of each event; must return at once and must not raise."""

IDLE_TIMEOUT = 0.05
"""Seconds that kopf keeps a task per object after an event: its default of 5 costs 50 MB at 1,000 objects."""


class _NoDiffBase(kopf.DiffBaseStorage):
    """Nothing is stored on objects, and nothing compared: there are no changing handlers."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        return kopf.BodyEssence({})

    def fetch(self, **_: Any) -> kopf.BodyEssence | None:
        return None

    def store(self, **_: Any) -> None:
        return None


class _NoProgress(kopf.ProgressStorage):
    """Nothing is stored on objects: handlers have no progress."""

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        return None

    def purge(self, **_: Any) -> None:
        return None

    def touch(self, **_: Any) -> None:
        return None

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        return essence


class _Every(frozenset["asyncio.Task[Any]"]):
    """All tasks there are or will be.

    At its end kopf waits 5 s for every task it is not told to ignore, and cancels it; the operator's own (workers, the
    lease, connections of the probe server) are none of its business.
    """

    def __contains__(self, _: object) -> bool:
        return True


async def watch(
    connection: Connection,
    kinds: Collection[Resource],
    children: Collection[Resource],
    namespaces: Collection[str],
    notice: Notice,
    stop: asyncio.Event,
) -> None:
    """Tell `notice` of every event of these resources until `stop` is set, or SIGTERM or SIGINT arrives.

    Children are filtered by label at the server. No namespaces means all of them.
    """
    logging.getLogger("kopf").setLevel(logging.WARNING)
    registry = kopf.OperatorRegistry()
    for resource in (*kinds, *children):
        _subscribe(registry, resource, notice)

    @kopf.on.login(registry=registry)
    async def login(**_: Any) -> kopf.AiohttpSession:
        session = connection.session([WatchGuard()])
        return kopf.AiohttpSession(
            server=connection.server, aiohttp_session=session, default_namespace=connection.namespace
        )

    tasks = await kopf.spawn_tasks(
        registry=registry,
        settings=_settings(children),
        clusterwide=not namespaces,
        namespaces=namespaces,
        standalone=True,
        # Told, because kopf would ask the system for a user's name, and a container's user may have none.
        identity=cast("Any", "memcached-operator"),
        stop_flag=stop,
    )
    await kopf.run_tasks(tasks, ignored=_Every())


def _subscribe(registry: kopf.OperatorRegistry, resource: Resource, notice: Notice) -> None:
    # async, because kopf runs plain functions in threads.
    @kopf.on.event(group=resource.group, version=resource.version, plural=resource.plural, registry=registry)
    async def on_event(event: kopf.RawEvent, **_: Any) -> None:
        notice(resource, "gone" if event["type"] == "DELETED" else "seen", dict(event["object"]))


def _settings(children: Collection[Resource]) -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.persistence.diffbase_storage = _NoDiffBase()
    settings.persistence.progress_storage = _NoProgress()
    settings.queueing.idle_timeout = IDLE_TIMEOUT
    settings.scanning.disabled = True
    settings.posting.enabled = False
    for resource in children:
        settings.watching.label_selectors[resource.group, resource.version, resource.plural] = labels.SELECTOR
    return settings
