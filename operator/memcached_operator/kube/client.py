"""A thin client of the API server: one request, one answer, errors as values one can decide on."""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import aiohttp
import msgspec

from memcached_operator import metrics
from memcached_operator.kube.connection import Connection
from memcached_operator.kube.resource import Key, Object, Resource

T = TypeVar("T")

FIELD_MANAGER = "memcached-operator"
"""Under this name the operator's fields stand in every object's managedFields."""

REQUEST_TIMEOUT = aiohttp.ClientTimeout(total=30, sock_connect=10)
"""Seconds for one whole request. The API server gives up on its own after 60; by then the lease would be lost."""

WATCH_SECONDS = (300, 600)
"""Seconds after which the API server is asked to end a watch, by chance between these, as client-go has it: so that
watches move to other API servers in time, and not all at once."""

SILENCE = 150.0
"""Seconds without a word after which a watch is taken for dead: a bookmark comes about every minute."""

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


@dataclass(eq=False)  # not frozen: context managers assign the traceback of what passes through them
class ApiError(Exception):
    """The API server said no, or could not be reached (code 0)."""

    code: int
    reason: str
    message: str
    retry_after: float | None = None
    causes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.message

    @property
    def permanent(self) -> bool:
        """True where the same request will not succeed until somebody changes something."""
        return self.code in (400, 403, 405, 413, 422) or (self.code == 404 and bool(self.reason))

    @property
    def namespace_terminating(self) -> bool:
        """True where the namespace is being deleted, and all that is in it: nothing can be made there any more."""
        return "NamespaceTerminating" in self.causes


def _always() -> bool:
    return True


class Client:
    """Requests over one pooled session. All methods raise ApiError.

    `may_write` is asked right before each write is sent.
    """

    def __init__(
        self, connection: Connection, session: aiohttp.ClientSession, may_write: Callable[[], bool] = _always
    ) -> None:
        self._server = connection.server
        self._session = session
        self._may_write = may_write

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = JSON,
        params: Mapping[str, str] | None = None,
    ) -> Object:
        """Send one request and return the decoded answer."""
        payload = await self._send(method, path, body, content_type, params)
        return _decoded(payload, _OBJECTS, f"{method} {path}")

    async def _send(
        self, method: str, path: str, body: Any, content_type: str, params: Mapping[str, str] | None
    ) -> bytes:
        if method != "GET" and not self._may_write():
            raise ApiError(0, "NotLeading", "this process is not the leader any more: it may not write")
        data = None if body is None else msgspec.json.encode(body)
        try:
            async with self._session.request(
                method,
                self._server + path,
                data=data,
                params=params,
                headers={"Content-Type": content_type} if data else None,
                timeout=REQUEST_TIMEOUT,
            ) as response:
                payload = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            metrics.REQUESTS.labels("<error>", method).inc()
            raise ApiError(0, "Unreachable", f"the API server cannot be reached: {describe(error)}") from error
        metrics.REQUESTS.labels(str(response.status), method).inc()
        if response.status >= 400:
            raise api_error(response.status, response.headers, payload)
        return payload

    async def list(self, resource: Resource, namespace: str | None, selector: str = "") -> tuple[Iterator[Object], str]:
        """All objects of a resource (in one namespace, or in all) and the list's resourceVersion.

        Each object is decoded when its turn comes: thousands at once would be the most memory ever needed.
        """
        params = {"labelSelector": selector} if selector else {}
        asked = f"GET {resource.path(namespace)}"
        answer = _decoded(await self._send("GET", resource.path(namespace), None, JSON, params), _LISTS, asked)
        whose = {"apiVersion": resource.api_version, "kind": resource.kind}
        items = (whose | _known(_decoded(item, _OBJECTS, asked), _Live) for item in answer.items or ())
        return items, answer.metadata.resource_version

    async def watch(
        self, resource: Resource, namespace: str | None, selector: str, version: str
    ) -> AsyncGenerator[tuple[str, Object]]:
        """Type and object of every event after a version, until the API server ends the watch."""
        params = {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": version}
        params["timeoutSeconds"] = str(random.randint(*WATCH_SECONDS))  # noqa: S311 - jitter, not a secret
        if selector:
            params["labelSelector"] = selector
        url = self._server + resource.path(namespace)
        timeout = aiohttp.ClientTimeout(sock_connect=10, sock_read=SILENCE)
        try:
            async with self._session.get(url, params=params, timeout=timeout) as response:
                metrics.REQUESTS.labels(str(response.status), "GET").inc()
                if response.status >= 400:
                    raise api_error(response.status, response.headers, await response.read())
                async for line in _lines(response.content):
                    yield _event(line)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ApiError(0, "Unreachable", f"the API server cannot be reached: {describe(error)}") from error

    async def get(self, key: Key) -> Object | None:
        """The object, or None where there is none."""
        try:
            return await self.request("GET", key.resource.path(key.namespace, key.name))
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    async def create(self, key: Key, obj: Object) -> Object:
        """POST: it can only create, never overwrite."""
        return await self.request("POST", key.resource.path(key.namespace), obj, params={"fieldManager": FIELD_MANAGER})

    async def apply(self, key: Key, obj: Object) -> Object:
        """Server-side apply: takes exactly the fields that `obj` names."""
        params = {"fieldManager": FIELD_MANAGER, "force": "true"}
        return await self.request("PATCH", key.resource.path(key.namespace, key.name), obj, APPLY_PATCH, params=params)

    async def patch(self, key: Key, patch: Any, content_type: str = MERGE_PATCH, subresource: str = "") -> Object:
        """Patch an object or one of its subresources."""
        path = key.resource.path(key.namespace, key.name, subresource)
        return await self.request("PATCH", path, patch, content_type, params={"fieldManager": FIELD_MANAGER})

    async def delete(self, key: Key, uid: str, resource_version: str) -> None:
        """Delete this very object, in this very state; the children go in the background."""
        body = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": "Background",
            "preconditions": {"uid": uid, "resourceVersion": resource_version},
        }
        await self.request("DELETE", key.resource.path(key.namespace, key.name), body)


def _decoded(payload: bytes, decoder: msgspec.json.Decoder[T], asked: str) -> T:
    try:
        return decoder.decode(payload)
    except msgspec.MsgspecError as error:
        raise ApiError(200, "Garbled", f"the answer to {asked} is no JSON: {error}") from error


def _known(obj: Object, shape: type[msgspec.Struct]) -> Object:
    """An object that tells which one it is, and in which state. Raises ApiError for others: nobody can work with it."""
    try:
        msgspec.convert(obj, shape)
    except msgspec.ValidationError as error:
        raise ApiError(200, "Garbled", f"an object of the API server is none: {error}") from error
    return obj


def api_error(code: int, headers: Mapping[str, str], payload: bytes) -> ApiError:
    """Turn an answer of 400 and above into an ApiError; the body may be a Status, or anything."""
    try:
        status = msgspec.json.decode(payload, type=_Status)
    except msgspec.MsgspecError:
        status = _Status(message=payload[:200].decode(errors="replace").strip())
    message = status.message or f"the API server answered {code}"
    causes = tuple(cause.reason for cause in (status.details and status.details.causes) or ())
    return ApiError(code, status.reason, message, _retry_after(headers.get("Retry-After")), causes)


async def _lines(content: aiohttp.StreamReader) -> AsyncGenerator[bytes]:
    """Whole lines of any length; what comes after the last line end is no line."""
    rest = b""
    async for chunk in content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line


def _event(line: bytes) -> tuple[str, Object]:
    try:
        event = _EVENTS.decode(line)
    except msgspec.MsgspecError as error:
        raise ApiError(200, "Garbled", f"an event of a watch is none: {error}") from error
    if event.type == "ERROR":
        status = event.object
        raise ApiError(
            status.get("code") or 500, status.get("reason") or "", status.get("message") or "no reason given"
        )
    return event.type, _known(event.object, _Marked if event.type == "BOOKMARK" else _Live)


def describe(error: BaseException) -> str:
    """A sentence for an error whose own text may be empty (a TimeoutError's is)."""
    if isinstance(error, asyncio.TimeoutError):
        return "no answer in time"
    return str(error) or type(error).__name__


def _retry_after(text: str | None) -> float | None:
    return float(text) if text and text.isdecimal() else None


class _Cause(msgspec.Struct):
    reason: str = ""


class _Details(msgspec.Struct):
    causes: list[_Cause] | None = None


class _Status(msgspec.Struct):
    message: str = ""
    reason: str = ""
    details: _Details | None = None


class _Event(msgspec.Struct):
    type: str
    object: Object


class _Version(msgspec.Struct, rename="camel"):
    resource_version: Annotated[str, msgspec.Meta(pattern="^[0-9]{1,20}$")]


class _Identity(_Version):
    name: str


class _Marked(msgspec.Struct):
    metadata: _Version


class _Live(msgspec.Struct):
    metadata: _Identity


class _List(_Marked):
    items: list[msgspec.Raw] | None = None


_OBJECTS = msgspec.json.Decoder(Object)
_EVENTS = msgspec.json.Decoder(_Event)
_LISTS = msgspec.json.Decoder(_List)
