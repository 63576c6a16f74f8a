"""Wiring of the controller process: probes, lease, certificates, kinds."""

import asyncio
import gc
import logging
import os
import socket
import uuid
from collections.abc import AsyncGenerator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import aiohttp

from memcached_api.images import DEFAULT_AGENT_IMAGE, DEFAULT_IMAGE, Images
from memcached_api.kind import Kind
from memcached_api.registry import KINDS
from memcached_operator import metrics
from memcached_operator.engine.manager import SYNC_PERIOD, Manager
from memcached_operator.engine.runtime.leader_election import LeaderElector
from memcached_operator.engine.runtime.memory import limit_of_container, memory_warning
from memcached_operator.engine.runtime.queue import MAX_DELAY
from memcached_operator.engine.runtime.signals import stop_on_signals
from memcached_operator.engine.runtime.tasks import background
from memcached_operator.engine.runtime.threads import EventLoopThread
from memcached_operator.kinds import kinds, selected
from memcached_operator.kube.client import ApiClient, ApiError, describe
from memcached_operator.kube.config import Config, load_config
from memcached_operator.kube.resource import Key
from memcached_operator.memcachedproxy.controller import MEMCACHEDPROXIES
from memcached_operator.memcachedproxy.gauges import State, states
from memcached_operator.parts.dns import CLUSTER_DOMAIN
from memcached_operator.parts.images import ImageCounts, total
from memcached_operator.world.kopf_operators.handlers import handlers
from memcached_operator.world.kopf_operators.watch import kopf_watch
from memcached_operator.world.reflector import WatchFunc
from memcached_process.addresses import Address
from memcached_process.servers import listen, metrics_handler, probe_handler

if TYPE_CHECKING:
    from memcached_operator.certificates.issuer import Issuer

log = logging.getLogger(__name__)

LEASE_NAME = "memcached-operator"

CERTIFICATE_LIFETIME = timedelta(days=90)
"""Default lifetime of an issued certificate (cert-manager's default). It is renewed after two thirds of that time."""

SETTLE_TIMEOUT = 2.0
"""Seconds to wait for the responses to the last writes."""

RELEASE_TIMEOUT = 2.0
"""Seconds to release the lease: the process exits within 5 seconds even if the API server is unreachable."""


@dataclass(frozen=True)
class ControllerOptions:
    """The command-line options. Periods are in seconds. An empty `watch_namespaces` means all namespaces.

    An address of None disables that server.
    """

    leader_elect: bool = False
    metrics_bind_address: Address | None = None
    health_probe_bind_address: Address | None = None
    watch_namespaces: tuple[str, ...] = ()
    kinds: tuple[Kind[Any], ...] = KINDS
    default_image: str = DEFAULT_IMAGE
    agent_image: str = DEFAULT_AGENT_IMAGE
    cluster_domain: str = CLUSTER_DOMAIN
    manage_certificates: bool = False
    certificate_lifetime: timedelta = CERTIFICATE_LIFETIME
    sync_period: float = SYNC_PERIOD
    max_retry_delay: float = MAX_DELAY


async def run(options: ControllerOptions) -> None:
    """Run until SIGTERM or SIGINT. Raises ConfigError, LeaseLostError, or the error of a task that failed."""
    stop = asyncio.Event()
    stop_on_signals(stop)
    config = load_config()
    if warning := memory_warning(len(options.watch_namespaces), limit_of_container()):
        log.warning("%s", warning)
    namespace = os.environ.get("POD_NAMESPACE") or config.namespace
    async with AsyncExitStack() as stack:
        # The probe server starts before leader election: a standby must become Ready for a rollout to complete.
        await listen(stack, stop, probe_handler(lambda: True), options.health_probe_bind_address)
        await listen(stack, stop, metrics_handler(metrics.REGISTRY), options.metrics_bind_address)
        session = await stack.enter_async_context(config.session())
        client = ApiClient(config, session)
        leader_tasks: list[Coroutine[object, object, None]] = []
        if options.leader_elect:
            # With its own credentials: those that log in again belong to one event loop.
            elector, thread = await stack.enter_async_context(election(load_config(), namespace))
            if not await _run_until(stop, thread.run(elector.acquire())):
                return
            leader_tasks.append(thread.run(elector.renew()))
            client = ApiClient(config, session, elector)
        watch = kopf_watch(handlers, config, lambda: stop_on_signals(stop))
        gc.collect()
        gc.freeze()  # the collector need not visit what exists now
        await lead(options, client, namespace, stop, *leader_tasks, watch=watch)


async def lead(
    options: ControllerOptions,
    client: ApiClient,
    namespace: str,
    stop: asyncio.Event,
    *tasks: Coroutine[object, object, None],
    watch: WatchFunc | None = None,
) -> None:
    """Reconcile until `stop` is set, as the only process that writes. Raises the error of a task that failed.

    `namespace`: of this process. `tasks`: run beside it. `watch`: as in Manager.
    """
    if options.manage_certificates:
        tasks = (*tasks, _issuer(client, namespace, options.certificate_lifetime).run())
    defaults = Images(options.default_image, options.agent_image)
    served = selected(kinds(defaults, options.cluster_domain), options.kinds)
    periods = options.sync_period, options.max_retry_delay
    manager = Manager(client, served, options.watch_namespaces, *periods, watch=watch)
    metrics.IMAGES.count = lambda: image_gauges(total(manager.counts()))
    metrics.PROXIES.read = lambda: map(proxy_gauges, states(manager.objects(MEMCACHEDPROXIES)))
    metrics.CHANGES.read = lambda: map(change_gauges, manager.waiting())
    settled = asyncio.Event()
    async with background(stop, *tasks), background(settled, _settle(client, stop)):
        await manager.run(settled)


async def _settle(client: ApiClient, stop: asyncio.Event) -> None:
    """Wait for the responses to the last writes, so that none of them is executed after one of the next leader."""
    await stop.wait()
    await client.settle(SETTLE_TIMEOUT)


def image_gauges(counts: ImageCounts) -> dict[str, int]:
    """The values of the gauges of images, by their names."""
    return {
        metrics.OUTDATED_IMAGES: counts.outdated,
        metrics.PROBLEM_IMAGES: counts.problems,
        metrics.OUTDATED_AGENTS: counts.outdated_agents,
    }


def proxy_gauges(state: State) -> tuple[tuple[str, str], dict[str, int]]:
    """The labels of the gauges of a MemcachedProxy, and their values by their names."""
    values = {metrics.READY_PROXIES: state.ready, metrics.PROXY_UP_TO_DATE: int(state.up_to_date)}
    return (state.namespace, state.name), values


def change_gauges(change: tuple[Key, int]) -> tuple[tuple[str, str], dict[str, int]]:
    """The labels of the gauge of a change of size, and its value by its name."""
    key, since = change
    return (key.namespace, key.name), {metrics.SCALING_WAITS: since}


@asynccontextmanager
async def election(config: Config, namespace: str) -> AsyncGenerator[tuple[LeaderElector, EventLoopThread]]:
    """An elector, and the thread that runs it: reconciles must not delay a renewal. Releases the lease at the end.

    `is_leader` can be called from any thread. The liveness probe is served by the event loop of the reconciles, so the
    lease of a process that is stuck ends with the process.
    """
    async with EventLoopThread("leader election") as thread:
        session = await thread.run(_open(config))
        elector = LeaderElector(ApiClient(config, session), namespace, LEASE_NAME, identity())
        try:
            yield elector, thread
        finally:
            # Even if the lease was not acquired: SIGTERM may arrive before the response to a successful write.
            await thread.run(release(elector))
            await thread.run(session.close())


async def _open(config: Config) -> aiohttp.ClientSession:
    """A session that belongs to the event loop that runs this."""
    return config.session()


def identity() -> str:
    """A unique name for this process, which includes the name of its pod or host."""
    return f"{os.environ.get('POD_NAME') or socket.gethostname()}_{uuid.uuid4()}"


def _issuer(client: ApiClient, namespace: str, lifetime: timedelta) -> "Issuer":
    """The issuer for the webhook's objects, as config/ deploys them."""
    # Imported on demand: the cryptography package takes 9 MiB, which other certificate sources do not need.
    from memcached_operator.certificates.issuer import Issuer, WebhookNames

    names = WebhookNames(
        namespace=namespace,
        secret="memcached-operator-webhook-cert",  # noqa: S106 - the name of a Secret
        service="memcached-operator-webhook-service",
        mutating="memcached-operator-mutating-webhook-configuration",
        validating="memcached-operator-validating-webhook-configuration",
    )
    return Issuer(client, names, lifetime)


async def _run_until(stop: asyncio.Event, work: Coroutine[object, object, None]) -> bool:
    """Run a coroutine and cancel it when `stop` is set. Returns True if the coroutine completed."""
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


async def release(elector: LeaderElector) -> None:
    """Release the lease, unless that takes longer than RELEASE_TIMEOUT."""
    try:
        async with asyncio.timeout(RELEASE_TIMEOUT):
            await elector.release()
    except (ApiError, TimeoutError) as error:
        log.warning("cannot release the lease; a standby waits until it expires: %s", describe(error))
