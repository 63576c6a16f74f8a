"""Creates and connects the parts of the agent, and runs them until a signal."""

import asyncio
import gc
import logging
import signal
from collections.abc import Coroutine
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from memcached_agent.memcached.client import MemcachedClient
from memcached_agent.metrics.exporter import Exporter
from memcached_agent.metrics.latency import Latency
from memcached_agent.options import AgentOptions
from memcached_agent.reload.wiring import Reloads
from memcached_agent.shared import SingleFlight
from memcached_agent.web.exhaustion import Exhaustion
from memcached_agent.web.health import Check, healthz, readyz, serving
from memcached_agent.web.server import Protocols, Server, listen

if TYPE_CHECKING:
    from memcached_agent.extstore.guard import Guard
    from memcached_agent.insight.insight import Insight
    from memcached_agent.pod_watcher import PodWatcher

log = logging.getLogger(__name__)


async def run(options: AgentOptions) -> None:
    """Run until SIGTERM or SIGINT. Raises ListenError if an address cannot be used."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.set_exception_handler(Exhaustion(loop.time).handle)
    reloads = Reloads(options)
    client = reloads.client
    pod, guard, latency = _pod(options, client), _guard(options), Latency(client)
    checks: dict[str, Check] = {"memcached": SingleFlight(client.problem)}
    checks |= {watcher.name: watcher.problem for watcher in reloads.watchers}
    for watched in (pod, guard):
        checks |= watched.checks if watched else {}
    parts = tuple(part for part in (reloads, latency, pod, guard, _insight(options, reloads)) if part)
    scrape = Exporter(client, *(part.metrics for part in parts)).metrics
    routes = {"/metrics": SingleFlight(scrape), "/healthz": lambda: healthz(checks)}
    server = Server(routes)
    ready = partial(readyz, SingleFlight(pod.obstacle)) if pod else serving
    probes = Server({"/livez": serving, "/readyz": ready})
    async with listen(probes, options.probes), listen(server, options.metrics, _protocols(server, options, reloads)):
        words = "serving the metrics of memcached at %s on %s, and probes on %s"
        log.info(words, options.memcached, options.metrics, options.probes)
        gc.freeze()  # the collector need not visit what exists now
        await _until(stop, _all(*(part.run() for part in parts)))


def _protocols(server: Server, options: AgentOptions, reloads: Reloads) -> Protocols | None:
    """The factory of the connections to the port of the metrics. None: HTTP without TLS."""
    if not options.tls or not options.tls.metrics or not reloads.certificates:
        return None
    from memcached_agent.web.tls import protocols  # imports ssl

    return protocols(server, reloads.certificates.context)


def _pod(options: AgentOptions, client: MemcachedClient) -> "PodWatcher | None":
    """The watcher of the pod. None without its annotations."""
    if options.pod is None:
        return None
    from memcached_agent.pod_watcher import PodWatcher  # which others need not load

    return PodWatcher(client, options.pod)


def _guard(options: AgentOptions) -> "Guard | None":
    """The guard of the volume of extstore. None without one."""
    if options.extstore is None:
        return None
    from memcached_agent.extstore.guard import Guard  # which others need not load

    return Guard(options.extstore)


def _insight(options: AgentOptions, reloads: Reloads) -> "Insight | None":
    """The predictions of hit ratios. None unless they are enabled."""
    if not options.insight:
        return None
    from memcached_agent.insight.insight import Insight  # which others need not load

    return Insight(reloads.client, options.memcached, reloads.users)


async def _all(*works: Coroutine[Any, Any, None]) -> None:
    await asyncio.gather(*works)


async def _until(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Run `work` until `stop` is set. Raises the error of `work`, which does not end without one."""
    tasks = [asyncio.create_task(work), asyncio.create_task(stop.wait())]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    for task in done:
        task.result()
