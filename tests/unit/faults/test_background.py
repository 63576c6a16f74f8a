"""Failures of a case and of its work in the background are reported; a timeout does not become a failed check."""

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest

from faults import issuing
from faults.background import CrashedError, FailedError, TimedOutError, while_running
from faults.campaigns import soak
from faults.campaigns.leaders import VICTIMS, Load, changing_specs
from faults.esr import Reference, wait_for_state
from faults.sandbox import Sandbox
from memcached_operator.kube.client import ApiError
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.controller import MEMCACHEDS

Work = Callable[[], Coroutine[Any, Any, None]]


async def _endless() -> None:
    await asyncio.Event().wait()


async def _ended() -> None:
    return


async def _crashed() -> None:
    raise KeyError("allowed")


async def _failed() -> None:
    raise FailedError("client 7 was denied")


async def _timed_out() -> None:
    raise TimedOutError("client 7 is not served")


def _run(work: Work, error: Exception | None = None) -> None:
    async def run() -> None:
        async with while_running({"the load": work()}):
            await asyncio.sleep(0)
            if error is not None:
                raise error

    asyncio.run(run())


def test_endless_work_is_cancelled() -> None:
    _run(_endless)


OUTCOMES: list[tuple[Work, Exception | None, FailedError]] = [
    (_ended, None, CrashedError("the load: ended too early")),
    (_crashed, None, CrashedError("the load: failed: KeyError('allowed')")),
    (_failed, None, FailedError("the load: client 7 was denied")),
    (_timed_out, None, TimedOutError("the load: client 7 is not served")),
    (_endless, FailedError("no leader"), FailedError("no leader")),
    (_endless, TimedOutError("no leader"), TimedOutError("no leader")),
    (_failed, FailedError("no leader"), FailedError("no leader; meanwhile the load: client 7 was denied")),
    (_timed_out, TimedOutError("no leader"), TimedOutError("no leader; meanwhile the load: client 7 is not served")),
    (_failed, TimedOutError("no leader"), FailedError("no leader; meanwhile the load: client 7 was denied")),
    (_timed_out, FailedError("two leaders"), FailedError("two leaders; meanwhile the load: client 7 is not served")),
    (_crashed, FailedError("no leader"), CrashedError("no leader; meanwhile the load: failed: KeyError('allowed')")),
    (_ended, TimedOutError("no leader"), CrashedError("no leader; meanwhile the load: ended too early")),
]


@pytest.mark.parametrize(("work", "error", "expected"), OUTCOMES)
def test_failures_are_joined_and_only_timeouts_alone_stay_a_timeout(
    work: Work, error: Exception | None, expected: FailedError
) -> None:
    with pytest.raises(FailedError) as caught:
        _run(work, error)
    assert (type(caught.value), str(caught.value)) == (type(expected), str(expected))


def test_other_error_of_the_block_keeps_its_type() -> None:
    with pytest.raises(ApiError, match="broken") as caught:
        _run(_failed, ApiError(500, "", "broken"))
    assert caught.value.__notes__ == ["the load: client 7 was denied"]


class ApiServer:
    """Denies every change of an object."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def change(self, _: Any, name: str, old: Object, new: Object) -> None:
        assert (name in VICTIMS, old) == (True, {})
        self.asked.set()
        raise ApiError(404, "NotFound", f"not found, for {new}")

    def check(self, condition: object, message: str) -> None:
        """As in a sandbox."""
        Sandbox.check(cast("Sandbox", SimpleNamespace()), condition, message)


def test_denied_change_of_the_load_fails_the_case_and_names_the_object() -> None:
    async def run() -> None:
        api = ApiServer()
        async with changing_specs(cast("Sandbox", api)):
            await api.asked.wait()

    with pytest.raises(FailedError, match=r"^changing specs: spec.size=1 of Memcached cache was not.*not found"):
        asyncio.run(run())


def test_load_that_changes_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run_nothing(_: Load) -> None:
        await _endless()

    monkeypatch.setattr(Load, "run", run_nothing)

    async def run() -> None:
        async with changing_specs(cast("Sandbox", ApiServer())):
            await asyncio.sleep(0)

    with pytest.raises(FailedError, match="no change of a spec was sent"):
        asyncio.run(run())


async def _nothing(*_: Any) -> None:
    return


async def _denial(_: Any) -> ApiError:
    return ApiError(500, "InternalError", "no endpoints")


async def _problem(_: Any) -> str:
    return "cache is not ready"


def test_waits_that_report_more_than_a_timeout_stay_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issuing, "denial", _denial)
    monkeypatch.setattr(soak, "_first_problem", _problem)
    monkeypatch.setattr(soak, "ALL_READY_TIMEOUT", 0.0)
    sandbox: Any = SimpleNamespace(client=None, get=_nothing)
    reference = Reference({MEMCACHEDS.plural: {}})
    for wait, message in (
        (wait_for_state(sandbox, MEMCACHEDS, reference, 0), "^the state differs .* after 0 s: .* it does not exist$"),
        (issuing.wait_until_accepted(sandbox, 0), "until objects are accepted: .*no endpoints"),
        (soak.wait_all_ready(sandbox), "^after 0 s: cache is not ready$"),
    ):
        with pytest.raises(TimedOutError, match=message):
            asyncio.run(wait)
