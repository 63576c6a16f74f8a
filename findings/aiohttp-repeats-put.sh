#!/usr/bin/env bash
# aiohttp's client sends a PUT or DELETE twice if the server closes the connection without an answer.
#
# Versions:   aiohttp 3.14.5.
# Guess:      An HTTP client without retry settings sends each request once, so a lost connection is always an
#             exception.
# Behaviour:  aiohttp sends methods that it considers idempotent once more. The caller sees only the second answer.
#             There is no setting per request.
# Matters:    A write to the Kubernetes API is conditional (resourceVersion, preconditions). If the API server
#             restarts after it has stored a PUT or DELETE, the repeated one is answered with 409 Conflict or 404, and
#             the operator believes that its write failed. A counter of requests, or a limit for them, sees half of
#             them. PATCH (apply) is not repeated.
#
# Output, seen on 2026-11-30:
#   aiohttp 3.14.5
#   GET    -> received 2 times, result: 200
#   PUT    -> received 2 times, result: 200
#   DELETE -> received 2 times, result: 200
#   PATCH  -> received 1 times, result: ServerDisconnectedError
#   POST   -> received 1 times, result: ServerDisconnectedError
#   As described: GET, PUT and DELETE are sent again without the caller's knowledge, PATCH and POST are not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export PYTHONPATH=$folder/packages
timeout 240 python3 -m pip install --quiet --disable-pip-version-check --no-compile --target packages aiohttp==3.14.5
cat >check.py <<'PYTHON'
import asyncio
import sys

import aiohttp

METHODS = ("GET", "PUT", "DELETE", "PATCH", "POST")


async def main() -> dict[str, tuple[int, str]]:
    received: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take one request; close the connection without an answer the first time, as a restarting server does."""
        head = await reader.readuntil(b"\r\n\r\n")
        received.append(head.split()[0].decode())
        if len(received) > 1:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/object"
    results = {}
    for method in METHODS:
        received.clear()
        async with aiohttp.ClientSession() as session:
            try:
                async with session.request(method, url) as response:
                    result = str(response.status)
            except aiohttp.ClientError as error:
                result = type(error).__name__
        results[method] = (len(received), result)
        print(f"{method:6} -> received {len(received)} times, result: {result}")
    return results


print("aiohttp", aiohttp.__version__)
results = asyncio.run(main())
once, twice = (1, "ServerDisconnectedError"), (2, "200")
if results != {"GET": twice, "PUT": twice, "DELETE": twice, "PATCH": once, "POST": once}:
    sys.exit("CHANGED: other methods are repeated.")
print("As described: GET, PUT and DELETE are sent again without the caller's knowledge, PATCH and POST are not.")
PYTHON
timeout 60 python3 check.py
