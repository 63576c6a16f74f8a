import asyncio

import aiohttp
import pytest
from aiohttp import web

from memcached_operator.engine import metrics
from memcached_operator.engine.probes import exposition, parse_address, probes, serve

ADDRESSES = {
    ":8081": (None, 8081),
    "127.0.0.1:8081": ("127.0.0.1", 8081),
    "localhost:1": ("localhost", 1),
    "[::1]:65535": ("::1", 65535),
    "0": None,
}


@pytest.mark.parametrize(("text", "bind"), ADDRESSES.items(), ids=ADDRESSES.keys())
def test_address(text: str, bind: tuple[str | None, int] | None) -> None:
    assert parse_address(text) == bind


@pytest.mark.parametrize("text", ["", "8081", "127.0.0.1", ":", ":port", ":-1", ":65536", "localhost:80 "])
def test_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="is no address to listen on: give HOST:PORT, :PORT, or 0 for none"):
        parse_address(text)


def asked(app: web.Application, path: str) -> tuple[int, str]:
    """Status and text of an answer."""

    async def ask() -> tuple[int, str]:
        runner = await serve(app, "127.0.0.1:0")
        assert runner is not None
        try:
            url = f"http://127.0.0.1:{runner.addresses[0][1]}{path}"
            async with aiohttp.ClientSession() as session, session.get(url) as response:
                return response.status, await response.text()
        finally:
            await runner.cleanup()

    return asyncio.run(ask())


PROBES = {
    "alive and ready": (True, "/healthz", (200, "ok")),
    "ready": (True, "/readyz", (200, "ok")),
    "alive, not ready": (False, "/healthz", (200, "ok")),
    "not ready": (False, "/readyz", (503, "not ready")),
}


@pytest.mark.parametrize(("ready", "path", "answer"), PROBES.values(), ids=PROBES.keys())
def test_probe(ready: bool, path: str, answer: tuple[int, str]) -> None:
    assert asked(probes(lambda: ready), path) == answer


def test_nothing_else_is_served() -> None:
    assert asked(probes(lambda: True), "/")[0] == 404


def test_metrics_are_served() -> None:
    metrics.QUEUE_DEPTH.labels("shown").set(7)
    status, text = asked(exposition(), "/metrics")
    assert status == 200
    assert 'workqueue_depth{name="shown"} 7.0' in text


def test_address_0_means_not_to_listen() -> None:
    assert asyncio.run(serve(probes(lambda: True), "0")) is None
