"""Creates and connects the parts of the agent, and runs them until a signal."""

import asyncio
import gc
import logging
import signal
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from memcached_agent.memcached.client import Client
from memcached_agent.metrics.exporter import Exporter
from memcached_agent.options import Options
from memcached_agent.shared import Shared
from memcached_agent.web.health import healthz, serving
from memcached_agent.web.server import Server, listen

log = logging.getLogger(__name__)


async def run(options: Options) -> None:
    """Run until SIGTERM or SIGINT. Raises OSError if the address of the metrics cannot be used."""
    stop = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)
    client = Client(options.memcached)
    checks = {"memcached": Shared(client.problem)}
    routes = {"/metrics": Shared(Exporter(client).metrics), "/healthz": lambda: healthz(checks)}
    server = Server({**routes, "/livez": serving, "/readyz": serving})
    async with listen(server, options.metrics):
        log.info("serving the metrics of memcached at %s on %s", options.memcached, options.metrics)
        gc.freeze()  # the collector need not visit what exists now
        await _until(stop, client.run())


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
