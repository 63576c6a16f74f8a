"""Lists and watches read a bounded part of what anyone may write."""

import asyncio
import gc
import json
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web

from memcached_operator.kube import bodies
from memcached_operator.kube import client as client_module
from memcached_operator.kube.client import ApiClient, ApiError
from memcached_operator.kube.resource import CONFIG_MAPS, Object
from memcached_operator.world import reflector
from memcached_operator.world.reflector import Reflector
from support.lists import listed
from unit.servers import serving

SMALL, MEDIUM, LARGE = 100, bodies.MAX_PAGE // 136, bodies.MAX_PAGE // 3
"""Sizes of objects. 16 medium ones are a little less than an eighth of the largest page."""


class Server:
    """Serves a list of objects of these sizes in pages, and records the limits that were asked for."""

    def __init__(self, *sizes: int) -> None:
        self.sizes = sizes
        self.limits: list[int] = []
        self.requests: list[web.Request] = []

    async def __call__(self, request: web.Request) -> web.Response:
        """One page."""
        query = request.query
        start, limit = int(query.get("continue", 0)), int(query["limit"])
        self.limits.append(limit)
        end = start + limit
        meta = {"resourceVersion": "9", "continue": str(end) if end < len(self.sizes) else ""}
        items = [config_map(index, size) for index, size in enumerate(self.sizes)][start:end]
        return web.json_response({"metadata": meta, "items": items})


def config_map(index: int, size: int) -> Object:
    """A ConfigMap with this many bytes of data."""
    meta = {"name": f"c{index}", "namespace": "test", "uid": f"u{index}", "resourceVersion": str(index + 1)}
    return {"metadata": meta, "data": {"a": "x" * size}}


def call(server: Any, function: Callable[[ApiClient], Awaitable[Any]]) -> Any:
    """The result of a function that uses a client."""

    async def run() -> Any:
        async with serving(server) as config, config.session() as session:
            return await function(ApiClient(config, session))

    return asyncio.run(run())


PAGES: dict[str, tuple[list[int], list[int]]] = {
    "one page": ([SMALL] * 16, [16]),
    "pages grow to their maximum": ([SMALL] * 400, [16, 32, 64, 128, 128, 128]),
    "pages grow only below an eighth of the limit": ([MEDIUM] * 80, [16, 32, 32]),
    "a page that is too large is read again, one by one": ([LARGE] * 4, [16, 1, 1, 1, 1]),
    "pages grow again": ([LARGE] * 4 + [SMALL] * 8, [16, 1, 1, 1, 1, 1, 2, 4, 8]),
    "an object that is larger than a page": ([SMALL, bodies.MAX_PAGE], [16, 1, 2, 1]),
    "no objects": ([], [16]),
}


@pytest.mark.parametrize(("sizes", "limits"), PAGES.values(), ids=PAGES.keys())
def test_every_object_is_read_in_pages(sizes: list[int], limits: list[int]) -> None:
    server = Server(*sizes)
    items, version = call(server, lambda client: listed(client, CONFIG_MAPS, None))
    assert [each["metadata"]["name"] for each in items] == [f"c{index}" for index in range(len(sizes))]
    assert (version, server.limits) == ("9", limits)


def test_lists_that_hang_do_not_delay_others() -> None:
    hanging, may_end = asyncio.Event(), asyncio.Event()

    async def serve(request: web.Request) -> web.Response:
        if "/hangs/" in request.path:
            hanging.set()
            await may_end.wait()
        return web.json_response({"metadata": {"resourceVersion": "9"}, "items": []})

    async def use(client: ApiClient) -> tuple[list[Object], str]:
        async with asyncio.TaskGroup() as group:
            for _ in range(2 * client_module.PAGES):
                group.create_task(listed(client, CONFIG_MAPS, "hangs"))
            await hanging.wait()
            try:
                async with asyncio.timeout(10):
                    return await listed(client, CONFIG_MAPS, "test")
            finally:
                may_end.set()

    assert call(serve, use) == ([], "9")


def test_limit_of_a_list_counts_the_objects_of_all_pages() -> None:
    server = Server(*[SMALL] * 60)

    async def read(client: ApiClient) -> int:
        return sum([page.count async for page in client.list(CONFIG_MAPS, "test", limit=20)])

    assert call(server, read) == 20
    assert server.limits == [16, 4]


def test_object_that_is_larger_than_any_is_an_error() -> None:
    server = Server(bodies.MAX_BODY)
    with pytest.raises(
        ApiError, match="the response to GET /api/v1/configmaps is longer than 16777216 bytes"
    ) as raised:
        call(server, lambda client: listed(client, CONFIG_MAPS, None))
    assert raised.value.code == 200
    assert server.limits == [16, 1]


def test_response_of_exactly_the_limit_is_read() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"ab"
        yield b"c"

    assert asyncio.run(bodies.read(chunks(), 3)) == b"abc"
    with pytest.raises(bodies.TooLargeError):
        asyncio.run(bodies.read(chunks(), 2))


def event(kind: str, obj: Object) -> bytes:
    """An event as the API server writes it."""
    return json.dumps({"type": kind, "object": obj}, separators=(",", ":")).encode() + b"\n"


def watched(*lines: bytes) -> list[tuple[str, str, str]]:
    """Type, name and version of the events of a watch."""

    async def serve(_: web.Request) -> web.Response:
        return web.Response(body=b"".join(lines))

    async def read(client: ApiClient) -> list[tuple[str, str, str]]:
        found = client.watch(CONFIG_MAPS, None, "", "1")
        return [(kind, obj["metadata"]["name"], obj["metadata"]["resourceVersion"]) async for kind, obj in found]

    return call(serve, read)


def test_large_event_is_read() -> None:
    large = config_map(1, 3 * bodies.LARGE_LINE)
    events = [event("ADDED", config_map(0, SMALL)), event("MODIFIED", large), event("DELETED", large)]
    assert watched(*events, event("MODIFIED", config_map(3, SMALL))) == [
        ("ADDED", "c0", "1"),
        ("MODIFIED", "c1", "2"),
        ("DELETED", "c1", "2"),
        ("MODIFIED", "c3", "4"),
    ]


def test_event_that_is_larger_than_any_causes_a_list() -> None:
    with pytest.raises(ApiError, match="configmaps: an event has more than 16 MiB") as raised:
        watched(event("MODIFIED", config_map(1, bodies.MAX_BODY)))
    assert raised.value.code == 410


async def chunked(text: bytes, size: int) -> AsyncIterator[bytes]:
    """The text in chunks of this size."""
    for start in range(0, len(text), size):
        yield text[start : start + size]


def test_line_is_found_in_any_chunks() -> None:
    large = b"b" * (bodies.LARGE_LINE + 5)
    text = b"a\n\n" + large + b"\nc\nrest"

    async def read(size: int) -> list[bytes]:
        return [line async for line in bodies.lines(chunked(text, size))]

    for size in (1000, 65536, len(text)):
        assert asyncio.run(read(size)) == [b"a", b"", large, b"c"]


@pytest.mark.parametrize("size", [4096, bodies.MAX_BODY + 3])
def test_line_may_have_a_maximum_of_bytes(size: int) -> None:
    async def read(length: int) -> list[int]:
        return [len(line) async for line in bodies.lines(chunked(b"a" * length + b"\n", size))]

    assert asyncio.run(read(bodies.MAX_BODY)) == [bodies.MAX_BODY]
    with pytest.raises(bodies.TooLargeError):
        asyncio.run(read(bodies.MAX_BODY + 1))


def test_only_one_large_line_is_read_at_a_time() -> None:
    """Small lines are read meanwhile. A large one that ends, or whose watch ends, makes way for the next one."""
    large = b"x" * (bodies.LARGE_LINE + 1)

    async def scenario() -> None:
        turn = asyncio.Lock()
        sent: list[asyncio.Queue[bytes]] = [asyncio.Queue() for _ in range(4)]
        got: list[list[int]] = [[], [], [], []]

        async def chunks(watch: int) -> AsyncIterator[bytes]:
            while True:
                yield await sent[watch].get()

        async def read(watch: int) -> None:
            async for line in bodies.lines(chunks(watch), turn):
                got[watch].append(len(line))

        async def send(watch: int, *texts: bytes) -> None:
            for text in texts:
                sent[watch].put_nowait(text)
            for _ in range(20):
                await asyncio.sleep(0)

        tasks = [asyncio.create_task(read(watch)) for watch in range(4)]
        await send(0, large)
        await send(1, large, b"\n")
        await send(2, large, b"\n")
        await send(3, b"small\n")
        assert got == [[], [], [], [5]]
        await send(0, b"y\n", b"z\n")
        assert got == [[len(large) + 1, 1], [len(large)], [len(large)], [5]]
        await send(0, large)
        await send(1, large, b"\n")
        assert len(got[1]) == 1
        tasks[0].cancel()
        await send(3, b"\n")
        assert len(got[1]) == 2
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert not turn.locked()

    asyncio.run(scenario())


def test_a_peer_that_stalls_in_a_large_line_does_not_block_other_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "TURN", 0.05)

    async def scenario() -> None:
        turn = asyncio.Lock()

        async def stalled() -> AsyncIterator[bytes]:
            yield b"x" * (bodies.LARGE_LINE + 1)
            await asyncio.Event().wait()

        with pytest.raises(TimeoutError):
            [line async for line in bodies.lines(stalled(), turn)]
        assert not turn.locked()

    asyncio.run(scenario())


def ignore(*_: object) -> None:
    """Handle no event."""


class Known(dict[str, Any]):
    """An object of which a test can see whether it exists."""


def test_an_object_is_not_kept_until_the_next_event() -> None:
    async def scenario() -> None:
        seen: list[weakref.ref[Known]] = []

        async def watch(*_: object) -> AsyncIterator[tuple[str, Object]]:
            event = ("ADDED", Known(metadata={"resourceVersion": "1"}))
            seen.append(weakref.ref(event[1]))
            yield event
            del event
            gc.collect()
            assert seen[0]() is None

        client: Any = SimpleNamespace(watch=watch)
        listed = Reflector(CONFIG_MAPS, None, "", "0")
        await vars(reflector)["_watch"](client, listed, ignore)
        assert listed.version == "1"

    asyncio.run(scenario())
