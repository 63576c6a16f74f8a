"""Runs commands that clean up when they are interrupted, as a part of a test."""

import signal
import subprocess
from collections.abc import Mapping, Sequence

from project.environment import ROOT, signals_ignored


def run(words: Sequence[str], env: Mapping[str, str]) -> tuple[int, str]:
    """Run a command in the project's root; returns its exit code and its output. `env`: its whole environment.

    On Ctrl-C it interrupts the command once and waits until it has cleaned up. `subprocess.run` would kill it after
    0.25 s. The command has its own process group: otherwise the terminal would interrupt it a second time.
    """
    with subprocess.Popen(
        words,
        env=env,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
    ) as process:
        try:
            output, _ = process.communicate()
        except KeyboardInterrupt:
            with signals_ignored():
                process.send_signal(signal.SIGINT)
                process.communicate()
            raise
    return process.returncode, output
