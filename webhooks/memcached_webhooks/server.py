"""What the webhook's port answers, and the process around it: metrics, certificates, probes and an orderly end."""

import asyncio
import contextlib
import gc
import logging
import signal
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Final

from aiohttp import web

from memcached_api.field_errors import quoted
from memcached_process.addresses import Address
from memcached_process.connections import Acceptor, serve
from memcached_process.logs import RateLimit
from memcached_process.servers import exposition, listen, probes
from memcached_webhooks import appservice, memcached
from memcached_webhooks.bodies import LARGEST, Bodies, TooLargeError, TooSlowError
from memcached_webhooks.certificates import Certificates
from memcached_webhooks.metrics import Metrics
from memcached_webhooks.review import BadReview, Denial, Handler, answer

log = logging.getLogger(__name__)

MOST: Final = 512
"""Connections to the webhooks. An API server opens one per review under way, 600 at most by its own limits, for all
webhooks together."""
LOGGED_PER_SECOND: Final = 10
"""Denials, and errors of ours, that are logged; the metrics count all of them."""
JSON: Final = "application/json"
_JSON_HEADERS: Final = {"Content-Type": JSON}


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


class Reviews:
    """Answers requests: a POST on the path of a judge by its verdict. Nothing is ever allowed by default."""

    def __init__(self, handlers: Mapping[str, Handler], metrics: Metrics) -> None:
        self._judges = handlers
        self._metrics = metrics
        self._bodies = Bodies()
        self._denials, self._errors = RateLimit(LOGGED_PER_SECOND), RateLimit(LOGGED_PER_SECOND)
        self._in_flight = dict.fromkeys(handlers, 0)
        # Looked up once: labels cost as much as a rule.
        self._latency = {path: metrics.latency.labels(path) for path in handlers}
        self._answered = {path: metrics.requests.labels(path, "200") for path in handlers}
        for path in handlers:
            metrics.in_flight.labels(path).set_function(partial(self._in_flight.__getitem__, path))

    async def respond(self, request: web.BaseRequest) -> web.Response:
        """The response to a request of which the head is read."""
        path = request.raw_path.partition("?")[0]
        handler = self._judges.get(path)
        if handler is None:
            return _text(HTTPStatus.NOT_FOUND, "there is no webhook on this path")
        since = time.perf_counter()
        self._in_flight[path] += 1
        try:
            response = await self._response(request, path, handler)
        finally:
            self._in_flight[path] -= 1
        self._count(path, response.status, time.perf_counter() - since)
        return response

    async def _response(self, request: web.BaseRequest, path: str, handler: Handler) -> web.Response:
        if request.method != "POST":
            return _text(HTTPStatus.METHOD_NOT_ALLOWED, "want a POST", {"Allow": "POST"})
        content_type = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if content_type != JSON:
            return _text(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"want {JSON}, got {quoted(content_type)}")
        try:
            body = await self._bodies.read(request)
        except TooLargeError:
            return _text(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"want a body of at most {LARGEST} bytes")
        except TooSlowError:
            return _text(HTTPStatus.REQUEST_TIMEOUT, "the body did not arrive in time, and other requests waited")
        return self._reviewed(body, path, handler)

    def _reviewed(self, body: bytes | bytearray, path: str, handler: Handler) -> web.Response:
        try:
            review, result = answer(body, handler)
        except BadReview as error:
            return _text(HTTPStatus.BAD_REQUEST, str(error))
        except Exception:
            # The outermost edge: a defect that one review meets must not end the process.
            self._metrics.panics.inc()
            if self._errors.take(time.monotonic()):
                log.exception("a review on %s met an error of ours", path)
            text = "the webhook met an error of its own; its log has the details"
            return _text(HTTPStatus.INTERNAL_SERVER_ERROR, text)
        if result.denial is not None:
            self._note(path, result.denial)
        return web.Response(body=review, headers=_JSON_HEADERS)

    def _note(self, path: str, denial: Denial) -> None:
        self._metrics.denials.labels(path, denial.reason).inc()
        if self._denials.take(time.monotonic()):
            name = denial.details.get("name")
            log.info("%s denied %s", path, quoted(name) if name else "an object")

    def _count(self, path: str, status: int, seconds: float) -> None:
        self._latency[path].observe(seconds)
        if status == HTTPStatus.OK:
            self._answered[path].inc()
        else:
            self._metrics.requests.labels(path, str(status)).inc()


def _text(status: HTTPStatus, text: str, headers: Mapping[str, str] | None = None) -> web.Response:
    """A response for people."""
    return web.Response(status=status, text=text, headers=headers)


async def run(options: Options) -> None:
    """Serve until SIGTERM or SIGINT, then for `shutdown_delay` more, while endpoints forget us; then stop."""
    stop, process = _stop_signal(), _Process(options)
    async with AsyncExitStack() as stack:
        await listen(stack, stop, probes(process.is_ready), options.probes)
        await listen(stack, stop, exposition(process.metrics.registry), options.metrics)
        serving = asyncio.create_task(process.serve(stack, stop))
        stack.push_async_callback(_cancelled, serving)
        await asyncio.wait([serving, asyncio.create_task(stop.wait())], return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            serving.result()  # it never ends by itself: this raises what ended it
        log.info("stopping: serving for %g more seconds", options.shutdown_delay)
        await asyncio.sleep(options.shutdown_delay if process.drain() else 0)


class _Process:
    """The webhooks' port, from the first certificate on."""

    def __init__(self, options: Options) -> None:
        self.metrics = Metrics()
        self._options = options
        self._certificates = Certificates(options.certificate, options.key, self.metrics)
        self._acceptor: Acceptor | None = None

    def is_ready(self) -> bool:
        """Whether reviews are answered, and will be for a while."""
        return self._acceptor is not None and not self._acceptor.draining

    def drain(self) -> bool:
        """Have connections end with their next answer; whether there is a port to do this on."""
        if self._acceptor is None:
            return False
        self._acceptor.draining = True
        return True

    async def serve(self, stack: AsyncExitStack, stop: asyncio.Event) -> None:
        """Answer reviews; cancelled in the end. Raises OSError if the port is taken."""
        options, certificates = self._options, self._certificates
        await certificates.wait()
        reviews = Reviews(memcached.handlers(options.default_image) | appservice.handlers(), self.metrics)
        self._acceptor = await serve(stack, stop, reviews.respond, options.webhook, MOST, certificates.context)
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
