"""A thin client for the API server. Every failed request raises an ApiError."""

import asyncio
import random
import sys
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, TypeVar

import aiohttp
import msgspec

from memcached_operator import metrics
from memcached_operator.kube import bodies, texts
from memcached_operator.kube.config import Config
from memcached_operator.kube.credentials import ConfigError
from memcached_operator.kube.resource import Key, Object, Resource

T = TypeVar("T")

FIELD_MANAGER = "memcached-operator"
"""The field manager of the operator in managedFields."""

REQUEST_TIMEOUT = aiohttp.ClientTimeout(total=30, sock_connect=10)
"""Seconds for one request. The API server's own timeout is 60 s, longer than the lease duration."""

WATCH_TIMEOUT_RANGE = (300, 600)
"""Bounds of the random timeout of a watch, in seconds, as in client-go. So watches move to other API servers over time,
but not all at once."""

WATCH_IDLE_TIMEOUT = 150.0
"""Seconds without data after which a watch is closed. The API server sends a bookmark about every minute."""

MIN_PAGE, MAX_OBJECTS = 16, 128
"""Objects in the first page of a list, and in a later one of small objects. The API server holds a whole page, whatever
its size: 128 MiB of the largest objects."""

PAGES, LISTS = 2, 16
"""Maximum pages that are read at the same time, and first pages that are requested, which are small. So lists that
hang, such as those of one resource in many namespaces, delay the others by at most REQUEST_TIMEOUT for each 16."""

MAX_ERROR = 2**16
"""Bytes that are read of an error response of a watch."""

MAX_RETRY_AFTER = 300.0
"""Maximum seconds of a Retry-After that count: the longest delay between two tries of the queue, by default."""

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


@dataclass(eq=False)  # not frozen: context managers assign __traceback__
class ApiError(Exception):
    """An error response of the API server. Code 0 means that there was no response."""

    code: int
    reason: str
    message: str
    """As received: webhooks write parts of it, in any number of lines."""
    retry_after: float | None = None
    causes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The message for statuses and logs: on one line, and at most texts.MAX_TEXT characters."""
        return texts.clause(self.message)

    @property
    def permanent(self) -> bool:
        """True if a retry of the same request fails until an object or a permission changes."""
        return self.code in (400, 403, 405, 413, 422) or (self.code == 404 and bool(self.reason))

    @property
    def namespace_terminating(self) -> bool:
        """True if the namespace is being deleted: no object can be created in it."""
        return "NamespaceTerminating" in self.causes


class Leadership(Protocol):
    """What decides whether this process may write. Another process may write after it."""

    def is_leader(self) -> bool:
        """Whether this process may write now."""
        ...

    def keep_lease(self) -> None:
        """Called after a write whose response is not read: the API server may execute it later."""
        ...


@dataclass(eq=False)
class _Write:
    """One write. `begin`: called before it is sent. `answered`: its response has been read."""

    begin: Callable[["_Write"], None]
    answered: bool = False

    def send(self) -> None:
        """Called when its connection is open. Raises ApiError without leadership."""
        self.begin(self)


class _Writes:
    """The writes of a process that leads."""

    def __init__(self, leadership: Leadership) -> None:
        self._leadership = leadership
        self._ends = False
        self._sent: set[_Write] = set()
        self._answered = asyncio.Event()
        self._answered.set()

    @asynccontextmanager
    async def one(self) -> AsyncGenerator[_Write]:
        """One write. Raises ApiError without leadership."""
        if self._ends:
            await asyncio.Event().wait()  # until it is cancelled
        self._check()
        write, is_read = _Write(self._begin), True
        try:
            yield write
        except asyncio.CancelledError:
            is_read = False
            raise
        finally:
            if write in self._sent and not write.answered and (self._ends or not is_read):
                self._leadership.keep_lease()
            self._sent.discard(write)
            if not self._sent:
                self._answered.set()

    def _begin(self, write: _Write) -> None:
        self._check()
        self._sent.add(write)
        self._answered.clear()

    def _check(self) -> None:
        if self._ends or not self._leadership.is_leader():
            raise ApiError(0, "NotLeader", "not the leader: the write is not sent")

    async def settle(self, seconds: float) -> None:
        """Send no further write, and wait for the responses to those that have been sent, at most `seconds`."""
        self._ends = True
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._answered.wait()


@dataclass(frozen=True)
class Page:
    """A part of a list: `count` objects, which are decoded lazily, in a response of `bytes` bytes.

    `version`: the resourceVersion of the list. `token`: for the next page; empty if there is none.
    """

    items: Iterator[Object]
    count: int
    bytes: int
    version: str
    token: str = ""


class ApiClient:
    """Requests over one pooled session. All methods raise ApiError.

    `leadership` is asked before each write, and again when its connection is open.
    """

    def __init__(self, config: Config, session: aiohttp.ClientSession, leadership: Leadership | None = None) -> None:
        self._server = config.server
        self._session = session
        self._writes = None if leadership is None else _Writes(leadership)
        self._lists, self._later = asyncio.Semaphore(LISTS), asyncio.Semaphore(PAGES)
        self._pages = asyncio.Semaphore(PAGES)
        self._large_line = asyncio.Lock()

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = JSON,
        params: Mapping[str, str] | None = None,
    ) -> Object:
        """Send one request and return the decoded response."""
        try:
            payload = await self._send(method, path, body, content_type, params)
        except bodies.TooLargeError:
            raise _too_large(f"{method} {path}") from None
        return _decode(payload, _OBJECTS, f"{method} {path}")

    async def _send(
        self,
        method: str,
        path: str,
        body: Any,
        content_type: str,
        params: Mapping[str, str] | None,
        limit: int = bodies.MAX_BODY,
        reading: AbstractAsyncContextManager[object] | None = None,
    ) -> bytes:
        """Send one request. `limit`: maximum bytes of the response. Raises TooLargeError and ApiError.

        `reading`: held while the response is read, and not while it is awaited.
        """
        data = None if body is None else msgspec.json.encode(body)
        writing = nullcontext() if method == "GET" or self._writes is None else self._writes.one()
        try:
            async with (
                writing as write,
                self._session.request(
                    method,
                    self._server + path,
                    data=data,
                    params=params,
                    headers={"Content-Type": content_type} if data else None,
                    timeout=REQUEST_TIMEOUT,
                    trace_request_ctx=write and write.send,
                ) as response,
            ):
                async with reading or nullcontext():
                    payload = await bodies.read(response.content.iter_any(), limit)
                if write is not None:
                    write.answered = True
        except (aiohttp.ClientError, ConfigError, OSError) as error:
            metrics.REQUESTS.labels("<error>", method).inc()
            raise connection_error(error) from error
        metrics.REQUESTS.labels(str(response.status), method).inc()
        if response.status >= 400:
            raise api_error(response.status, response.headers, payload)
        return payload

    async def settle(self, seconds: float) -> None:
        """End the writes of a leader: wait for the responses to those that have been sent, at most `seconds`.

        A later write waits until it is cancelled.
        """
        if self._writes is not None:
            await self._writes.settle(seconds)

    async def list(
        self, resource: Resource, namespace: str | None, selector: str = "", *, fields: str = "", limit: int = 0
    ) -> AsyncGenerator[Page]:
        """Yield the objects of a resource (in one namespace, or in all) in pages, of which each has the same version.

        `fields`: a field selector. `limit`: maximum number of objects; 0: all. A page is as large as MAX_PAGE allows,
        and its objects are decoded lazily: those of all namespaces at once would not fit into memory.
        """
        size, token, left = MIN_PAGE, "", limit or sys.maxsize
        while left > 0:
            options = {"labelSelector": selector, "fieldSelector": fields, "continue": token}
            params = {name: value for name, value in options.items() if value}
            try:
                page = await self._page(resource, namespace, params, min(size, left))
            except bodies.TooLargeError:
                if size == 1:
                    raise _too_large(f"GET {resource.path(namespace)}") from None
                size = 1
                continue
            size, left, token = _next_size(size, page.bytes), left - page.count, page.token
            yield page
            if not token:
                return

    async def _page(self, resource: Resource, namespace: str | None, params: Mapping[str, str], size: int) -> Page:
        """One page of a list. Raises TooLargeError if it has more than one object, and more bytes than MAX_PAGE."""
        path = resource.path(namespace)
        request = f"GET {path}"
        limit = bodies.MAX_PAGE if size > 1 else bodies.MAX_BODY
        # A later page follows soon after one that was answered.
        requesting = self._lists if size <= MIN_PAGE else self._later
        async with requesting:
            payload = await self._send("GET", path, None, JSON, {**params, "limit": str(size)}, limit, self._pages)
        response = _decode(payload, _LISTS, request)
        type_meta = {"apiVersion": resource.api_version, "kind": resource.kind}
        encoded_items = response.items or ()
        items = (type_meta | validated(_decode(item, _OBJECTS, request)) for item in encoded_items)
        meta = response.metadata
        return Page(items, len(encoded_items), len(payload), meta.resource_version, meta.continue_ or "")

    async def watch(
        self, resource: Resource, namespace: str | None, selector: str, version: str
    ) -> AsyncGenerator[tuple[str, Object]]:
        """Yield type and object of every event after `version`, until the API server ends the watch."""
        params = {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": version}
        params["timeoutSeconds"] = str(random.randint(*WATCH_TIMEOUT_RANGE))  # noqa: S311 - jitter, not a secret
        if selector:
            params["labelSelector"] = selector
        url = self._server + resource.path(namespace)
        timeout = aiohttp.ClientTimeout(sock_connect=10, sock_read=WATCH_IDLE_TIMEOUT)
        try:
            async with self._session.get(url, params=params, timeout=timeout) as response:
                metrics.REQUESTS.labels(str(response.status), "GET").inc()
                if response.status >= 400:
                    raise api_error(response.status, response.headers, await response.content.read(MAX_ERROR))
                async for line in bodies.lines(response.content.iter_any(), self._large_line):
                    event = _event(line)
                    del line
                    yield event
                    del event
        except bodies.TooLargeError as error:
            raise ApiError(410, "Oversized", f"{resource.plural}: {error}") from None  # list it again
        except (aiohttp.ClientError, ConfigError, OSError) as error:
            raise connection_error(error) from error

    async def get(self, key: Key) -> Object | None:
        """The object, or None if it does not exist."""
        try:
            return await self.request("GET", key.resource.path(key.namespace, key.name))
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    async def create(self, key: Key, obj: Object) -> Object:
        """Create an object by POST, which never overwrites an existing one."""
        return await self.request("POST", key.resource.path(key.namespace), obj, params={"fieldManager": FIELD_MANAGER})

    async def apply(self, key: Key, obj: Object, *, dry_run: bool = False) -> Object:
        """Server-side apply with force: the operator owns exactly the fields of `obj`. `dry_run`: store nothing."""
        params = {"fieldManager": FIELD_MANAGER, "force": "true", **({"dryRun": "All"} if dry_run else {})}
        return await self.request("PATCH", key.resource.path(key.namespace, key.name), obj, APPLY_PATCH, params=params)

    async def patch(self, key: Key, patch: Any, content_type: str = MERGE_PATCH, subresource: str = "") -> Object:
        """Patch an object or one of its subresources."""
        path = key.resource.path(key.namespace, key.name, subresource)
        return await self.request("PATCH", path, patch, content_type, params={"fieldManager": FIELD_MANAGER})

    async def delete(self, key: Key, uid: str, resource_version: str) -> Object:
        """Delete this object at this resourceVersion; its dependents are deleted in the background.

        Returns the object if it is deleted later, such as a pod, otherwise a Status.
        """
        body = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": "Background",
            "preconditions": {"uid": uid, "resourceVersion": resource_version},
        }
        return await self.request("DELETE", key.resource.path(key.namespace, key.name), body)


def _decode(payload: bytes, decoder: msgspec.json.Decoder[T], request: str) -> T:
    try:
        return decoder.decode(payload)
    except msgspec.MsgspecError as error:
        raise ApiError(200, "InvalidResponse", f"the response to {request} is not valid JSON: {error}") from error


def validated(obj: Object, bookmark: bool = False) -> Object:
    """The object, if it has the required metadata: resourceVersion and name. Raises ApiError otherwise."""
    try:
        msgspec.convert(obj, _Versioned if bookmark else _Named)
    except msgspec.ValidationError as error:
        raise ApiError(200, "InvalidResponse", f"the API server sent an invalid object: {error}") from error
    return obj


def api_error(code: int, headers: Mapping[str, str], payload: bytes) -> ApiError:
    """Convert a response with a status of 400 or above to an ApiError. The body may be a Status or any other text."""
    try:
        status = msgspec.json.decode(payload, type=_Status)
    except msgspec.MsgspecError:
        status = _Status(message=payload[:200].decode(errors="replace").strip())
    message = status.message or f"the API server responded with status {code}"
    causes = tuple(cause.reason for cause in (status.details and status.details.causes) or ())
    return ApiError(code, status.reason, message, _retry_after(headers.get("Retry-After")), causes)


def connection_error(error: Exception) -> ApiError:
    """Convert an error without a response to an ApiError. A ConfigError means that there are no credentials."""
    if isinstance(error, ConfigError):
        return ApiError(0, "NoCredentials", str(error))
    return ApiError(0, "Unreachable", f"the API server cannot be reached: {describe(error)}")


def _event(line: bytes) -> tuple[str, Object]:
    try:
        event = _EVENTS.decode(line)
    except msgspec.MsgspecError as error:
        raise ApiError(200, "InvalidResponse", f"the API server sent an invalid watch event: {error}") from error
    if event.type == "ERROR":
        status = event.object
        code = status.get("code")
        raise ApiError(
            code if isinstance(code, int) and 400 <= code < 600 else 500,  # it is the label of a metric
            str(status.get("reason") or ""),
            str(status.get("message") or "no reason given"),
        )
    return event.type, validated(event.object, bookmark=event.type == "BOOKMARK")


def _too_large(request: str) -> ApiError:
    return ApiError(200, "TooLarge", f"the response to {request} is longer than {bodies.MAX_BODY} bytes")


def _next_size(size: int, length: int) -> int:
    """The number of objects of the next page. `length`: the bytes of the last one, which had `size` objects."""
    if length > bodies.MAX_PAGE // 2:
        return max(1, size // 2)
    return min(MAX_OBJECTS, size * 2) if length < bodies.MAX_PAGE // 8 else size


def describe(error: BaseException) -> str:
    """A message for any error, even one without a message of its own such as a TimeoutError."""
    if isinstance(error, asyncio.TimeoutError):
        return "timed out"
    return str(error) or type(error).__name__


def _retry_after(text: str | None) -> float | None:
    return min(float(text), MAX_RETRY_AFTER) if text and text.isdecimal() else None


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


class _VersionMeta(msgspec.Struct, rename="camel"):
    resource_version: Annotated[str, msgspec.Meta(pattern="^[0-9]{1,20}$")]


class _NamedMeta(_VersionMeta):
    name: str


class _Versioned(msgspec.Struct):
    metadata: _VersionMeta


class _Named(msgspec.Struct):
    metadata: _NamedMeta


class _ListMeta(_VersionMeta):
    continue_: str | None = msgspec.field(default=None, name="continue")


class _List(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


_OBJECTS = msgspec.json.Decoder(Object)
_EVENTS = msgspec.json.Decoder(_Event)
_LISTS = msgspec.json.Decoder(_List)
