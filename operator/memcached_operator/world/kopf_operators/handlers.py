"""The kopf handlers of a kind.

Each kind has its own kopf operator, in each watched namespace: an error of one does not affect the others. All of them
run in the event loop of the process, next to the workers that reconcile the objects (docs/architecture.md).
"""

import random

import kopf

from memcached_operator.kube.client import WATCH_IDLE_TIMEOUT, WATCH_TIMEOUT_RANGE
from memcached_operator.kube.resource import Resource
from memcached_operator.world.kopf_operators.storage import NoDiffs, NoProgress
from memcached_operator.world.kopf_operators.watch import HandlerContext


def handlers(resource: Resource, connection: HandlerContext) -> kopf.OperatorRegistry:
    """Register the handlers of one kind."""
    registry = kopf.OperatorRegistry()

    @kopf.on.startup(registry=registry)
    async def configure(settings: kopf.OperatorSettings, **_: object) -> None:
        settings.posting.enabled = False
        settings.scanning.disabled = True
        settings.persistence.diffbase_storage = NoDiffs()
        settings.persistence.progress_storage = NoProgress()
        # No object has this finalizer. kopf removes its own one from objects whose handlers do not need it.
        settings.persistence.finalizer = ""
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
    async def login(**_: object) -> kopf.AiohttpSession:
        return await connection.open()

    @kopf.on.event(resource.group, resource.version, resource.plural, registry=registry)
    async def changed(event: kopf.RawEvent, **_: object) -> None:
        connection.deliver(event)

    @kopf.on.cleanup(registry=registry)
    async def close(**_: object) -> None:
        await connection.close()

    return registry
