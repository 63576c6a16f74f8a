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

from memcached_process.addresses import Address
from memcached_process.servers import exposition, listen, probes
from memcached_webhooks import appservice, connections, memcached
from memcached_webhooks.certificates import Certificates
from memcached_webhooks.metrics import Metrics
from memcached_webhooks.protocol import Answer, Request, Server, told
from memcached_webhooks.review import BadReview, Judge, Verdict, answer

log = logging.getLogger(__name__)

JSON: Final = "application/json"


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

    def __init__(self, judges: Mapping[str, Judge], metrics: Metrics) -> None:
        self._judges = judges
        self._metrics = metrics
        # Looked up once: labels cost as much as a rule.
        self._latency = {path: metrics.latency.labels(path) for path in judges}
        self._answered = {path: metrics.requests.labels(path, "200") for path in judges}

    def respond(self, request: Request) -> Answer:
        """The answer to a whole request. Never raises."""
        judge = self._judges.get(request.path)
        if judge is None:
            return told(HTTPStatus.NOT_FOUND, "there is no webhook on this path")
        if request.method != "POST":
            return told(HTTPStatus.METHOD_NOT_ALLOWED, "want a POST")._replace(allow="POST")
        if request.content_type != JSON:
            return told(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"want {JSON}, got {request.content_type or 'no type'}")
        try:
            body, verdict = answer(request.body, judge)
        except BadReview as error:
            return told(HTTPStatus.BAD_REQUEST, str(error))
        except Exception:
            # The outermost edge: a defect that one review meets must not end the process.
            self._metrics.panics.inc()
            log.exception("a review on %s met an error of ours", request.path)
            text = "the webhook met an error of its own; its log has the details"
            return told(HTTPStatus.INTERNAL_SERVER_ERROR, text)
        _note(request.path, verdict, self._metrics)
        return Answer(HTTPStatus.OK, body, JSON)

    def noted(self, request: Request, answer: Answer) -> None:
        """Count an answer, and how long its request took from the end of its head."""
        latency = self._latency.get(request.path)
        if latency is None:
            return
        latency.observe(time.perf_counter() - request.since)
        if answer.status == HTTPStatus.OK:
            self._answered[request.path].inc()
        else:
            self._metrics.requests.labels(request.path, str(int(answer.status))).inc()


def _note(path: str, verdict: Verdict, metrics: Metrics) -> None:
    if verdict.refusal is not None:
        metrics.denials.labels(path, verdict.refusal.reason).inc()
        log.info("%s refused %s", path, verdict.refusal.details.get("name") or "an object of another kind")


async def run(options: Options) -> None:
    """Serve until SIGTERM or SIGINT, then for `shutdown_delay` more, while endpoints forget us; then stop."""
    stop, serves = _stop_signal(), asyncio.Event()
    metrics = Metrics()
    certificates = Certificates(options.certificate, options.key, metrics)
    server = _server(options, metrics)
    async with AsyncExitStack() as stack:
        await listen(stack, probes(lambda: serves.is_set() and not server.draining), options.probes)
        await listen(stack, exposition(metrics.registry), options.metrics)
        serving = asyncio.create_task(_serve(stack, options, server, certificates, serves))
        stack.push_async_callback(_cancelled, serving)
        await asyncio.wait([serving, asyncio.create_task(stop.wait())], return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            serving.result()  # it never ends by itself: this raises what ended it
        server.draining = True
        log.info("stopping: serving for %g more seconds", options.shutdown_delay)
        await asyncio.sleep(options.shutdown_delay if serves.is_set() else 0)


def _server(options: Options, metrics: Metrics) -> Server:
    judges = memcached.judges(options.default_image) | appservice.judges()
    reviews = Reviews(judges, metrics)
    server = Server(reviews.respond, reviews.noted)
    for path in judges:
        metrics.in_flight.labels(path).set_function(partial(server.under_way, path))
    return server


async def _serve(
    stack: AsyncExitStack, options: Options, server: Server, certificates: Certificates, serves: asyncio.Event
) -> None:
    await certificates.wait()
    await connections.listen(stack, server, options.webhook, certificates.context)
    serves.set()
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
