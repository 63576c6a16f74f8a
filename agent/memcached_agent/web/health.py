"""The responses for probes, and that of /healthz: named checks, each of which returns a problem."""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Final

from memcached_agent.web.messages import PLAIN, HttpResponse, text

INTERNAL_ERROR: Final = "internal error; see the log of the agent"
"""The problem of a part whose error has no sentence of its own."""

Check = Callable[[], Awaitable[str]]
"""Returns a problem as one sentence, or an empty string."""


async def healthz(checks: Mapping[str, Check]) -> HttpResponse:
    """200 with `ok`, or 503 with one line for each failed check: its name and its problem."""
    problems = [f"{name}: {problem}\n" for name, check in checks.items() if (problem := await check())]
    status = HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK
    return HttpResponse(status, PLAIN, ("".join(problems) or "ok\n").encode())


async def readyz(obstacle: Check) -> HttpResponse:
    """200 with `ok`, or 503 with the sentence that says why the pod is not ready."""
    problem = await obstacle()
    return text(HTTPStatus.SERVICE_UNAVAILABLE, problem) if problem else await serving()


async def serving() -> HttpResponse:
    """200 with `ok`: the response of /livez and, without annotations, of /readyz. They do not depend on memcached.

    Otherwise a memcached at its connection limit would lose its address and all of its clients.
    """
    return HttpResponse(HTTPStatus.OK, PLAIN, b"ok\n")
