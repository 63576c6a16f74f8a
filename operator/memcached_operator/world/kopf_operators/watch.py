"""The watch of a kind: a kopf operator that delivers its events, until anything ends it."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

import kopf

from memcached_operator.kube.client import ApiError, describe, validated
from memcached_operator.kube.config import Config
from memcached_operator.kube.resource import Resource
from memcached_operator.world.kopf_operators import run
from memcached_operator.world.kopf_operators.requests import WatchRequests
from memcached_operator.world.reflector import EventHandler, Reflector, WatchFunc

READ_BUFFER = 2**24
"""Bytes of events that wait for kopf. It takes up to two turns of the event loop per event. The API server closes the
watch of a client that reads too slowly."""

MAX_MESSAGE = 300
"""Maximum characters of the message of an error that ended kopf. It may contain a response of the API server."""


class HandlerContext:
    """The parts that the handlers of one kopf operator use: its session, and the function that receives its events."""

    def __init__(self, config: Config, reflector: Reflector, on_event: EventHandler) -> None:
        self.stop = asyncio.Event()
        """Set when the operator must end."""
        self.requests = WatchRequests(reflector, self.stop.set)
        self._config = config
        self._resource = reflector.resource
        self._on_event = on_event
        self._sessions = AsyncExitStack()

    async def open(self) -> kopf.AiohttpSession:
        """A session with the credentials of the process."""
        session = await self._sessions.enter_async_context(self._config.session([self.requests], READ_BUFFER))
        return kopf.AiohttpSession(server=self._config.server, aiohttp_session=session)

    def deliver(self, event: kopf.RawEvent) -> None:
        """Store the object of an event and enqueue its key. An invalid object ends the operator."""
        try:
            obj = validated(dict(event["object"]))
            self._on_event(self._resource, "deleted" if event["type"] == "DELETED" else "updated", obj)
        except ApiError as error:
            self.requests.fail(error)
        except Exception as error:  # noqa: BLE001 - the edge to kopf, which would drop the event and continue
            message = f"an event is invalid: {describe(error)[:MAX_MESSAGE]}"
            self.requests.fail(ApiError(200, "InvalidResponse", message))

    async def close(self) -> None:
        """Cancel pending requests and close the sessions."""
        await self.requests.close()
        await self._sessions.aclose()


Handlers = Callable[[Resource, HandlerContext], kopf.OperatorRegistry]
"""Registers the handlers of one kind."""


def kopf_watch(handlers: Handlers, config: Config, install_signal_handlers: Callable[[], None]) -> WatchFunc:
    """A watch function for reflectors that runs a kopf operator until it fails. Raises ApiError."""
    run.configure_logging()

    async def watch(reflector: Reflector, on_event: EventHandler) -> None:
        connection = HandlerContext(config, reflector, on_event)
        registry = handlers(reflector.resource, connection)
        # A task of its own, because kopf sets context variables.
        work = run.run(registry, reflector.namespace, connection.stop, install_signal_handlers)
        operator = asyncio.create_task(work, name=f"kopf operator for {reflector}")
        try:
            await asyncio.shield(operator)
        except Exception as error:  # noqa: BLE001 - the edge to kopf: invalid JSON, an ERROR event, any other error
            connection.requests.fail(ApiError(0, "Ended", f"kopf ended: {describe(error)[:MAX_MESSAGE]}"))
        finally:
            connection.stop.set()
            await asyncio.gather(operator, return_exceptions=True)
            await connection.close()
            # A list reveals what was deleted in the meantime.
            reflector.version = ""
        raise connection.requests.error or ApiError(0, "Stopped", "kopf ended")

    return watch
