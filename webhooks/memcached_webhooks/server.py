"""The webhook server and its process: metrics, certificates, probes and graceful shutdown."""

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
from typing import Any, Final

from aiohttp import web

from memcached_api.images import Images
from memcached_api.kind import Kind
from memcached_api.registry import KINDS
from memcached_api.validation.field_errors import quote
from memcached_process.addresses import Address
from memcached_process.connections import Acceptor, serve
from memcached_process.logs import RateLimiter
from memcached_process.servers import listen, metrics_handler, probe_handler
from memcached_webhooks.bodies import MAX_BODY_SIZE, BodyReader, BodyTimeoutError, BodyTooLargeError
from memcached_webhooks.certwatcher import CertWatcher
from memcached_webhooks.kinds import handlers
from memcached_webhooks.metrics import Metrics
from memcached_webhooks.review import Denial, Handler, InvalidReviewError, handle_review

log = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = 512
"""Maximum connections to the webhook port. An API server opens one per concurrent request: by its own limits, at most
600 for all webhooks together."""
MAX_LOGGED_PER_SECOND: Final = 10
"""Maximum denials, and internal errors, in the log per second. The metrics count all of them."""
JSON: Final = "application/json"
_JSON_HEADERS: Final = {"Content-Type": JSON}


@dataclass(frozen=True)
class AdmissionOptions:
    """The command-line options. Times are in seconds."""

    images: Images
    certificate: Path
    key: Path
    webhook: Address
    probes: Address | None
    metrics: Address | None
    shutdown_delay: float
    kinds: tuple[Kind[Any], ...] = KINDS


class AdmissionHandler:
    """Serves admission requests: a POST to the path of a handler. The API server denies a
    request if it gets an error response."""

    def __init__(self, handlers: Mapping[str, Handler], metrics: Metrics) -> None:
        self._handlers = handlers
        self._metrics = metrics
        self._body_reader = BodyReader()
        self._denials, self._errors = RateLimiter(MAX_LOGGED_PER_SECOND), RateLimiter(MAX_LOGGED_PER_SECOND)
        self._in_flight = dict.fromkeys(handlers, 0)
        # Looked up in advance, because looking up a label takes as long as evaluating a rule.
        self._latency = {path: metrics.latency.labels(path) for path in handlers}
        self._ok_requests = {path: metrics.requests.labels(path, "200") for path in handlers}
        for path in handlers:
            metrics.in_flight.labels(path).set_function(partial(self._in_flight.__getitem__, path))

    async def respond(self, request: web.BaseRequest) -> web.Response:
        """The response to a request whose head has been read."""
        path = request.raw_path.partition("?")[0]
        handler = self._handlers.get(path)
        if handler is None:
            return _text(HTTPStatus.NOT_FOUND, "no webhook has this path")
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
            return _text(HTTPStatus.METHOD_NOT_ALLOWED, "use POST", {"Allow": "POST"})
        content_type = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if content_type != JSON:
            return _text(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"expected Content-Type {JSON}, got {quote(content_type)}")
        try:
            body = await self._body_reader.read(request)
        except BodyTooLargeError:
            return _text(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body must have at most {MAX_BODY_SIZE} bytes")
        except BodyTimeoutError:
            return _text(HTTPStatus.REQUEST_TIMEOUT, "timed out reading the body while other requests were waiting")
        return self._handle_body(body, path, handler)

    def _handle_body(self, body: bytes | bytearray, path: str, handler: Handler) -> web.Response:
        try:
            review, result = handle_review(body, handler)
        except InvalidReviewError as error:
            return _text(HTTPStatus.BAD_REQUEST, str(error))
        except Exception:
            # A broad except at the outermost level: a defect that affects one request must not end the process.
            self._metrics.panics.inc()
            if self._errors.allow(time.monotonic()):
                log.exception("internal error while handling a request to %s", path)
            text = "internal error of the webhook; see its log"
            return _text(HTTPStatus.INTERNAL_SERVER_ERROR, text)
        if result.denial is not None:
            self._record_denial(path, result.denial)
        return web.Response(body=review, headers=_JSON_HEADERS)

    def _record_denial(self, path: str, denial: Denial) -> None:
        self._metrics.denials.labels(path, denial.reason).inc()
        if self._denials.allow(time.monotonic()):
            name = denial.details.get("name")
            log.info("%s rejected %s", path, quote(name) if name else "an object")

    def _count(self, path: str, status: int, seconds: float) -> None:
        self._latency[path].observe(seconds)
        if status == HTTPStatus.OK:
            self._ok_requests[path].inc()
        else:
            self._metrics.requests.labels(path, str(status)).inc()


def _text(status: HTTPStatus, text: str, headers: Mapping[str, str] | None = None) -> web.Response:
    """A plain-text response."""
    return web.Response(status=status, text=text, headers=headers)


async def run(options: AdmissionOptions) -> None:
    """Serve until SIGTERM or SIGINT, continue for `shutdown_delay` until endpoints exclude this pod, then stop."""
    stop, process = _stop_signal(), _Process(options)
    async with AsyncExitStack() as stack:
        await listen(stack, stop, probe_handler(process.is_ready), options.probes)
        await listen(stack, stop, metrics_handler(process.metrics.registry), options.metrics)
        serving = asyncio.create_task(process.serve(stack, stop))
        stack.push_async_callback(_cancel, serving)
        await asyncio.wait([serving, asyncio.create_task(stop.wait())], return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            serving.result()  # it ends only with an error, which this raises
        log.info("stopping: serving for %g more seconds", options.shutdown_delay)
        await asyncio.sleep(options.shutdown_delay if process.drain() else 0)


class _Process:
    """Serves the webhook port as soon as a certificate is available."""

    def __init__(self, options: AdmissionOptions) -> None:
        self.metrics = Metrics()
        self._options = options
        self._certificates = CertWatcher(options.certificate, options.key, self.metrics)
        self._acceptor: Acceptor | None = None

    def is_ready(self) -> bool:
        """Whether the webhook port is served and is not draining."""
        return self._acceptor is not None and not self._acceptor.draining

    def drain(self) -> bool:
        """Close each connection after its next response. Returns False if the port is not served."""
        if self._acceptor is None:
            return False
        self._acceptor.draining = True
        return True

    async def serve(self, stack: AsyncExitStack, stop: asyncio.Event) -> None:
        """Serve admission requests until cancelled. Raises OSError if the port is in use."""
        options, certificates = self._options, self._certificates
        await certificates.wait_until_loaded()
        reviews = AdmissionHandler(handlers(options.images, options.kinds), self.metrics)
        self._acceptor = await serve(
            stack, stop, reviews.respond, options.webhook, MAX_CONNECTIONS, certificates.context
        )
        gc.freeze()  # objects created up to now are permanent, so the garbage collector can skip them
        log.info(
            "serving admission reviews on port %d, default image %s", options.webhook.port, options.images.memcached
        )
        await certificates.watch()


def _stop_signal() -> asyncio.Event:
    """An event that SIGTERM and SIGINT set. Without handlers, process 1 of a container ignores these signals."""
    stop = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signum, stop.set)
    return stop


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
