import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from memcached_operator.kube.client import ApiError, Client, api_error, describe
from memcached_operator.kube.resource import DEPLOYMENTS, Key
from memcached_operator.runtime.tasks import background
from unit.servers import Script, answer, connection, serving

KEY = Key(DEPLOYMENTS, "test", "cache")
PATH = "/apis/apps/v1/namespaces/test/deployments"
Call = Callable[[Client], Awaitable[Any]]


def called(script: Script, call: Call) -> Any:
    """Make a call against a scripted API server."""

    async def run() -> Any:
        async with serving(script) as there, there.session() as session:
            return await call(Client(there, session))

    return asyncio.run(run())


def refusal(script: Script, call: Call = lambda client: client.request("GET", "/x")) -> ApiError:
    """The error of a call."""
    with pytest.raises(ApiError) as caught:
        called(script, call)
    return caught.value


STATUS = json.dumps({"kind": "Status", "message": 'services "x" is forbidden', "reason": "Forbidden", "code": 403})
NOT_JSON = "the response to GET /x is not valid JSON"
ANSWERS = {
    "a Status": (answer(403, STATUS), (403, "Forbidden", 'services "x" is forbidden', None)),
    "a Status and when to retry": (
        answer(429, STATUS, Retry_After="3"),
        (429, "Forbidden", 'services "x" is forbidden', 3.0),
    ),
    "a date to retry at": (
        answer(503, "later", Retry_After="Fri, 31 Dec 1999 23:59:59 GMT"),
        (503, "", "later", None),
    ),
    "an error page": (answer(502, "<h1>Bad gateway</h1>\n"), (502, "", "<h1>Bad gateway</h1>", None)),
    "a long error page": (answer(502, "x" * 1000), (502, "", "x" * 200, None)),
    "nothing": (answer(500, ""), (500, "", "the API server responded with status 500", None)),
    "JSON of another shape": (answer(500, '{"message": 5}'), (500, "", '{"message": 5}', None)),
    "success that is no JSON": (
        answer(200, "<h1>Log in</h1>"),
        (
            200,
            "InvalidResponse",
            f"{NOT_JSON}: JSON is malformed: invalid character (byte 0)",
            None,
        ),
    ),
}


@pytest.mark.parametrize(("given", "expected"), ANSWERS.values(), ids=ANSWERS.keys())
def test_an_answer_that_is_an_error(given: Any, expected: tuple[Any, ...]) -> None:
    error = refusal(Script([given]))
    assert (error.code, error.reason, error.message, error.retry_after) == expected
    assert str(error) == error.message


def test_bytes_that_are_no_text_are_shown_as_far_as_they_can_be() -> None:
    assert api_error(500, {}, b"\xff no").message == "\N{REPLACEMENT CHARACTER} no"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_one_that_may_not_write_reads_on_and_sends_no_write(method: str) -> None:
    script = Script([answer()])

    async def run() -> None:
        async with serving(script) as there, there.session() as session:
            client = Client(there, session, may_write=lambda: False)
            await client.request("GET", "/x")
            await client.request(method, "/x", {})

    with pytest.raises(ApiError, match="not the leader: the write is not sent") as caught:
        asyncio.run(run())
    assert (caught.value.code, caught.value.permanent) == (0, False)
    assert [request.method for request in script.requests] == ["GET"]


def test_a_server_that_cannot_be_reached() -> None:
    async def run() -> None:
        async with serving(Script([answer()])) as there:
            pass
        gone = connection(there.server)
        async with gone.session() as session:
            await Client(gone, session).request("GET", "/x")

    with pytest.raises(ApiError, match="the API server cannot be reached: Cannot connect to host") as caught:
        asyncio.run(run())
    assert (caught.value.code, caught.value.permanent) == (0, False)


def test_a_timeout_has_a_text() -> None:
    assert describe(TimeoutError()) == "timed out"
    assert describe(OSError()) == "OSError"
    assert describe(OSError("disk full")) == "disk full"


REFUSED = {
    "bad request": (400, "", True),
    "unauthorized": (401, "Unauthorized", False),
    "forbidden": (403, "Forbidden", True),
    "no such resource": (404, "NotFound", True),
    "not served yet": (404, "", False),
    "conflict": (409, "Conflict", False),
    "too large": (413, "", True),
    "invalid": (422, "Invalid", True),
    "too many requests": (429, "", False),
    "broken": (500, "", False),
    "unreachable": (0, "Unreachable", False),
}


@pytest.mark.parametrize(("code", "reason", "permanent"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_is_what_will_not_succeed_by_itself(code: int, reason: str, permanent: bool) -> None:
    assert ApiError(code, reason, "").permanent is permanent


def test_an_error_passes_through_what_runs_in_the_background() -> None:
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
        (
            "PATCH",
            f"{PATH}/cache?fieldManager=memcached-operator&force=true",
            "application/apply-patch+yaml",
            {"a": 1},
        ),
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
def test_a_write(call: Call, expected: tuple[str, str, str, Any]) -> None:
    script = Script([answer(200)])
    called(script, call)
    (request,) = script.requests
    sent = request.method, request.path_qs, request.content_type, json.loads(script.bodies[0])
    assert sent == expected
    assert request.headers["User-Agent"] == "memcached-operator"


def test_an_object_that_is_not_there_is_none() -> None:
    assert called(Script([answer(404, STATUS)]), lambda client: client.get(KEY)) is None


def test_an_object_that_may_not_be_read_is_an_error() -> None:
    assert refusal(Script([answer(403, STATUS)]), lambda client: client.get(KEY)).code == 403


META = {"name": "cache", "resourceVersion": "8"}
LISTS = {
    "of one namespace": ("test", "a=b", f"{PATH}?labelSelector=a%3Db"),
    "of all": (None, "", "/apis/apps/v1/deployments"),
}


@pytest.mark.parametrize(("namespace", "selector", "path"), LISTS.values(), ids=LISTS.keys())
def test_a_list_fills_in_what_its_items_lack(namespace: str | None, selector: str, path: str) -> None:
    listed = {"metadata": {"resourceVersion": "9"}, "items": [{"metadata": META}]}
    script = Script([answer(200, json.dumps(listed))])
    items, version = called(script, lambda client: client.list(DEPLOYMENTS, namespace, selector))
    assert (list(items), version) == (
        [{"metadata": META, "apiVersion": "apps/v1", "kind": "Deployment"}],
        "9",
    )
    assert script.requests[0].path_qs == path


def test_a_list_without_items_is_empty() -> None:
    script = Script([answer(200, '{"metadata": {"resourceVersion": "9"}, "items": null}')])
    items, version = called(script, lambda client: client.list(DEPLOYMENTS, None))
    assert (list(items), version) == ([], "9")


GARBLED = {
    "no list": "[]",
    "no version": '{"metadata": {}, "items": []}',
    "a version that is no number": '{"metadata": {"resourceVersion": ""}, "items": []}',
    "items that are no objects": '{"metadata": {"resourceVersion": "9"}, "items": [5]}',
    "items that are nothing": '{"metadata": {"resourceVersion": "9"}, "items": [null]}',
    "items without a name": '{"metadata": {"resourceVersion": "9"}, "items": [{"metadata": {"resourceVersion": "8"}}]}',
    "items without a version": '{"metadata": {"resourceVersion": "9"}, "items": [{"metadata": {"name": "cache"}}]}',
}


@pytest.mark.parametrize("text", GARBLED.values(), ids=GARBLED.keys())
def test_a_list_that_cannot_be_worked_with_is_an_error(text: str) -> None:
    async def read(client: Client) -> None:
        items, _ = await client.list(DEPLOYMENTS, None)
        list(items)

    error = refusal(Script([answer(200, text)]), read)
    assert (error.code, error.reason, error.permanent) == (200, "InvalidResponse", False)
