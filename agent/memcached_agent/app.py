"""Creates and connects the parts of the agent, and runs them until a signal."""

import asyncio
import gc
import logging
import signal
from collections.abc import Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

from memcached_agent.metrics.exporter import Exporter
from memcached_agent.options import Options
from memcached_agent.reload.wiring import Reloads
from memcached_agent.shared import Shared
from memcached_agent.web.health import healthz, serving
from memcached_agent.web.server import Protocols, Server, listen

log = logging.getLogger(__name__)


async def run(options: Options) -> None:
    """Run until SIGTERM or SIGINT. Raises OSError if the address of the metrics cannot be used."""
    stop = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)
    reloads = Reloads(options)
    client = reloads.client
    checks = {"memcached": Shared(client.problem), **{each.name: each.problem for each in reloads.watchers}}
    scrape = Exporter(client, reloads.metrics if reloads.watchers else tuple).metrics
    routes = {"/metrics": Shared(scrape), "/healthz": lambda: healthz(checks)}
    server = Server({**routes, "/livez": serving, "/readyz": serving}, ("/livez", "/readyz"))
    async with listen(server, options.metrics, _protocols(server, options, reloads)):
        log.info("serving the metrics of memcached at %s on %s", options.memcached, options.metrics)
        gc.freeze()  # the collector need not visit what exists now
        await _until(stop, reloads.run())


def _protocols(server: Server, options: Options, reloads: Reloads) -> Protocols | None:
    """What handles a new connection to the port of the metrics. None: HTTP without TLS."""
    if not options.tls or not options.tls.metrics or not reloads.certificates:
        return None
    from memcached_agent.web.tls import Layer  # imports ssl

    return partial(Layer, server, reloads.certificates.context)


async def _until(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Run `work` until `stop` is set. Raises the error of `work`, which does not end without one."""
    tasks = [asyncio.create_task(work), asyncio.create_task(stop.wait())]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for each in pending:
        each.cancel()
        with suppress(asyncio.CancelledError):
            await each
    for each in done:
        each.result()
