import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from memcached_operator import metrics
from memcached_operator.engine.runtime.tasks import background
from memcached_operator.kube.client import ApiClient, ApiError, api_error, connection_error, describe
from memcached_operator.kube.credentials import ConfigError
from memcached_operator.kube.resource import DEPLOYMENTS, Key
from support.lists import listed
from unit.servers import Script, connection, response, serving

KEY = Key(DEPLOYMENTS, "test", "cache")
PATH = "/apis/apps/v1/namespaces/test/deployments"
Call = Callable[[ApiClient], Awaitable[Any]]


class Leader:
    """Leads as long as these values say; the last one stays. `keeps`: it was told to keep the lease."""

    def __init__(self, *leads: bool) -> None:
        self._leads = list(leads)
        self.keeps = False

    def is_leader(self) -> bool:
        """The next value."""
        return self._leads.pop(0) if len(self._leads) > 1 else self._leads[0]

    def keep_lease(self) -> None:
        """Remember it."""
        self.keeps = True


def call_scripted(script: Script, call: Call) -> Any:
    """The result of a call to a scripted API server."""

    async def run() -> Any:
        async with serving(script) as conn, conn.session() as session:
            return await call(ApiClient(conn, session))

    return asyncio.run(run())


def error_of(script: Script, call: Call = lambda client: client.request("GET", "/x")) -> ApiError:
    """The ApiError that a call raises."""
    with pytest.raises(ApiError) as caught:
        call_scripted(script, call)
    return caught.value


STATUS = json.dumps({"kind": "Status", "message": 'services "x" is forbidden', "reason": "Forbidden", "code": 403})
NOT_JSON = "the response to GET /x is not valid JSON"
ERRORS = {
    "Status": (response(403, STATUS), (403, "Forbidden", 'services "x" is forbidden', None)),
    "Status with Retry-After": (
        response(429, STATUS, Retry_After="3"),
        (429, "Forbidden", 'services "x" is forbidden', 3.0),
    ),
    "Retry-After without end": (response(503, "later", Retry_After="9" * 400), (503, "", "later", 300.0)),
    "Retry-After as a date": (
        response(503, "later", Retry_After="Fri, 31 Dec 1999 23:59:59 GMT"),
        (503, "", "later", None),
    ),
    "error page": (response(502, "<h1>Bad gateway</h1>\n"), (502, "", "<h1>Bad gateway</h1>", None)),
    "long error page": (response(502, "x" * 1000), (502, "", "x" * 200, None)),
    "empty body": (response(500, ""), (500, "", "the API server responded with status 500", None)),
    "JSON that is not a Status": (response(500, '{"message": 5}'), (500, "", '{"message": 5}', None)),
    "success without JSON": (
        response(200, "<h1>Log in</h1>"),
        (200, "InvalidResponse", f"{NOT_JSON}: JSON is malformed: invalid character (byte 0)", None),
    ),
}


@pytest.mark.parametrize(("scripted", "expected"), ERRORS.values(), ids=ERRORS.keys())
def test_error_response(scripted: Any, expected: tuple[Any, ...]) -> None:
    error = error_of(Script([scripted]))
    assert (error.code, error.reason, error.message, error.retry_after) == expected
    assert str(error) == error.message


def test_request_without_a_response_is_counted() -> None:
    def requests() -> float:
        labels = {"code": "<error>", "method": "GET"}
        return metrics.REGISTRY.get_sample_value("rest_client_requests_total", labels) or 0

    async def run() -> None:
        unused = connection("http://127.0.0.1:1")
        async with unused.session() as session:
            await ApiClient(unused, session).request("GET", "/x")

    before = requests()
    with pytest.raises(ApiError, match="cannot be reached"):
        asyncio.run(run())
    assert requests() == before + 1


def test_invalid_utf8_in_an_error_is_replaced() -> None:
    assert api_error(500, {}, b"\xff no").message == "\N{REPLACEMENT CHARACTER} no"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_client_that_may_not_write_still_reads(method: str) -> None:
    script = Script([response()])

    async def run() -> None:
        async with serving(script) as conn, conn.session() as session:
            client = ApiClient(conn, session, Leader(False))
            await client.request("GET", "/x")
            await client.request(method, "/x", {})

    with pytest.raises(ApiError, match="not the leader: the write is not sent") as caught:
        asyncio.run(run())
    assert (caught.value.code, caught.value.permanent) == (0, False)
    assert [request.method for request in script.requests] == ["GET"]


def test_write_is_not_sent_by_a_process_that_stopped_leading_while_it_connected() -> None:
    script = Script([response()])

    async def run() -> None:
        async with serving(script) as conn, conn.session() as session:
            await ApiClient(conn, session, Leader(True, False)).request("PATCH", "/x", {})

    with pytest.raises(ApiError, match="not the leader: the write is not sent"):
        asyncio.run(run())
    assert script.requests == []


@pytest.mark.parametrize("is_answered", [True, False])
def test_last_write_of_a_leader_is_awaited(is_answered: bool) -> None:
    arrived, answer, leader = asyncio.Event(), asyncio.Event(), Leader(True)

    async def respond(_: web.BaseRequest) -> web.StreamResponse:
        arrived.set()
        await answer.wait()
        return web.Response(text="{}")

    async def run() -> None:
        async with serving(respond) as conn, conn.session() as session:
            client = ApiClient(conn, session, leader)
            write = asyncio.create_task(client.apply(KEY, {}))
            await arrived.wait()
            if is_answered:
                answer.set()
            await client.settle(30 if is_answered else 0.01)
            later = asyncio.create_task(client.apply(KEY, {}))
            await asyncio.sleep(0)
            assert (write.cancel(), later.cancel()) == (not is_answered, True)
            await asyncio.gather(write, later, return_exceptions=True)

    asyncio.run(run())
    assert leader.keeps is not is_answered


def test_unreachable_server() -> None:
    async def run() -> None:
        async with serving(Script([response()])) as conn:
            pass
        closed = connection(conn.server)
        async with closed.session() as session:
            await ApiClient(closed, session).request("GET", "/x")

    with pytest.raises(ApiError, match="the API server cannot be reached: Cannot connect to host") as caught:
        asyncio.run(run())
    assert (caught.value.code, caught.value.permanent) == (0, False)


def test_every_connection_error_has_a_description() -> None:
    assert describe(TimeoutError()) == "timed out"
    assert describe(OSError()) == "OSError"
    assert describe(OSError("disk full")) == "disk full"
    missing = connection_error(ConfigError("no token"))
    assert (missing.code, missing.reason, missing.message) == (0, "NoCredentials", "no token")


PERMANENCE = {
    "bad request": (400, "", True),
    "unauthorized": (401, "Unauthorized", False),
    "forbidden": (403, "Forbidden", True),
    "object not found": (404, "NotFound", True),
    "resource not served yet": (404, "", False),
    "method not allowed": (405, "MethodNotAllowed", True),
    "conflict": (409, "Conflict", False),
    "too large": (413, "", True),
    "invalid": (422, "Invalid", True),
    "too many requests": (429, "", False),
    "internal error": (500, "", False),
    "unreachable": (0, "Unreachable", False),
}


@pytest.mark.parametrize(("code", "reason", "permanent"), PERMANENCE.values(), ids=PERMANENCE.keys())
def test_permanent_errors_are_those_that_a_retry_cannot_fix(code: int, reason: str, permanent: bool) -> None:
    assert ApiError(code, reason, "").permanent is permanent


def test_background_tasks_do_not_wrap_an_api_error() -> None:
    async def run() -> None:
        async with background(asyncio.Event()):
            raise ApiError(500, "", "broken")

    with pytest.raises(ApiError, match="broken"):
        asyncio.run(run())


WRITES: dict[str, tuple[Call, tuple[str, str, str, Any]]] = {
    "create": (
        lambda client: client.create(KEY, {"a": 1}),
        ("POST", f"{PATH}?fieldManager=memcached-operator", "application/json", {"a": 1}),
    ),
    "apply": (
        lambda client: client.apply(KEY, {"a": 1}),
        ("PATCH", f"{PATH}/cache?fieldManager=memcached-operator&force=true", "application/apply-patch+yaml", {"a": 1}),
    ),
    "status": (
        lambda client: client.patch(KEY, {"status": {}}, subresource="status"),
        (
            "PATCH",
            f"{PATH}/cache/status?fieldManager=memcached-operator",
            "application/merge-patch+json",
            {"status": {}},
        ),
    ),
    "delete": (
        lambda client: client.delete(KEY, "u", "7"),
        (
            "DELETE",
            f"{PATH}/cache",
            "application/json",
            {
                "kind": "DeleteOptions",
                "apiVersion": "v1",
                "propagationPolicy": "Background",
                "preconditions": {"uid": "u", "resourceVersion": "7"},
            },
        ),
    ),
}


@pytest.mark.parametrize(("call", "expected"), WRITES.values(), ids=WRITES.keys())
def test_write_request(call: Call, expected: tuple[str, str, str, Any]) -> None:
    script = Script([response(200)])
    call_scripted(script, call)
    (request,) = script.requests
    sent = request.method, request.path_qs, request.content_type, json.loads(script.bodies[0])
    assert sent == expected
    assert request.headers["User-Agent"] == "memcached-operator"


def test_get_of_a_missing_object_returns_none() -> None:
    assert call_scripted(Script([response(404, STATUS)]), lambda client: client.get(KEY)) is None


def test_get_of_a_forbidden_object_raises() -> None:
    assert error_of(Script([response(403, STATUS)]), lambda client: client.get(KEY)).code == 403


META = {"name": "cache", "resourceVersion": "8"}
LISTS = {
    "one namespace": ("test", "a=b", f"{PATH}?labelSelector=a%3Db&limit=16"),
    "all namespaces": (None, "", "/apis/apps/v1/deployments?limit=16"),
}


@pytest.mark.parametrize(("namespace", "selector", "path"), LISTS.values(), ids=LISTS.keys())
def test_list_adds_api_version_and_kind_to_items(namespace: str | None, selector: str, path: str) -> None:
    found = {"metadata": {"resourceVersion": "9"}, "items": [{"metadata": META}]}
    script = Script([response(200, json.dumps(found))])
    items, version = call_scripted(script, lambda client: listed(client, DEPLOYMENTS, namespace, selector))
    assert (list(items), version) == ([{"metadata": META, "apiVersion": "apps/v1", "kind": "Deployment"}], "9")
    assert script.requests[0].path_qs == path


def test_list_with_null_items_is_empty() -> None:
    script = Script([response(200, '{"metadata": {"resourceVersion": "9"}, "items": null}')])
    items, version = call_scripted(script, lambda client: listed(client, DEPLOYMENTS, None))
    assert (list(items), version) == ([], "9")


MALFORMED = {
    "not a list": "[]",
    "no resourceVersion": '{"metadata": {}, "items": []}',
    "resourceVersion not a number": '{"metadata": {"resourceVersion": ""}, "items": []}',
    "items not objects": '{"metadata": {"resourceVersion": "9"}, "items": [5]}',
    "null items": '{"metadata": {"resourceVersion": "9"}, "items": [null]}',
    "items without a name": '{"metadata": {"resourceVersion": "9"}, "items": [{"metadata": {"resourceVersion": "8"}}]}',
    "items without a version": '{"metadata": {"resourceVersion": "9"}, "items": [{"metadata": {"name": "cache"}}]}',
}


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_list_is_a_transient_error(text: str) -> None:
    async def read(client: ApiClient) -> None:
        items, _ = await listed(client, DEPLOYMENTS, None)
        list(items)

    error = error_of(Script([response(200, text)]), read)
    assert (error.code, error.reason, error.permanent) == (200, "InvalidResponse", False)
