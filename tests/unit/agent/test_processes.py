"""The process of memcached in /proc, and signals to it."""

import os
import signal
from pathlib import Path

import pytest

from memcached_agent.errors import InvalidError, UnverifiedError
from memcached_agent.pod.processes import Process, find, send

from .proc import CATCHES, process

FOUND = ("-Y", "/auth/users")


def test_process_is_that_with_the_option(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "5").mkdir()  # has ended
    process(tmp_path, 10, "memcached", "-Y", "/other")
    process(tmp_path, 11, "sh", *FOUND)
    process(tmp_path, 9, "memcached-agent", "--users-file=/auth/users")
    process(tmp_path, 8, "memcached", "/auth/users", "-Y")
    with pytest.raises(InvalidError, match=r"no process of memcached with -Y /auth/users .* shareProcessNamespace"):
        find(*FOUND, str(tmp_path))
    process(tmp_path, 12, "memcached", "-p", "1", *FOUND)
    assert find(*FOUND, str(tmp_path)) == Process(12, 7, ("-p", "1", *FOUND))
    process(tmp_path, 13, "memcached", *FOUND)
    with pytest.raises(InvalidError, match="2 processes of memcached with -Y /auth/users are visible; only"):
        find(*FOUND, str(tmp_path))


@pytest.mark.parametrize("settings", ["", "ext_threads=8,", "ext_path=/other:64m,"])
def test_process_with_a_setting_among_others(tmp_path: Path, settings: str) -> None:
    words = ("-o", "slab_automove=1", "-o", f"{settings}ext_path=/extstore/items:64m", "-I", "2m")
    process(tmp_path, 12, "memcached", *words)
    process(tmp_path, 13, "memcached", "-o", f"{settings}ext_path=/extstore/items2:64m")
    process(tmp_path, 14, "memcached", "-l", "ext_path=/extstore/items:64m")
    assert find("-o", "ext_path=/extstore/items", str(tmp_path)) == Process(12, 7, words)


def test_processes_that_cannot_be_read_are_a_problem(tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="the processes of the pod cannot be read: No such file"):
        find(*FOUND, str(tmp_path / "missing"))


SIGNALS = {
    "started": (Process(12, 7), CATCHES, None, None, ""),
    "starting": (Process(12, 7), 0x4000, None, UnverifiedError, "memcached is starting"),
    "another process": (Process(12, 6), CATCHES, None, UnverifiedError, "memcached is starting"),
    "ended": (Process(13, 7), CATCHES, None, UnverifiedError, "memcached has exited"),
    "ends": (Process(12, 7), CATCHES, ProcessLookupError(), UnverifiedError, "memcached has exited"),
    "another user": (Process(12, 7), CATCHES, PermissionError(), InvalidError, r"securityContext\.runAsUser"),
}


@pytest.mark.parametrize("signum", [signal.SIGHUP, signal.SIGUSR1])
@pytest.mark.parametrize(("wanted", "catches", "error", "raised", "message"), SIGNALS.values(), ids=SIGNALS.keys())
def test_signal(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    signum: int,
    wanted: Process,
    catches: int,
    error: OSError | None,
    raised: type[Exception] | None,
    message: str,
) -> None:
    sent: list[tuple[int, int]] = []

    def kill(number: int, found: int) -> None:
        sent.append((number, found))
        if error:
            raise error

    monkeypatch.setattr(os, "kill", kill)
    process(tmp_path, 12, "memcached", "-Y", "/users", catches=catches)
    if raised is None:
        send(wanted, signum, str(tmp_path))
    else:
        with pytest.raises(raised, match=message):
            send(wanted, signum, str(tmp_path))
    assert sent == ([(12, signum)] if raised is None or error else [])
