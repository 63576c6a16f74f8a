"""The guard of the volume of extstore: what a probe shows, and when memcached is stopped."""

import asyncio
import errno
import os
import signal
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

import pytest

from memcached_agent.extstore import guard as guards
from memcached_agent.extstore.decision import Result, State, decide, is_due
from memcached_agent.extstore.families import BUCKETS, FREE, SECONDS, USED, WRITABLE
from memcached_agent.extstore.guard import Guard
from memcached_agent.extstore.probe import NAME, SIZE, Probe, probe
from memcached_agent.metrics.exposition import render
from memcached_agent.pod.processes import Process
from memcached_agent.web.health import INTERNAL_ERROR
from support.ports import free_port
from support.streams import until

from .proc import process
from .processes import running
from .samples import types, value

METRICS: Final = {each.name for each in (WRITABLE, SECONDS, FREE, USED)}
ONE, TWO = Process(1, 7), Process(1, 8)
WORKS, BROKEN, DENIED, FULL, FAILED, HANGS = "works", "broken", "denied", "full", "failed", "hangs"
Row = tuple[Result, Process, bool | None, bool]
"""The result of a probe, the memcached that runs then, whether the volume is writable, and whether it is stopped."""
SEQUENCES: Final[dict[str, list[Row]]] = {
    "works": [(WORKS, ONE, True, False)] * 3,
    "breaks": [(WORKS, ONE, True, False), (BROKEN, ONE, True, False), (BROKEN, ONE, False, True)],
    "broken when the agent starts": [(BROKEN, ONE, None, False), (BROKEN, ONE, False, True)],
    "one error": [(WORKS, ONE, True, False), (BROKEN, ONE, True, False), (WORKS, ONE, True, False)] * 2,
    "process that does not end": [(BROKEN, ONE, None, False), (BROKEN, ONE, False, True), (BROKEN, ONE, False, False)],
    "restarted with the broken volume": [
        (BROKEN, ONE, None, False),
        (BROKEN, ONE, False, True),
        (BROKEN, TWO, False, True),
        (BROKEN, TWO, False, False),
    ],
    "works and breaks again before the process has ended": [
        (BROKEN, ONE, None, False),
        (BROKEN, ONE, False, True),
        (WORKS, ONE, True, False),
        (BROKEN, ONE, True, False),
        (BROKEN, ONE, False, False),
    ],
    "full": [
        (WORKS, ONE, True, False),
        (FULL, ONE, False, False),
        (FULL, ONE, False, False),
        (WORKS, ONE, True, False),
    ],
    "full between two errors": [(BROKEN, ONE, None, False), (FULL, ONE, False, False), (BROKEN, ONE, False, True)],
    "hangs": [(WORKS, ONE, True, False), (HANGS, ONE, False, False), (HANGS, ONE, False, False)],
    "hangs before each error": [
        (HANGS, ONE, False, False),
        (BROKEN, ONE, False, False),
        (HANGS, ONE, False, False),
        (BROKEN, ONE, False, True),
    ],
    "denied after it worked": [(WORKS, ONE, True, False), (DENIED, ONE, True, False), (DENIED, ONE, False, True)],
    "denied from the start": [(DENIED, ONE, False, False)] * 3,
    "denied and broken": [(WORKS, ONE, True, False), (BROKEN, ONE, True, False), (DENIED, ONE, False, True)],
    "another error": [(WORKS, ONE, True, False), (FAILED, ONE, False, False), (FAILED, ONE, False, False)],
}


@pytest.mark.parametrize("sequence", SEQUENCES.values(), ids=SEQUENCES.keys())
def test_decision(sequence: list[Row]) -> None:
    state = State()
    for result, memcached, writable, stops in sequence:
        state = decide(state, result)
        found = result != HANGS and is_due(state, memcached)
        assert (state.writable, found) == (writable, stops)
        if found:
            state = state._replace(stopped=memcached)


def test_probe_that_works(tmp_path: Path) -> None:
    (tmp_path / "items").write_bytes(b"a" * 5000)
    found = probe(str(tmp_path))
    assert (found.result, found.reason, found.used) == (WORKS, "", 8192)
    assert 0 < found.seconds < 60
    volume = os.statvfs(tmp_path)
    assert found.free is not None
    assert abs(found.free - volume.f_bavail * volume.f_frsize) < 2**30
    assert [each.name for each in tmp_path.iterdir()] == ["items"]


def test_content_is_synced_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    written: list[bytes] = []

    def recorded(name: str) -> None:
        original: Callable[..., Any] = getattr(os, name)

        def call(*arguments: Any) -> Any:
            calls.append(name)
            if name == "write":
                written.append(arguments[1])
            return original(*arguments)

        monkeypatch.setattr(os, name, call)

    for name in ("write", "fsync", "posix_fadvise", "pread"):
        recorded(name)
    for _ in range(2):
        calls.clear()
        assert probe(str(tmp_path)).result == WORKS
        assert calls == ["write", "fsync", "posix_fadvise", "pread"]
    assert [len(each) for each in written] == [SIZE, SIZE]
    assert written[0] != written[1]


@pytest.mark.parametrize("leftover", ["file", "link", "dangling link"])
def test_leftover_is_removed_and_links_are_not_followed(tmp_path: Path, leftover: str) -> None:
    volume, other = tmp_path / "volume", tmp_path / "other"
    volume.mkdir()
    if leftover == "file":
        (volume / NAME).write_bytes(b"b")
        (volume / NAME).chmod(0)
    else:
        (volume / NAME).symlink_to(other)
    if leftover == "link":
        other.write_bytes(b"kept")
    assert probe(str(volume)).result == WORKS
    assert list(volume.iterdir()) == []
    assert other.exists() == (leftover == "link")
    assert leftover != "link" or other.read_bytes() == b"kept"


def test_link_that_appears_meanwhile_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    volume, other = tmp_path / "volume", tmp_path / "other"
    volume.mkdir()
    (volume / NAME).symlink_to(other)
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", os.fspath)  # removes nothing
        assert probe(str(volume))[:2] == (FAILED, "File exists")
    assert not other.exists()


def test_directory_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    assert probe(str(tmp_path))[:2] == (FAILED, "Is a directory")
    assert (tmp_path / NAME).is_dir()


def test_missing_volume() -> None:
    found = probe("/missing")
    assert (found.result, found.reason, found.free, found.used) == (FAILED, "No such file or directory", None, None)


ERRORS: Final[dict[int, Result]] = {
    errno.EROFS: BROKEN,
    errno.EIO: BROKEN,
    errno.EUCLEAN: BROKEN,
    errno.EPERM: DENIED,
    errno.EACCES: DENIED,
    errno.ENOSPC: FULL,
    errno.EDQUOT: FULL,
    errno.ENOMEM: FAILED,
}
OF_CALLS: Final[dict[str, dict[int, Result]]] = {
    "open": {**ERRORS, errno.EMFILE: FAILED},
    **{key: {**ERRORS, errno.ENODATA: BROKEN, errno.ENOLINK: BROKEN} for key in ("write", "fsync", "pread")},
}
"""A sync passes on any error of a device, or of the path to it."""


@pytest.mark.parametrize(
    ("call", "number", "expected"), [(call, *each) for call, errors in OF_CALLS.items() for each in errors.items()]
)
def test_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int, expected: Result) -> None:
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        found = probe(str(tmp_path))
    assert (found.result, found.reason) == (expected, os.strerror(number))
    assert list(tmp_path.iterdir()) == []


def test_part_of_the_content_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write

    def write_part(file: int, content: bytes) -> int:
        return write(file, content[:100])

    monkeypatch.setattr(os, "write", write_part)
    assert probe(str(tmp_path))[:2] == (FULL, "No space left on device")


def test_other_bytes_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_zeros(_: int, size: int, at: int) -> bytes:
        return bytes(size + at)

    monkeypatch.setattr(os, "pread", read_zeros)
    assert probe(str(tmp_path))[:2] == (BROKEN, "Other bytes were read than written")


class Pod:
    """A pod with a volume at `/extstore`. `results`: of the next probes. `sent`: the processes that got SIGTERM."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.proc = directory / "proc"
        self.proc.mkdir()
        self.results: list[Result] = []
        self.sent: list[int] = []
        self.error: OSError | None = None
        self.guard = Guard("/extstore", self._probe, proc=str(self.proc))
        monkeypatch.setattr(os, "kill", self._kill)

    def start(self, number: int = 12, **settings: int) -> None:
        """Let this be a memcached of the pod."""
        process(self.proc, number, "memcached", "-o", "ext_threads=8,ext_path=/extstore/items:64m", **settings)

    def probed(self, *results: Result) -> tuple[list[int], str]:
        """Probe; returns which processes got SIGTERM, and the problem."""
        self.results = list(results)
        self.sent.clear()
        for _ in results:
            asyncio.run(self.guard.step())
        return self.sent, self.guard.problem.sentence

    def _probe(self, directory: str) -> Probe:
        assert directory == "/extstore"
        result = self.results.pop(0)
        return Probe(result, "" if result == WORKS else "the reason", 0.02, 1000, 64)

    def _kill(self, number: int, signum: int) -> None:
        assert signum == signal.SIGTERM
        if self.error:
            raise self.error
        self.sent.append(number)


CATCHES: Final = 1 << signal.SIGTERM - 1
LOGGED: Final = "sent SIGTERM to memcached, process 12: "
STOPS: Final = (
    "/extstore cannot be written: the reason. memcached could return values of other keys, so the agent stops it; to "
    "replace the volume and lose the items of the pod, delete the pod"
)


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pod:
    return Pod(tmp_path, monkeypatch)


def test_memcached_is_stopped_with_one_line(pod: Pod, caplog: pytest.LogCaptureFixture) -> None:
    pod.start(catches=CATCHES)
    assert pod.probed(WORKS, BROKEN) == ([], "")
    assert pod.probed(BROKEN) == ([12], STOPS)
    assert pod.probed(BROKEN, BROKEN) == ([], STOPS)
    assert [each.getMessage() for each in caplog.records] == [LOGGED + STOPS]
    pod.start(catches=CATCHES, started=8)
    assert pod.probed(BROKEN, BROKEN) == ([12], STOPS)
    assert pod.probed(WORKS) == ([], "")
    assert [each.getMessage() for each in caplog.records] == [LOGGED + STOPS] * 2


def test_memcached_that_starts_is_stopped_when_it_handles_the_signal(pod: Pod) -> None:
    pod.start(catches=0)
    assert pod.probed(BROKEN, BROKEN, BROKEN) == ([], STOPS)
    pod.start(catches=CATCHES)
    assert pod.probed(BROKEN) == ([12], STOPS)


def test_memcached_that_has_not_started_yet(pod: Pod) -> None:
    sent, problem = pod.probed(BROKEN, BROKEN)
    assert (sent, problem.startswith(f"{STOPS}. memcached is not stopped: no process of memcached with -o")) == (
        [],
        True,
    )
    pod.start(catches=CATCHES)
    assert pod.probed(BROKEN) == ([12], STOPS)
    (pod.proc / "12" / "comm").unlink()
    assert pod.probed(BROKEN) == ([], STOPS), "it does not start any more, which needs no other remedy"


def test_memcached_of_another_user_is_a_problem(pod: Pod) -> None:
    pod.start(catches=CATCHES)
    pod.error = PermissionError()
    sent, problem = pod.probed(BROKEN, BROKEN)
    assert (sent, problem.startswith(f"{STOPS}. memcached is not stopped: the agent may not send")) == ([], True)
    pod.error = None
    assert pod.probed(BROKEN) == ([12], STOPS)


NOT_STOPPED: Final[dict[Result, str]] = {
    FULL: "/extstore has no space for all items: the reason. memcached stores items, and does not find them again",
    DENIED: "the agent may not write to /extstore: the reason",
    FAILED: "/extstore cannot be probed: the reason",
}


@pytest.mark.parametrize(("result", "problem"), NOT_STOPPED.items())
def test_problem_that_does_not_stop_memcached(
    pod: Pod, caplog: pytest.LogCaptureFixture, result: Result, problem: str
) -> None:
    pod.start(catches=CATCHES)
    assert pod.probed(result, result, result) == ([], problem)
    assert [each.getMessage() for each in caplog.records] == [problem]
    assert pod.probed(WORKS) == ([], "")


def test_metrics(pod: Pod) -> None:
    def text() -> str:
        return render(pod.guard.metrics()).decode()

    assert types(text()) == {SECONDS.name: "histogram"}
    pod.probed(WORKS, WORKS)
    assert types(text()) == {**dict.fromkeys(METRICS, "gauge"), SECONDS.name: "histogram"}
    assert [value(text(), each.name) for each in (WRITABLE, FREE, USED)] == [1, 1000, 64]
    pod.probed(FULL)
    assert value(text(), WRITABLE.name) == 0
    buckets = {str(bound): value(text(), f"{SECONDS.name}_bucket", le=str(bound)) for bound in BUCKETS}
    assert (buckets["0.01"], buckets["0.025"], buckets["10.0"]) == (0, 2, 2)


def test_internal_error_is_logged_once_and_does_not_end_the_agent(pod: Pod, caplog: pytest.LogCaptureFixture) -> None:
    def broken(_: str) -> Probe:
        raise ZeroDivisionError

    pod.guard = Guard("/extstore", broken, proc=str(pod.proc))
    assert pod.probed(WORKS, WORKS) == ([], INTERNAL_ERROR)
    assert [each.getMessage() for each in caplog.records] == ["internal error"]


class Disk:
    """A disk that hangs. `began`: probes until now. `freed`: lets them end."""

    def __init__(self) -> None:
        self.began = 0
        self.freed = threading.Event()

    def probe(self, _: str) -> Probe:
        """Probe the disk."""
        self.began += 1
        assert self.freed.wait(60)
        return Probe(WORKS, "", 12.5, None, None)

    def guarded(self, scenario: Callable[[Guard], Coroutine[Any, Any, None]]) -> None:
        """Run a scenario with the guard of this disk."""
        asyncio.run(scenario(Guard("/extstore", self.probe, period=0.01, limit=0.05)))


def test_disk_that_hangs_has_one_probe_and_works_again() -> None:
    disk = Disk()

    async def scenario(guard: Guard) -> None:
        work = asyncio.create_task(guard.run())
        await until(lambda: guard.problem.sentence)
        assert guard.problem.sentence == "/extstore does not reply: a write has taken more than 0.05 s"
        for _ in range(3):
            await asyncio.sleep(0.05)
        assert disk.began == 1
        text = render(guard.metrics()).decode()
        assert (value(text, WRITABLE.name), value(text, f"{SECONDS.name}_count")) == (0, 0)
        disk.freed.set()
        await until(lambda: disk.began > 2)
        text = render(guard.metrics()).decode()
        assert (value(text, WRITABLE.name), guard.problem.sentence) == (1, "")
        assert value(text, f"{SECONDS.name}_bucket", le="10.0") == 0
        work.cancel()

    disk.guarded(scenario)


def test_memcached_that_starts_while_the_disk_hangs_is_not_stopped(pod: Pod) -> None:
    freed = threading.Event()
    probes: list[Callable[[], object]] = [lambda: None, lambda: None, lambda: freed.wait(60)]

    def broken(_: str) -> Probe:
        probes.pop(0)()
        return Probe(BROKEN, "the reason", 0, None, None)

    async def scenario() -> None:
        guard = Guard("/extstore", broken, limit=0.05, proc=str(pod.proc))
        pod.start(catches=CATCHES)
        await guard.step()
        await guard.step()
        assert (pod.sent, guard.problem.sentence) == ([12], STOPS)
        pod.start(catches=CATCHES, started=8)
        await guard.step()
        assert (pod.sent, "does not reply" in guard.problem.sentence) == ([12], True)
        freed.set()
        await guard.step()
        assert (pod.sent, guard.problem.sentence) == ([12, 12], STOPS)

    asyncio.run(scenario())


def test_errors_are_confirmed_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if not results:
            raise asyncio.CancelledError

    results: list[Result] = [WORKS, BROKEN, BROKEN, WORKS]
    monkeypatch.setattr(guards.asyncio, "sleep", sleep)
    guard = Guard("/extstore", lambda _: Probe(results.pop(0), "", 0, None, None), proc="/missing")
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(guard.run())
    assert pauses == [guards.PERIOD, guards.CONFIRM, guards.CONFIRM, guards.PERIOD]


def test_agent_serves_the_metrics_of_the_volume(tmp_path: Path) -> None:
    with running(free_port(), f"--extstore-volume={tmp_path}") as agent:
        agent.wait_for(200, f"\n{WRITABLE.name} 1\n", "/metrics")
        found = types(agent.get()[1])
        assert METRICS - found.keys() == {USED.name}, "memcached has not created its file yet"
        (tmp_path / NAME).mkdir()
        agent.wait_for(503, f"extstore: {tmp_path} cannot be probed: Is a directory")
        assert agent.get("/livez") == (200, "ok\n")
        assert agent.end()[0] == 0


def test_agent_ends_while_the_disk_hangs(tmp_path: Path) -> None:
    with running(free_port(), f"--extstore-volume={tmp_path}", module="unit.agent.hanging") as agent:
        agent.wait_for(503, f"extstore: {tmp_path} does not reply: a write has taken more than 10 s")
        code, log = agent.end()
        assert (code, "Traceback" in log) == (0, False), log
