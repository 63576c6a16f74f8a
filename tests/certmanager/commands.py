"""Runs the commands of the documentation on the cluster of the tests."""

from support import programs


def run(script: str) -> None:
    """Run the commands of a code block."""
    words = ["bash", "-euo", "pipefail", "-c", script]
    done = programs.run(words)
    assert done.returncode == 0, f"{script}: {done.stdout}{done.stderr}"
