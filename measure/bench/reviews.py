"""The API server's side of admission: reviews on one connection, one after the other, each with its latency.

As a program, it prints the latency of each review, in seconds (JSON):

    python -m bench.reviews PORT CA-FILE mutate|validate COUNT [PERIOD]

COUNT 0: until the end of standard input. PERIOD: seconds between two reviews, by default 0.
"""

import select
import socket
import ssl
import sys
import time
from collections.abc import Iterator

import msgspec

from bench.load import memcached
from memcached_api.memcached.types import MEMCACHED
from memcached_operator.kube.resource import Object
from memcached_webhooks.admission import path_of

HOST = "localhost"
PATHS = {verb: path_of(verb, MEMCACHED) for verb in ("mutate", "validate")}


def review(kind: str) -> bytes:
    """A review of a new object, as the API server sends it. `mutate` receives it as the user wrote it."""
    obj = memcached("storm", "cache-00001")
    if kind == "mutate":
        obj["spec"] = {"size": 3}
    fields: Object = {"f:spec": {".": {}, "f:size": {}}}
    manager = {"manager": "kubectl", "operation": "Update", "apiVersion": obj["apiVersion"], "fieldsType": "FieldsV1"}
    obj["metadata"] |= {
        "uid": "8a7f1c1e-53cb-4f0b-9d5e-0d1f6a3c9b11",
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [{**manager, "time": "2026-01-01T00:00:00Z", "fieldsV1": fields}],
    }
    return msgspec.json.encode(_review(obj))


def _review(obj: Object) -> Object:
    kind = {"group": "cache.example.com", "version": "v1", "kind": "Memcached"}
    resource = {"group": "cache.example.com", "version": "v1", "resource": "memcacheds"}
    user = {"username": "admin", "groups": ["system:masters", "system:authenticated"]}
    options = {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "kubectl"}
    request = {
        "uid": "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9",
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": obj["metadata"]["name"],
        "namespace": obj["metadata"]["namespace"],
        "operation": "CREATE",
        "userInfo": user,
        "object": obj,
        "oldObject": None,
        "dryRun": False,
        "options": options,
    }
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


def timed(port: int, ca: str, kind: str) -> Iterator[float]:
    """Send reviews until closed; yields the latency of each, in seconds. Raises RuntimeError if one is not allowed."""
    body = review(kind)
    head = f"POST {PATHS[kind]}?timeout=5s HTTP/1.1\r\nHost: {HOST}:{port}\r\nContent-Type: application/json\r\n"
    message = f"{head}User-Agent: kube-apiserver-admission\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    context = ssl.create_default_context(cafile=ca)
    with socket.create_connection(("127.0.0.1", port)) as plain:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with context.wrap_socket(plain, server_hostname=HOST) as connection:
            while True:
                started = time.perf_counter()
                connection.sendall(message)
                response = _read_response(connection)
                yield time.perf_counter() - started
                if b'"allowed":true' not in response:
                    raise RuntimeError(f"the review was not allowed: {response[:500]!r}")


def _read_response(connection: ssl.SSLSocket) -> bytes:
    """Read one complete response."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(65536)
    head, _, body = received.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65536)
    return body


def main(port: str, ca: str, kind: str, count: str, period: str = "0") -> None:
    """Send the reviews, then print the latencies."""
    latencies: list[float] = []
    for seconds in timed(int(port), ca, kind):
        latencies.append(seconds)
        if len(latencies) == int(count) or (count == "0" and select.select([sys.stdin], [], [], 0)[0]):
            break
        if float(period):
            time.sleep(float(period))
    sys.stdout.buffer.write(msgspec.json.encode(latencies))


if __name__ == "__main__":
    main(*sys.argv[1:])
