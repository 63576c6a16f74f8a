"""The complete process over TLS on loopback: paths, bodies, probes, metrics, certificates and shutdown."""

import asyncio
import gzip
import logging
import os
import signal
import time
from collections.abc import Awaitable, Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from memcached_api.appservice.types import APPSERVICE
from memcached_api.images import Images
from memcached_api.kind import Kind
from memcached_api.memcached.types import MEMCACHED
from memcached_api.registry import KINDS
from memcached_process.addresses import Address
from memcached_webhooks import certwatcher, server
from memcached_webhooks.admission import path_of
from memcached_webhooks.review import ALLOWED, ReviewRequest, ReviewResponse
from memcached_webhooks.server import AdmissionOptions, run
from support.ports import free_port
from support.streams import unverified

from .pairs import common_name, pair, write
from .reviews import DEFAULT, MUTATE, VALIDATE, patch_of, review
from .reviews import memcached as obj


class Client:
    """A client of a running process. `base`: URL of the webhooks; `probe`: of the probes; `metrics`: of the metrics."""

    def __init__(self, session: aiohttp.ClientSession, options: AdmissionOptions) -> None:
        assert options.probes
        assert options.metrics
        self.session = session
        self.port = options.webhook.port
        self.base = f"https://127.0.0.1:{self.port}"
        self.probe = f"http://127.0.0.1:{options.probes.port}"
        self.metrics = f"http://127.0.0.1:{options.metrics.port}/metrics"

    async def post(self, path: str, body: Any, **options: Any) -> tuple[int, bytes]:
        data = BytesIO(body if isinstance(body, bytes) else msgspec.json.encode(body))
        headers = {"Content-Type": "application/json"} | options.pop("headers", {})
        async with self.session.post(self.base + path, data=data, headers=headers, ssl=False, **options) as response:
            return response.status, await response.read()

    async def get(self, url: str) -> tuple[int, str]:
        async with self.session.get(url, ssl=False) as response:
            return response.status, await response.text()

    async def until_ready(self) -> None:
        while not await self.is_ready():  # noqa: ASYNC110 - polls like a kubelet
            await asyncio.sleep(0.01)

    async def is_ready(self) -> bool:
        try:
            return await self.get(f"{self.probe}/readyz") == (200, "ok")
        except aiohttp.ClientConnectionError:
            return False

    async def until_metric(self, line: str) -> None:
        """Wait until the metrics have this line."""
        while line not in (await self.get(self.metrics))[1]:  # noqa: ASYNC110 - polls like Prometheus
            await asyncio.sleep(0.01)

    async def served_name(self) -> str:
        """The common name of the certificate that a new connection receives."""
        _, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=unverified())
        der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        await writer.wait_closed()
        return common_name(der)


Scenario = Callable[[Client], Awaitable[None]]


def run_process(
    directory: Path, scenario: Scenario, delay: float = 0.0, *, ready: bool = True, kinds: tuple[Kind[Any], ...] = KINDS
) -> None:
    """Run the process and the scenario, then send SIGTERM. `delay`: seconds of --shutdown-delay. `kinds`: --kinds."""
    options = AdmissionOptions(
        images=Images(DEFAULT),
        certificate=directory / "tls.crt",
        key=directory / "tls.key",
        webhook=Address("127.0.0.1", free_port()),
        probes=Address("127.0.0.1", free_port()),
        metrics=Address("127.0.0.1", free_port()),
        shutdown_delay=delay,
        kinds=kinds,
    )

    async def run_both() -> None:
        process = asyncio.create_task(run(options))
        async with aiohttp.ClientSession() as session:
            client = Client(session, options)
            if ready:
                await client.until_ready()
            await scenario(client)
        os.kill(os.getpid(), signal.SIGTERM)
        await process

    asyncio.run(asyncio.wait_for(run_both(), 20))


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(certwatcher, "POLL_PERIOD", 0.01)
    write(tmp_path, *pair("one"))
    return tmp_path


def test_only_the_given_kinds_are_served(directory: Path):
    async def scenario(client: Client) -> None:
        assert (await client.post(VALIDATE, review(obj({}))))[0] == 200
        assert (await client.post(path_of("validate", APPSERVICE), review(obj({}))))[0] == 404

    run_process(directory, scenario, kinds=(MEMCACHED,))


def test_reviews_get_responses(directory: Path):
    async def scenario(client: Client) -> None:
        status, body = await client.post(MUTATE, review(obj({"size": 2})))
        assert status == 200
        paths = [op["path"] for op in patch_of(msgspec.json.decode(body))]
        assert paths[:2] == ["/spec/containerPort", "/spec/image"]
        status, body = await client.post(VALIDATE, review(obj({"size": 0})))
        assert status == 200
        assert msgspec.json.decode(body)["response"]["status"]["code"] == 422

    run_process(directory, scenario)


ACCEPTED = msgspec.json.encode(review(obj({"size": 1})))
INVALID: dict[str, tuple[str, bytes, dict[str, str], int]] = {
    "an unknown path": ("/validate", b"{}", {}, 404),
    "a path with a slash at its end": (VALIDATE + "/", b"{}", {}, 404),
    "invalid JSON": (VALIDATE, b"{", {}, 400),
    "no body": (VALIDATE, b"", {}, 400),
    "another type": (VALIDATE, b"{}", {"Content-Type": "text/plain"}, 415),
    "an encoding": (VALIDATE, b"{}", {"Content-Type": "application/json; charset=utf-8"}, 400),
    "a large body": (VALIDATE, ACCEPTED.ljust(4 * 2**20 + 1), {}, 413),
    "a large field": (VALIDATE, msgspec.json.encode(review({}, kind={"group": "x" * 2**20})), {}, 400),
    "a compressed body": (VALIDATE, gzip.compress(ACCEPTED), {"Content-Encoding": "gzip"}, 400),
}


def test_invalid_request_is_never_allowed(directory: Path):
    async def scenario(client: Client) -> None:
        for name, (path, body, headers, status) in INVALID.items():
            actual, text = await client.post(path, body, headers=headers)
            assert actual == status, name
            assert b"allowed" not in text
        status, text = await client.post(VALIDATE, b"{}", headers={"Content-Type": "x" * 5000})
        assert (status, text) == (415, f'expected Content-Type application/json, got "{"x" * 100}…"'.encode())
        assert (await client.get(client.base + VALIDATE))[0] == 405
        assert (await client.post(VALIDATE, ACCEPTED.ljust(4 * 2**20)))[0] == 200

    run_process(directory, scenario)


def test_probes_and_metrics(directory: Path):
    async def scenario(client: Client) -> None:
        await client.post(VALIDATE, review(obj({"size": 0})))
        await client.post(VALIDATE, b"{")
        assert await client.get(f"{client.probe}/healthz") == (200, "ok")
        status, text = await client.get(client.metrics)
        assert status == 200
        for code in ("200", "400"):
            assert f'controller_runtime_webhook_requests_total{{code="{code}",webhook="{VALIDATE}"}} 1.0' in text
        assert f'controller_runtime_webhook_latency_seconds_count{{webhook="{VALIDATE}"}} 2.0' in text
        assert f'controller_runtime_webhook_requests_in_flight{{webhook="{VALIDATE}"}} 0.0' in text
        assert f'memcached_webhooks_denials_total{{reason="Invalid",webhook="{VALIDATE}"}} 1.0' in text
        assert "certwatcher_read_certificate_errors_total 0.0" in text

    run_process(directory, scenario)


def test_only_names_are_logged(directory: Path, caplog: pytest.LogCaptureFixture):
    async def scenario(client: Client) -> None:
        await client.post(VALIDATE, review(obj({"size": 0, "image": "secret secret"})))
        await client.post(VALIDATE, review({}, kind={"group": "apps", "kind": "Deployment"}))

    with caplog.at_level(logging.DEBUG):
        run_process(directory, scenario)
    assert f'{VALIDATE} rejected "cache"' in caplog.text
    assert f"{VALIDATE} rejected an object" in caplog.text
    assert "secret" not in caplog.text


HOSTILE = {
    "a forged log line": "a\n2026-01-01 00:00:00 INFO memcached_webhooks: all is well",
    "other line separators": "a\r\x0b\x0c\x1c\x85\u2028\u2029b",
    "terminal escape sequences": "\x1b[2J\x9b31m\x07",
    "quotes": "a\"b'c\\",
    "right-to-left override": "a\u202eb",
}


@pytest.mark.parametrize("source", ["request", "object"])
def test_names_are_escaped_in_the_log(source: str, directory: Path, caplog: pytest.LogCaptureFixture):
    async def scenario(client: Client) -> None:
        for name in HOSTILE.values():
            bad = review({**obj({"size": 0}), "metadata": {"name": "" if source == "request" else name}})
            bad["request"]["name"] = name if source == "request" else ""
            status, body = await client.post(VALIDATE, bad)
            assert (status, msgspec.json.decode(body)["response"]["allowed"]) == (200, False)

    with caplog.at_level(logging.INFO):
        run_process(directory, scenario)
    lines = [record.getMessage() for record in caplog.records if "rejected" in record.getMessage()]
    assert all(line.isprintable() for line in lines)
    assert [msgspec.json.decode(line.partition(" rejected ")[2]) for line in lines] == list(HOSTILE.values())


def test_logged_denials_are_rate_limited_but_all_are_counted(
    directory: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(server, "MAX_LOGGED_PER_SECOND", 2)
    started = time.monotonic()

    async def scenario(client: Client) -> None:
        for _ in range(50):
            await client.post(VALIDATE, review(obj({"size": 0})))
        text = (await client.get(client.metrics))[1]
        assert f'memcached_webhooks_denials_total{{reason="Invalid",webhook="{VALIDATE}"}} 50.0' in text

    with caplog.at_level(logging.INFO):
        run_process(directory, scenario)
    seconds = int(time.monotonic()) - int(started) + 1
    assert 2 <= sum("rejected" in record.getMessage() for record in caplog.records) <= 2 * seconds


def test_unexpected_error_is_counted_and_does_not_stop_the_server(
    directory: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def broken(request: ReviewRequest) -> ReviewResponse:
        if request.operation == "CREATE":
            raise RuntimeError("boom")
        return ALLOWED

    def handlers(*_: object) -> dict[str, Callable[[ReviewRequest], ReviewResponse]]:
        return {VALIDATE: broken}

    monkeypatch.setattr(server, "handlers", handlers)

    async def scenario(client: Client) -> None:
        assert (await client.post(VALIDATE, review({})))[0] == 500
        assert (await client.post(VALIDATE, review({}, {})))[0] == 200
        assert "controller_runtime_webhook_panics_total 1.0" in (await client.get(client.metrics))[1]

    run_process(directory, scenario)
    assert "boom" in caplog.text


def test_renewed_certificate_is_served_without_interruption(directory: Path):
    async def scenario(client: Client) -> None:
        assert await client.served_name() == "one"
        write(directory, *pair("two"))
        await client.until_metric("certwatcher_read_certificate_total 2.0")
        assert await client.served_name() == "two"
        write(directory, b"nonsense", b"nonsense")
        failures = "certwatcher_read_certificate_errors_total"
        while f"{failures} 0.0" in (await client.get(client.metrics))[1]:  # noqa: ASYNC110 - polls like Prometheus
            await asyncio.sleep(0.01)
        assert await client.served_name() == "two"
        assert await client.is_ready()

    run_process(directory, scenario)


def test_not_ready_before_there_is_a_certificate(directory: Path):
    (directory / "tls.crt").unlink()

    async def scenario(client: Client) -> None:
        await asyncio.sleep(0.1)
        assert await client.get(f"{client.probe}/healthz") == (200, "ok")
        assert await client.get(f"{client.probe}/readyz") == (503, "not ready")
        write(directory, *pair("late"))
        await client.until_ready()
        assert await client.served_name() == "late"

    run_process(directory, scenario, ready=False)


def test_shutdown_is_immediate_while_waiting_for_a_certificate(directory: Path):
    (directory / "tls.crt").unlink()

    async def scenario(client: Client) -> None:
        await asyncio.sleep(0.05)

    run_process(directory, scenario, delay=60, ready=False)


def test_reviews_are_answered_during_the_shutdown_delay_and_connections_closed(directory: Path):
    async def scenario(client: Client) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        while await client.is_ready():  # noqa: ASYNC110 - polls like a kubelet
            await asyncio.sleep(0.01)
        headers = {"Content-Type": "application/json"}
        async with client.session.post(client.base + VALIDATE, data=ACCEPTED, headers=headers, ssl=False) as response:
            assert response.status == 200
            assert response.headers["Connection"] == "close"

    run_process(directory, scenario, delay=0.5)
