"""Programs that tests run. Each one ends within a limit, with everything that it has started."""

import os
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from support.waiting import COMMAND, REQUEST

LONGEST = 500
"""Characters of a command in an error."""


def run(
    words: Sequence[str | os.PathLike[str]],
    *,
    stdin: str | int | None = None,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = COMMAND,
    shown: bool = False,
) -> "subprocess.CompletedProcess[str]":
    """Run a program until it ends; its exit code, output and errors.

    `stdin`: a text, or the file descriptor to read from; by default, the program gets no input. `timeout`: seconds.
    `shown`: its errors, such as progress, are shown instead of returned. Fails the test if the program exceeds the
    time, and stops its process group then, and when the test is interrupted.
    """
    source = stdin if isinstance(stdin, int) else subprocess.DEVNULL if stdin is None else subprocess.PIPE
    with subprocess.Popen(
        words,
        stdin=source,
        stdout=subprocess.PIPE,
        stderr=None if shown else subprocess.PIPE,
        text=True,
        cwd=cwd,
        env=env,
        start_new_session=True,
    ) as process:
        try:
            output, errors = process.communicate(stdin if isinstance(stdin, str) else None, timeout)
        except subprocess.TimeoutExpired as error:
            output, errors = _stop(process)
            raise AssertionError(f"{_shown(words)} did not end within {timeout:g} s: {output}{errors}") from error
        except BaseException:
            _stop(process)
            raise
    return subprocess.CompletedProcess(words, process.returncode, output, errors)


def output(
    words: Sequence[str | os.PathLike[str]],
    *,
    stdin: str | None = None,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = COMMAND,
) -> str:
    """As `run`; its output. Fails the test if the exit code is not 0."""
    done = run(words, stdin=stdin, cwd=cwd, env=env, timeout=timeout)
    assert done.returncode == 0, f"{_shown(words)} failed ({done.returncode}): {done.stdout}{done.stderr}"
    return done.stdout


def _stop(process: "subprocess.Popen[str]") -> tuple[str, str]:
    """End the process group, at first as Ctrl-C does, so that it can clean up; what it has printed."""
    for number in (signal.SIGINT, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=REQUEST)
    return "", ""


def _shown(words: Sequence[str | os.PathLike[str]]) -> str:
    return shlex.join(str(word) for word in words)[:LONGEST]
