"""HTTP requests and responses."""

from http import HTTPStatus

import pytest

from memcached_agent.web.messages import PLAIN, HttpRequest, HttpResponse, encode, parse_head

HOST = b"\r\nHost: a"
HEADS = {
    b"GET /metrics HTTP/1.1" + HOST: HttpRequest("GET", "/metrics", keep_alive=True),
    b"HEAD / HTTP/1.1" + HOST: HttpRequest("HEAD", "/", keep_alive=True),
    b"GET /metrics?a=b HTTP/1.1" + HOST: HttpRequest("GET", "/metrics", keep_alive=True),
    b"GET http://a:9150/metrics?x HTTP/1.1" + HOST: HttpRequest("GET", "/metrics", keep_alive=True),
    b"GET http://a HTTP/1.1" + HOST: HttpRequest("GET", "/", keep_alive=True),
    b"GET /m HTTP/1.0": HttpRequest("GET", "/m", keep_alive=False),
    b"GET /m HTTP/1.1\r\nhost:a\r\nCONNECTION: Close": HttpRequest("GET", "/m", keep_alive=False),
    b"GET /m HTTP/1.1" + HOST + b"\r\nConnection: keep-alive": HttpRequest("GET", "/m", keep_alive=True),
    b"POST /m HTTP/1.1" + HOST + b"\r\nContent-Length: 0": HttpRequest("POST", "/m", keep_alive=True),
    b"POST /m HTTP/1.1" + HOST + b"\r\nContent-Length: 1": HttpRequest("POST", "/m", keep_alive=False),
    b"POST /m HTTP/1.1" + HOST + b"\r\nTransfer-Encoding: chunked": HttpRequest("POST", "/m", keep_alive=False),
    b"GET /m HTTP/1.1" + HOST + b"\r\nX-A: \xff, \t\r\nEmpty:": HttpRequest("GET", "/m", keep_alive=True),
}


@pytest.mark.parametrize(("head", "expected"), HEADS.items())
def test_valid_requests(head: bytes, expected: HttpRequest) -> None:
    assert parse_head(head) == expected


INVALID = [
    b"",
    b"GET /",
    b"GET / HTTP/1.1",
    b"GET / HTTP/2.0" + HOST,
    b"GET  / HTTP/1.1" + HOST,
    b"get / HTTP/1.1" + HOST,
    b"GET /\x00 HTTP/1.1" + HOST,
    b"GET / HTTP/1.1" + HOST + b"\r\nno colon",
    b"GET / HTTP/1.1" + HOST + b"\r\nspace : x",
    b"GET / HTTP/1.1" + HOST + b"\r\n folded: x",
    b"GET / HTTP/1.1" + HOST + b"\r\n: x",
    b"GET / HTTP/1.1" + HOST + b"\nX: x",
    b"\x16\x03\x01\x02\x00\x01",
]


@pytest.mark.parametrize("head", INVALID)
def test_invalid_requests(head: bytes) -> None:
    with pytest.raises(ValueError, match=r"^(the request line|a header|the header Host) is (not valid|missing)"):
        parse_head(head)


def test_response() -> None:
    found = encode(HttpResponse(HTTPStatus.NOT_FOUND, PLAIN, b"abc"), with_body=True, keep_alive=True)
    assert found == (
        b"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 3\r\n\r\nabc"
    )


def test_response_without_body_has_the_same_length() -> None:
    found = encode(HttpResponse(HTTPStatus.OK, PLAIN, b"abc"), with_body=False, keep_alive=False)
    assert found.endswith(b"\r\nContent-Length: 3\r\nConnection: close\r\n\r\n")


def test_response_names_the_methods() -> None:
    found = encode(HttpResponse(HTTPStatus.METHOD_NOT_ALLOWED, PLAIN, b""), with_body=True, keep_alive=True)
    assert b"\r\nAllow: GET, HEAD\r\n" in found
