"""The kopf handlers. kopf watches the custom resources and calls these functions.

Each kind has its own kopf operator, in each watched namespace: an error of one does not affect the others. All of them
run in the event loop of the process, next to the workers that reconcile the objects.
"""

import asyncio
import random
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import kopf

from memcached_operator.kube.client import WATCH_IDLE_TIMEOUT, WATCH_TIMEOUT_RANGE, ApiError, describe, validated
from memcached_operator.kube.config import Config
from memcached_operator.kube.reflector import EventHandler, Reflector, WatchFunc
from memcached_operator.kube.resource import Resource
from memcached_operator.runtime import kopf_operator
from memcached_operator.runtime.kopf_requests import WatchRequests

READ_BUFFER = 2**24
"""Bytes of events that wait for kopf. It takes up to two turns of the event loop per event. The API server closes the
watch of a client that reads too slowly."""


class NoDiffs(kopf.DiffBaseStorage):
    """Stores no last-handled state: only handlers of changes need it. Saves 40 % of the CPU time of an event."""

    def build(self, **_: Any) -> Any:
        """An empty state."""
        return {}

    def fetch(self, **_: Any) -> None:
        """No state."""

    def store(self, **_: Any) -> None:
        """Write nothing to the object."""


class NoProgress(kopf.ProgressStorage):
    """Stores no progress of handlers: event handlers have none."""

    def fetch(self, **_: Any) -> None:
        """No progress."""

    def store(self, **_: Any) -> None:
        """Write nothing to the object."""

    def purge(self, **_: Any) -> None:
        """Remove nothing from the object."""

    def touch(self, **_: Any) -> None:
        """Write nothing to the object."""

    def clear(self, *, essence: Any) -> Any:
        """The state without progress: unchanged."""
        return essence


def handlers(
    resource: Resource, on_event: EventHandler, config: Config, requests: WatchRequests, stack: AsyncExitStack
) -> kopf.OperatorRegistry:
    """The handlers of one kind. `on_event` is called for each event; sessions are closed with `stack`."""
    registry = kopf.OperatorRegistry()

    @kopf.on.startup(registry=registry)
    async def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
        settings.posting.enabled = False
        settings.scanning.disabled = True
        settings.persistence.diffbase_storage = NoDiffs()
        settings.persistence.progress_storage = NoProgress()
        # A task per object exists for this time after an event of the object.
        settings.queueing.idle_timeout = 0.05
        # The reflector has listed the objects (see WatchRequests).
        settings.watching.initial_streaming = True
        settings.watching.inactivity_timeout = WATCH_IDLE_TIMEOUT
        settings.watching.server_timeout = random.randint(*WATCH_TIMEOUT_RANGE)  # noqa: S311 - jitter, not a secret
        settings.networking.connect_timeout = 10
        settings.networking.request_timeout = 30
        # The reflector retries, with its own backoff.
        settings.networking.error_backoffs = ()
        # By default, kopf kills the process 10 minutes after a failed operator.
        settings.process.ultimate_exiting_timeout = None

    @kopf.on.login(registry=registry)
    async def login(**_: Any) -> kopf.AiohttpSession:
        session = await stack.enter_async_context(config.session([requests], READ_BUFFER))
        return kopf.AiohttpSession(server=config.server, aiohttp_session=session)

    @kopf.on.event(resource.group, resource.version, resource.plural, registry=registry)
    async def changed(event: kopf.RawEvent, **_: Any) -> None:
        try:
            obj = validated(dict(event["object"]))
            on_event(resource, "deleted" if event["type"] == "DELETED" else "updated", obj)
        except ApiError as error:
            requests.fail(error)

    @kopf.on.cleanup(registry=registry)
    async def close(**_: Any) -> None:
        await requests.close()

    return registry


def kopf_watch(config: Config, install_signal_handlers: Callable[[], None]) -> WatchFunc:
    """A watch function for reflectors that runs a kopf operator until it fails. Raises ApiError."""
    kopf_operator.configure_logging()

    async def watch(reflector: Reflector, on_event: EventHandler) -> None:
        stop = asyncio.Event()
        requests = WatchRequests(reflector.version, stop.set)
        async with AsyncExitStack() as stack:
            registry = handlers(reflector.resource, on_event, config, requests, stack)
            # A task of its own, because kopf sets context variables.
            run = kopf_operator.run(registry, reflector.namespace, stop, install_signal_handlers)
            operator = asyncio.create_task(run, name=f"kopf operator for {reflector}")
            try:
                await asyncio.shield(operator)
            except Exception as error:  # noqa: BLE001 - the edge to kopf: invalid JSON, an ERROR event, any other error
                requests.fail(ApiError(200, "InvalidResponse", f"kopf ended: {describe(error)}"))
            finally:
                stop.set()
                await asyncio.gather(operator, return_exceptions=True)
                await requests.close()
                # A list reveals what was deleted in the meantime.
                reflector.version = ""
        raise requests.error or ApiError(0, "Stopped", "kopf ended")

    return watch
