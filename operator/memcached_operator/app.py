"""Wiring of the controller process: probes, lease, certificates, kinds."""

import asyncio
import logging
import os
import signal
import socket
import uuid
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from memcached_api.memcached import DEFAULT_IMAGE
from memcached_operator import metrics
from memcached_operator.appservice.controller import appservice
from memcached_operator.kind import Kind
from memcached_operator.kube.client import ApiError, Client, describe
from memcached_operator.kube.connection import connect
from memcached_operator.memcached.controller import MEMCACHEDS, memcached, outdated
from memcached_operator.reconcile.manager import SYNC_PERIOD, Manager
from memcached_operator.runtime import lifecycle
from memcached_operator.runtime.lease import Lease
from memcached_operator.runtime.queue import MAX_DELAY
from memcached_operator.runtime.tasks import background
from memcached_process.addresses import Address
from memcached_process.servers import exposition, listen, probes

if TYPE_CHECKING:
    from memcached_operator.certificates.issuer import Issuer

log = logging.getLogger(__name__)

LEASE = "memcached-operator"

CERTIFICATE_LIFETIME = timedelta(days=90)
"""That of Let's Encrypt; a certificate is renewed after two thirds of it."""

RELEASE_TIMEOUT = 2.0
"""Seconds: with the API server away, the process still ends within 5."""


@dataclass(frozen=True)
class Options:
    """What the command line says. Periods are in seconds; no namespaces mean all, no address means not to listen."""

    leader_elect: bool = False
    metrics_bind_address: Address | None = None
    health_probe_bind_address: Address | None = None
    watch_namespaces: tuple[str, ...] = ()
    default_image: str = DEFAULT_IMAGE
    manage_certificates: bool = False
    certificate_lifetime: timedelta = CERTIFICATE_LIFETIME
    sync_period: float = SYNC_PERIOD
    max_retry_delay: float = MAX_DELAY


def kinds(options: Options) -> list[Kind]:
    """Every kind this operator runs."""
    return [memcached(options.default_image), appservice()]


async def run(options: Options) -> None:
    """Run until SIGTERM or SIGINT. Raises ConnectError, LeaseLostError, or what made it impossible to go on."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    connection = connect()
    namespace = os.environ.get("POD_NAMESPACE") or connection.namespace
    async with AsyncExitStack() as stack:
        # The probe server starts first, and a standby is ready too: else a roll-out would wait for ever.
        await listen(stack, stop, probes(lambda: True), options.health_probe_bind_address)
        await listen(stack, stop, exposition(metrics.REGISTRY), options.metrics_bind_address)
        session = await stack.enter_async_context(connection.session())
        client = Client(connection, session)
        beside: list[Coroutine[Any, Any, None]] = []
        if options.leader_elect:
            lease = Lease(client, namespace, LEASE, identity())
            # Before it is acquired: SIGTERM may come between the API server's taking it down and its answer.
            stack.push_async_callback(_release, lease)
            if not await _unless(stop, lease.acquire()):
                return
            beside.append(lease.hold())
            client = Client(connection, session, lease.is_held)
        if options.manage_certificates:
            beside.append(_issuer(client, namespace, options.certificate_lifetime).run())
        periods = options.sync_period, options.max_retry_delay
        manager = Manager(client, kinds(options), options.watch_namespaces, *periods)
        metrics.OUTDATED_IMAGES.set_function(lambda: outdated(manager.objects(MEMCACHEDS), options.default_image))
        async with background(stop, *beside):
            await lifecycle.run(manager.run, stop)


def identity() -> str:
    """A name for this process that no other process has, and that says where it runs."""
    return f"{os.environ.get('POD_NAME') or socket.gethostname()}_{uuid.uuid4()}"


def _issuer(client: Client, namespace: str, lifetime: timedelta) -> "Issuer":
    """The issuer for the webhook's objects, as config/ deploys them."""
    # Here, because it brings 9 MiB of cryptography along, which nobody needs with certificates of somebody else's.
    from memcached_operator.certificates.issuer import Issuer, Names

    names = Names(
        namespace=namespace,
        secret="memcached-operator-webhook-cert",  # noqa: S106 - the name of a Secret
        service="memcached-operator-webhook-service",
        mutating="memcached-operator-mutating-webhook-configuration",
        validating="memcached-operator-validating-webhook-configuration",
    )
    return Issuer(client, names, lifetime)


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Do some work, but no longer than until `stop` is set; True where it came to its end."""
    task, stopped = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((task, stopped), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopped.cancel()
    if not task.done():
        task.cancel()
    await asyncio.wait((task,))
    if task.cancelled():
        return False
    task.result()
    return True


async def _release(lease: Lease) -> None:
    try:
        async with asyncio.timeout(RELEASE_TIMEOUT):
            await lease.release()
    except (ApiError, TimeoutError) as error:
        log.warning("the lease could not be released, a standby will wait for it to run out: %s", describe(error))
