"""Runs the commands of the documentation on the cluster of the tests."""

import subprocess

from support.waiting import COMMAND


def run(script: str) -> None:
    """Run the commands of a code block."""
    words = ["bash", "-euo", "pipefail", "-c", script]
    done = subprocess.run(words, capture_output=True, text=True, timeout=COMMAND, check=False)
    assert done.returncode == 0, f"{script}: {done.stdout}{done.stderr}"
