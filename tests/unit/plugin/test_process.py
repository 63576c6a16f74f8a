"""The program as a process: exit codes, standard error, colors, progress."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kubectl_memcached.errors import ExitCode
from kubectl_memcached.output import PIPED_WIDTH, console
from kubectl_memcached.progress import progress
from support import programs
from support.kubectl_program import ENDED
from unit.plugin.conftest import Run, World

PLUGIN = Path(__file__).parents[3] / "plugin"
START = 60.0
"""Seconds until the program has read each memcached, and until it has exited. Enough for a busy machine."""


def finished(*words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run the program until it exits."""
    command = [sys.executable, "-m", "kubectl_memcached", *words]
    environment = {**os.environ, "PYTHONPATH": str(PLUGIN), **variables}
    return programs.run(command, env=environment, timeout=60)


def test_error_is_one_sentence_on_standard_error(world: World, run: Run) -> None:
    run("status", "sessions")
    world.kubectl.errors["get memcacheds.cache.example.com"] = (
        "Error in configuration: context was not found for specified context: x\x1b[2J"
    )
    done = finished("status", "sessions", **world.kubectl.environment())
    assert (done.returncode, done.stdout) == (ExitCode.CLUSTER, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert "\x1b" not in done.stderr


def test_wrong_usage_has_its_own_code() -> None:
    assert finished("status").returncode == ExitCode.USAGE


@pytest.mark.parametrize("words", [("top", "--once", "--interval=3600"), ("hotkeys", "--seconds=300")])
def test_ctrl_c_ends_it_and_its_kubectls(words: tuple[str, ...], world: World, run: Run) -> None:
    for stub in world.stubs:
        stub.replies = {**stub.replies, "watch fetchers": "OK\r\n"}
    run("status", "sessions")
    before = len(world.kubectl.calls())
    command = [sys.executable, "-m", "kubectl_memcached", words[0], "sessions", *words[1:]]
    environment = {**os.environ, "PYTHONPATH": str(PLUGIN), **world.kubectl.environment()}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment) as process:
        try:
            deadline = time.monotonic() + START
            while not answered(world):
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            assert (process.communicate(timeout=START)[0], process.returncode) == ("", ExitCode.INTERRUPTED)
        finally:
            process.kill()
    assert world.kubectl.calls()[before:].count([ENDED]) == 2


def answered(world: World) -> bool:
    """Whether each memcached was read once more than by `status`."""
    return all(stub.commands.count("stats") == 2 for stub in world.stubs)


def test_documented_exit_codes_are_those_of_the_program() -> None:
    page = (PLUGIN.parent / "docs/plugin.md").read_text()
    assert [f"| {code} |" in page for code in sorted(set(ExitCode))] == [True] * len(ExitCode)


@pytest.mark.parametrize(("variables", "colored"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colors(variables: dict[str, str], colored: bool, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    assert ("\x1b[32m" in run("status", "sessions", **variables).output) == colored


def test_output_that_is_no_terminal_has_no_colors_and_whole_rows(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" not in run("status", "sessions").output
    monkeypatch.delenv("COLUMNS")
    assert console().width == PIPED_WIDTH


@pytest.mark.parametrize(("delay", "shown"), [(0.0, True), (60.0, False)])
def test_progress_is_shown_after_its_delay(
    delay: float, shown: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("kubectl_memcached.progress.DELAY", delay)
    with progress("Reading pods", 3) as display:
        while shown and not display.reported.wait(0.01):
            pass
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == ("Reading pods: 0 of 3…\n" if shown else "")
