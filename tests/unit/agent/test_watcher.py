"""When a source is applied: new content, a new memcached, a retry; and what is reported meanwhile."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from memcached_agent.errors import InvalidError, UnverifiedError
from memcached_agent.memcached.errors import MemcachedError
from memcached_agent.reload import watcher
from memcached_agent.reload.watcher import FileWatcher


@dataclass
class Fake:
    """A source whose content, target and errors a test sets."""

    name: str = "fake"
    content: str = "one"
    memcached: int | None = 1
    unreadable: str = ""
    invalid: str = ""
    failure: Exception | None = None
    applied: list[str] = field(default_factory=list[str])
    checked: int = 0
    inspected: int = 0

    def read(self) -> str:
        """The content."""
        if self.unreadable:
            raise InvalidError(self.unreadable)
        return self.content

    def check(self, content: str) -> str:
        """The content, unless it is invalid."""
        self.checked += 1
        if self.invalid:
            raise InvalidError(self.invalid)
        return content

    def target(self) -> int | None:
        """The memcached."""
        return self.memcached

    async def apply(self, value: str) -> None:
        """Record it."""
        self.applied.append(value)
        if self.failure:
            raise self.failure

    async def inspect(self) -> None:
        """Count the calls."""
        self.inspected += 1
        raise UnverifiedError("memcached does not reply")


def run(scenario: Callable[[Fake, "FileWatcher[str, str]"], Awaitable[None]]) -> None:
    """Run a scenario with a watcher whose clock shows 1000."""

    async def created() -> None:
        source = Fake()
        await scenario(source, FileWatcher(source, lambda: 1000.0))

    asyncio.run(created())


def test_content_is_applied_once_for_each_memcached() -> None:
    async def scenario(source: Fake, watched: "FileWatcher[str, str]") -> None:
        assert (watched.successful, watched.succeeded_at) == (False, None)
        for _ in range(3):
            await watched.step()
        assert (source.applied, watched.successful, watched.succeeded_at) == (["one"], True, 1000)
        source.memcached = 2
        await watched.step()
        source.content = "two"
        await watched.step()
        await watched.step()
        assert source.applied == ["one", "one", "two"]
        assert await watched.problem() == ""

    run(scenario)


@pytest.mark.parametrize("kind", ["unreadable", "invalid"])
def test_bad_content_is_not_applied_and_the_good_one_applied_again(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def scenario(source: Fake, watched: "FileWatcher[str, str]") -> None:
        await watched.step()
        source.content = "two"
        setattr(source, kind, "the reason")
        for _ in range(3):
            await watched.step()
        assert (source.applied, watched.successful, watched.succeeded_at) == (["one"], False, 1000)
        assert await watched.problem() == "the reason"
        assert source.inspected
        source.content = "one"
        setattr(source, kind, "")
        await watched.step()
        assert (source.applied, watched.successful, await watched.problem()) == (["one", "one"], True, "")

    run(scenario)
    assert caplog.messages == [
        "memcached uses the fake in the files from the kubelet",
        "fake: the reason",
        "memcached uses the fake in the files from the kubelet",
    ]


def test_same_content_is_tried_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(source: Fake, watched: "FileWatcher[str, str]") -> None:
        source.invalid = "not yet valid"
        for _ in range(3):
            await watched.step()
        assert source.checked == 1
        monkeypatch.setattr(watcher, "RETRY", -1.0)
        source.content = "two"
        await watched.step()
        source.invalid = ""
        await watched.step()
        assert (source.checked, source.applied, watched.successful) == (3, ["two"], True)

    run(scenario)


@pytest.mark.parametrize("failure", [UnverifiedError("no connection"), MemcachedError("limit", "no connection")])
def test_content_that_was_never_verified_does_not_count_as_used(
    failure: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watcher, "RETRY", -1.0)

    async def scenario(source: Fake, watched: "FileWatcher[str, str]") -> None:
        await watched.step()
        source.content, source.failure = "two", failure
        for content in ("two", "two", "one"):  # memcached may use "two" when "one" is back
            source.content = content
            await watched.step()
            assert not watched.successful
        assert source.applied == ["one", "two", "two", "one"]
        assert await watched.problem() == "not verified yet; trying again: no connection"
        assert watched.succeeded_at == 1000
        source.failure = None
        await watched.step()
        assert (watched.successful, await watched.problem()) == (True, "")

    run(scenario)
    assert [each.levelname for each in caplog.records] == ["WARNING"]


@pytest.mark.parametrize(("content", "successful"), [("one", True), ("two", False)])
@pytest.mark.parametrize("memcached", [None, 2], ids=["not available", "not verified"])
def test_restarted_memcached_uses_the_same_content(
    content: str, successful: bool, memcached: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "RETRY", -1.0)

    async def scenario(source: Fake, watched: "FileWatcher[str, str]") -> None:
        await watched.step()
        source.content, source.memcached, source.failure = content, memcached, UnverifiedError("no connection")
        await watched.step()
        assert watched.successful is successful

    run(scenario)


def test_valid_content_waits_for_memcached() -> None:
    async def scenario(source: Fake, watched: "FileWatcher[str, str]") -> None:
        source.memcached = None
        await watched.step()
        await watched.step()
        assert (source.checked, source.applied, watched.successful) == (1, [], False)
        assert await watched.problem() == ""
        source.memcached = 1
        await watched.step()
        assert (source.applied, watched.successful) == (["one"], True)

    run(scenario)


def test_files_are_polled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "POLL", 0.01)

    async def scenario(source: Fake, watched: "FileWatcher[str, str]") -> None:
        task = asyncio.create_task(watched.run())
        for content in ("one", "two", "three"):
            source.content = content
            async with asyncio.timeout(30):
                while source.applied[-1:] != [content]:  # noqa: ASYNC110 - changed by a task
                    await asyncio.sleep(0.005)
        task.cancel()

    run(scenario)


def test_internal_error_is_reported_and_the_watcher_continues(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watcher, "RETRY", -1.0)

    async def scenario(source: Fake, watched: "FileWatcher[str, str]") -> None:
        await watched.step()
        source.content, source.failure = "two", ZeroDivisionError()
        for _ in range(2):
            await watched.step()
            assert (watched.successful, await watched.problem()) == (False, "internal error; see the log of the agent")
        source.failure = None
        await watched.step()
        assert source.applied == ["one", "two", "two", "two"]
        assert (watched.successful, await watched.problem()) == (True, "")

    run(scenario)
    assert caplog.messages == ["fake: internal error"]
