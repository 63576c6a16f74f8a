"""Lists and watches read a bounded part of what anyone may write."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from memcached_operator.kube import bodies
from memcached_operator.kube.client import ApiClient, ApiError
from memcached_operator.kube.resource import CONFIG_MAPS, Object
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
    """An event as the API server writes it: the fields of a built-in type in their order."""
    typed = {"kind": "ConfigMap", "apiVersion": "v1", **obj}
    return json.dumps({"type": kind, "object": typed}, separators=(",", ":")).encode() + b"\n"


def watched(*lines: bytes) -> list[tuple[str, str, str]]:
    """Type, name and version of the events of a watch."""

    async def serve(_: web.Request) -> web.Response:
        return web.Response(body=b"".join(lines))

    async def read(client: ApiClient) -> list[tuple[str, str, str]]:
        found = client.watch(CONFIG_MAPS, None, "", "1")
        return [(kind, obj["metadata"]["name"], obj["metadata"]["resourceVersion"]) async for kind, obj in found]

    return call(serve, read)


def test_event_that_is_too_large_names_its_object() -> None:
    large = config_map(1, bodies.MAX_LINE)
    events = [event("ADDED", config_map(0, SMALL)), event("MODIFIED", large), event("DELETED", large)]
    assert watched(*events, event("MODIFIED", config_map(3, SMALL))) == [
        ("ADDED", "c0", "1"),
        ("OVERSIZED", "c1", "2"),
        ("DELETED", "c1", "2"),
        ("MODIFIED", "c3", "4"),
    ]


HIDDEN: dict[str, Object] = {
    "name after the annotations": {"metadata": {"annotations": {"a": "x" * bodies.MAX_LINE}, "name": "a"}},
    "name in a text": {
        "data": {"a": '"metadata":{"name":"b","namespace":"c","uid":"d","resourceVersion":"9"' * 50_000}
    },
    "name with an escape": {"metadata": {"name": '"', "namespace": "a"}, "data": {"a": "x" * bodies.MAX_LINE}},
}


@pytest.mark.parametrize("obj", HIDDEN.values(), ids=HIDDEN.keys())
def test_event_whose_object_is_not_known_causes_a_list(obj: Object) -> None:
    with pytest.raises(ApiError, match="an event of configmaps is longer than") as raised:
        watched(event("MODIFIED", obj))
    assert raised.value.code == 410


def test_line_is_found_in_any_chunks() -> None:
    text = b"a\n\n" + b"b" * (bodies.MAX_LINE + 5) + b"\nc\nrest"

    async def chunks(size: int) -> AsyncIterator[bytes]:
        for start in range(0, len(text), size):
            yield text[start : start + size]

    async def read(size: int) -> list[bodies.Line]:
        return [line async for line in bodies.lines(chunks(size))]

    expected = [("a", False), ("", False), ("b" * 4096, True), ("c", False)]
    for size in (1000, 65536, len(text)):
        assert [(line.text.decode(), line.cut) for line in asyncio.run(read(size))] == expected
