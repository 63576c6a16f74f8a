"""The response of /healthz: named checks, each of which returns a problem."""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus

from memcached_agent.web.messages import Response

Check = Callable[[], Awaitable[str]]
"""Returns a problem as one sentence, or an empty string."""


async def healthz(checks: Mapping[str, Check]) -> Response:
    """200 with `ok`, or 503 with one line for each failed check: its name and its problem."""
    problems = [f"{name}: {problem}\n" for name, check in checks.items() if (problem := await check())]
    status = HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK
    return Response(status, "text/plain; charset=utf-8", ("".join(problems) or "ok\n").encode())
