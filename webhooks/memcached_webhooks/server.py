"""HTTP around the pure part: fixed paths, bounded bodies, metrics; TLS, probes and an orderly end."""

import asyncio
import contextlib
import gc
import logging
import signal
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from aiohttp import web
from prometheus_client import Gauge, Histogram

from memcached_process.addresses import Address
from memcached_process.servers import exposition, listen, probes
from memcached_webhooks import appservice, connections, memcached
from memcached_webhooks.certificates import Certificates
from memcached_webhooks.metrics import Metrics
from memcached_webhooks.review import BadReview, Judge, Verdict, answer

log = logging.getLogger(__name__)

LARGEST_BODY: Final = 4 * 2**20  # bytes; an object is at most 1.5 MiB in etcd, and a review holds two of them
SMALL_BODY: Final = 2**16  # bytes; most reviews have less than a tenth
LARGE_BODIES: Final = 4  # read at the same time; more wait for their turn, small ones do not
READ_SECONDS: Final = 10.0  # for a whole body, waiting included; the API server gives up after 5

Handler = Callable[[web.Request], Awaitable[web.Response]]


@dataclass(frozen=True)
class Options:
    """What the command line decides. Times in seconds."""

    default_image: str
    certificate: Path
    key: Path
    webhook: Address
    probes: Address | None
    metrics: Address | None
    shutdown_delay: float


@dataclass
class State:
    """What requests and probes ask about."""

    metrics: Metrics = field(default_factory=Metrics)
    large: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(LARGE_BODIES))
    busy: set[object] = field(default_factory=set[object])
    serving: bool = False
    draining: bool = False

    @property
    def ready(self) -> bool:
        return self.serving and not self.draining


def application(judges: Mapping[str, Judge], state: State) -> web.Application:
    """POST on each judge's path; anything else is 404 or 405, and nothing is ever allowed by default."""
    app = web.Application(client_max_size=LARGEST_BODY)
    app.add_routes([web.post(path, _handler(path, judge, state)) for path, judge in judges.items()])
    return app


def _handler(path: str, judge: Judge, state: State) -> Handler:
    # Looked up once: labels cost as much as a rule.
    in_flight, latency = state.metrics.in_flight.labels(path), state.metrics.latency.labels(path)

    async def handle(request: web.Request) -> web.Response:
        state.busy.add(request.protocol)
        try:
            with _measured(in_flight, latency):
                response = await _respond(request, path, judge, state)
        finally:
            state.busy.discard(request.protocol)
        state.metrics.requests.labels(path, str(response.status)).inc()
        if state.draining:
            response.force_close()  # the API server then opens its next connection to another pod
        return response

    return handle


@contextmanager
def _measured(in_flight: Gauge, latency: Histogram) -> Generator[None]:
    start = time.perf_counter()
    with in_flight.track_inprogress():
        yield
    latency.observe(time.perf_counter() - start)


async def _respond(request: web.Request, path: str, judge: Judge, state: State) -> web.Response:
    if request.content_type != "application/json":
        return web.Response(status=415, text=f"want application/json, got {request.content_type}")
    try:
        body, verdict = answer(await _body(request, state), judge)
    except BadReview as error:
        return web.Response(status=400, text=str(error))
    except (ConnectionError, web.RequestPayloadError):
        return web.Response(status=400, text="the body ended too early")
    except TimeoutError:
        return web.Response(status=408, text=f"want the whole body within {READ_SECONDS:g} s")
    except web.HTTPRequestEntityTooLarge:
        return web.Response(status=413, text=f"want a body of at most {LARGEST_BODY} bytes")
    except Exception:
        state.metrics.panics.inc()
        log.exception("a review on %s met an error of ours", path)
        return web.Response(status=500, text="the webhook met an error of its own; its log has the details")
    _note(path, verdict, state.metrics)
    return web.Response(body=body, content_type="application/json")


async def _body(request: web.Request, state: State) -> bytes:
    """The body, within a time; of large ones a few at once, so that memory is bounded."""
    small = request.content_length is not None and request.content_length <= SMALL_BODY
    async with asyncio.timeout(READ_SECONDS), contextlib.nullcontext() if small else state.large:
        return await request.read()


def _note(path: str, verdict: Verdict, metrics: Metrics) -> None:
    if verdict.refusal is not None:
        metrics.denials.labels(path, verdict.refusal.reason).inc()
        log.info("%s refused %s", path, verdict.refusal.details.get("name") or "an object of another kind")


async def run(options: Options) -> None:
    """Serve until SIGTERM or SIGINT, then for `shutdown_delay` more, while endpoints forget us; then stop."""
    stop = _stop_signal()
    state = State()
    certificates = Certificates(options.certificate, options.key, state.metrics)
    async with AsyncExitStack() as stack:
        await listen(stack, probes(lambda: state.ready), options.probes)
        await listen(stack, exposition(state.metrics.registry), options.metrics)
        serving = asyncio.create_task(_serve(stack, options, state, certificates))
        stack.push_async_callback(_cancelled, serving)
        await asyncio.wait([serving, asyncio.create_task(stop.wait())], return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            serving.result()  # it never ends by itself: this raises what ended it
        state.draining = True
        log.info("stopping: serving for %g more seconds", options.shutdown_delay)
        await asyncio.sleep(options.shutdown_delay if state.serving else 0)


async def _serve(stack: AsyncExitStack, options: Options, state: State, certificates: Certificates) -> None:
    await certificates.wait()
    judges = memcached.judges(options.default_image) | appservice.judges()
    await connections.listen(stack, application(judges, state), options.webhook, certificates.context, state.busy)
    state.serving = True
    gc.freeze()  # what was made up to now stays: no need to look through it again and again
    log.info("serving admission reviews on port %d, default image %s", options.webhook.port, options.default_image)
    await certificates.watch()


def _stop_signal() -> asyncio.Event:
    """Set by SIGTERM and SIGINT: as process 1 of a container, a process without handlers would ignore them."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
