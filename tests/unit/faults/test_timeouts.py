"""A wait that reports more than a timeout stays a timeout, which does not show that a mutant was detected."""

import asyncio
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from faults import issuing
from faults.campaigns import soak
from faults.esr import Reference, wait_for_state
from faults.sandbox import TimedOutError
from memcached_operator.kube.client import ApiError
from memcached_operator.memcached.controller import MEMCACHEDS


async def _nothing(*_: Any) -> None:
    return


def _times_out(work: Coroutine[Any, Any, None], message: str) -> None:
    with pytest.raises(TimedOutError, match=message):
        asyncio.run(work)


def test_state_that_is_not_reached_is_a_timeout() -> None:
    sandbox: Any = SimpleNamespace(client=None, get=_nothing)
    work = wait_for_state(sandbox, MEMCACHEDS, Reference({MEMCACHEDS.plural: {}}), 0)
    _times_out(work, "^the state differs from a run without the fault after 0 s: it is not ready: it does not exist$")


def test_objects_that_are_not_accepted_are_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    async def denial(_: Any) -> ApiError:
        return ApiError(500, "InternalError", "no endpoints")

    monkeypatch.setattr(issuing, "denial", denial)
    sandbox: Any = None
    _times_out(issuing.wait_until_accepted(sandbox, 0), "until objects are accepted: .*no endpoints")


def test_objects_that_are_not_ready_are_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    async def problem(_: Any) -> str:
        return "cache is not ready"

    monkeypatch.setattr(soak, "_first_problem", problem)
    monkeypatch.setattr(soak, "ALL_READY_TIMEOUT", 0.0)
    users: Any = None
    _times_out(soak.wait_all_ready(users), "^after 0 s: cache is not ready$")
