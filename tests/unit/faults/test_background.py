"""Failures of work in the background of a case are reported, and hide nothing."""

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest

from faults.background import CrashedError, FailedError, TimedOutError, while_running
from faults.campaigns.leaders import VICTIMS, Load, changing_specs
from faults.sandbox import Sandbox
from memcached_operator.kube.client import ApiError
from memcached_operator.kube.resource import Object

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


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        (_ended, CrashedError("the load: ended too early")),
        (_crashed, CrashedError("the load: failed: KeyError('allowed')")),
        (_failed, FailedError("the load: client 7 was denied")),
        (_timed_out, TimedOutError("the load: client 7 is not served")),
    ],
)
def test_failure_of_the_work_fails_the_block(work: Work, expected: FailedError) -> None:
    with pytest.raises(FailedError) as caught:
        _run(work)
    assert (type(caught.value), str(caught.value)) == (type(expected), str(expected))


@pytest.mark.parametrize(
    ("work", "message"), [(_endless, "no leader"), (_failed, "no leader; meanwhile the load: client 7 was denied")]
)
def test_failed_check_of_the_block_comes_first(work: Work, message: str) -> None:
    with pytest.raises(FailedError) as caught:
        _run(work, FailedError("no leader"))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("work", "error", "expected"),
    [
        (_endless, TimedOutError("no leader"), TimedOutError),
        (_timed_out, TimedOutError("no leader"), TimedOutError),
        (_failed, TimedOutError("no leader"), FailedError),
        (_timed_out, FailedError("two leaders"), FailedError),
        (_crashed, FailedError("two leaders"), CrashedError),
        (_ended, TimedOutError("no leader"), CrashedError),
    ],
)
def test_crash_is_no_failed_check_and_timeouts_stay_timeouts(
    work: Work, error: FailedError, expected: type[FailedError]
) -> None:
    with pytest.raises(FailedError) as caught:
        _run(work, error)
    assert type(caught.value) is expected


def test_other_error_of_the_block_keeps_its_type() -> None:
    with pytest.raises(ApiError, match="broken") as caught:
        _run(_failed, ApiError(500, "", "broken"))
    assert caught.value.__notes__ == ["the load: client 7 was denied"]


class ApiServer:
    """Accepts some changes of objects and denies the others. `load`: what changing_specs yielded."""

    def __init__(self, accepts: int) -> None:
        self.accepts = accepts
        self.load: Load | None = None
        self.asked = asyncio.Event()

    async def change(self, _: Any, name: str, old: Object, new: Object) -> None:
        assert (name in VICTIMS, old) == (True, {})
        self.asked.set()
        await asyncio.sleep(0)
        self.accepts -= 1
        if self.accepts < 0:
            raise ApiError(404, "NotFound", f"not found, for {new}")

    def check(self, condition: object, message: str) -> None:
        """As in a sandbox."""
        Sandbox.check(cast("Sandbox", SimpleNamespace()), condition, message)


async def _change_during(api: ApiServer, error: Exception | None = None) -> None:
    async with changing_specs(cast("Sandbox", api)) as api.load:
        await api.asked.wait()
        if error is not None:
            raise error


def test_denied_change_of_the_load_fails_the_case_and_names_the_object() -> None:
    with pytest.raises(FailedError, match=r"^changing specs: spec.size=1 of Memcached cache was not.*not found"):
        asyncio.run(_change_during(ApiServer(accepts=0)))


def test_failure_of_the_case_is_reported_before_that_of_its_load() -> None:
    async def run() -> None:
        api = ApiServer(accepts=0)
        async with changing_specs(cast("Sandbox", api)):
            await api.asked.wait()
            await asyncio.sleep(0.01)
            raise FailedError("two leaders")

    with pytest.raises(FailedError, match=r"^two leaders; meanwhile changing specs: spec.size=1 .* was not accepted"):
        asyncio.run(run())


def test_change_in_progress_is_completed_and_counted() -> None:
    api = ApiServer(accepts=10)
    asyncio.run(_change_during(api))
    assert api.load is not None
    assert api.load.accepted == 10 - api.accepts > 0


def test_load_that_changes_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run_nothing(_: Load) -> None:
        await _endless()

    monkeypatch.setattr(Load, "run", run_nothing)

    async def run() -> None:
        async with changing_specs(cast("Sandbox", ApiServer(accepts=1))):
            await asyncio.sleep(0)

    with pytest.raises(FailedError, match="no change of a spec was sent"):
        asyncio.run(run())
