"""HTTP/1.1 requests and responses, as RFC 9112 defines them: only what GET and HEAD without a body need."""

import re
from http import HTTPStatus
from typing import Final, NamedTuple

MAX_HEAD: Final = 2**13
"""Bytes of the head of a request."""
END_OF_HEAD: Final = b"\r\n\r\n"
PLAIN: Final = "text/plain; charset=utf-8"

_REQUEST_LINE: Final = re.compile(r"([A-Z]+) ([!-~]+) HTTP/1\.([01])")
_HEADER: Final = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\0\r\n]*)")


class HttpRequest(NamedTuple):
    """The head of a request. `keep_alive`: whether the connection stays open after the response."""

    method: str
    path: str
    keep_alive: bool


class HttpResponse(NamedTuple):
    """A response. `content_type` describes the body."""

    status: HTTPStatus
    content_type: str
    body: bytes


def text(status: HTTPStatus, sentence: str) -> HttpResponse:
    """A response with one line of text."""
    return HttpResponse(status, PLAIN, f"{sentence}\n".encode())


def parse_head(head: bytes) -> HttpRequest:
    """Parse the head of a request, without the empty line at its end. Raises ValueError if it is not valid HTTP/1.

    After a request with a body, the connection is closed: the agent does not read bodies.
    """
    first, *lines = head.decode("latin-1").split("\r\n")
    request_line = _REQUEST_LINE.fullmatch(first)
    fields = [_HEADER.fullmatch(line) for line in lines]
    if request_line is None:
        raise ValueError("the request line is not valid HTTP/1.1")
    if None in fields:
        raise ValueError("a header is not valid HTTP/1.1")
    headers = {field[1].lower(): field[2].strip() for field in fields if field}
    method, target, minor = request_line.groups()
    if minor == "1" and "host" not in headers:
        raise ValueError("the header Host is missing")
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    closes = minor == "0" or "close" in headers.get("connection", "").lower()
    return HttpRequest(method, _path(target), not closes and not has_body)


def encode(response: HttpResponse, *, with_body: bool, keep_alive: bool) -> bytes:
    """The bytes of a response. Without its body, as for HEAD, Content-Length is the same."""
    status = response.status
    lines = [
        f"HTTP/1.1 {status.value} {status.phrase}",
        f"Content-Type: {response.content_type}",
        f"Content-Length: {len(response.body)}",
    ]
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        lines.append("Allow: GET, HEAD")
    if not keep_alive:
        lines.append("Connection: close")
    head = "\r\n".join([*lines, "", ""]).encode()
    return head + response.body if with_body else head


def _path(target: str) -> str:
    """The path of a request target, which may be a whole URL."""
    if target.startswith("http://"):
        target = "/" + target.removeprefix("http://").partition("/")[2]
    return target.partition("?")[0]
