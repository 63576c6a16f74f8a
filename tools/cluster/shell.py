"""Running other programs."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from cluster.errors import ClusterError

TAIL = 15
WORDS = 8


def tail(text: str, lines: int = TAIL) -> str:
    """The last lines of a program's output, indented."""
    return "\n".join(f"    {line}" for line in text.strip().splitlines()[-lines:])


def brief(words: Sequence[str]) -> str:
    """The first words of a command line, for messages."""
    return " ".join(words if len(words) <= WORDS else [*words[:WORDS], "…"])


def run(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float | None = None,
    stdin: str | None = None,
) -> str:
    """Run a command and return its standard output; `env` is added to the environment.

    Raises ClusterError with the last lines of its output when it is missing, fails or takes more than `timeout` s.
    """
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words, env={**os.environ, **(env or {})}, cwd=cwd, timeout=timeout, input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None, capture_output=True, text=True, check=False,
        )  # fmt: skip
    # PermissionError: a directory of the PATH is not readable, and no other one has the program.
    except (FileNotFoundError, PermissionError) as error:
        raise ClusterError(f"the program {words[0]} is missing") from error
    except subprocess.TimeoutExpired as error:
        raise ClusterError(f"{brief(words)} did not finish within {timeout:.0f} s") from error
    if done.returncode:
        raise ClusterError(f"{brief(words)} failed ({done.returncode}):\n{tail(done.stderr or done.stdout)}")
    return done.stdout


def succeeds(command: Sequence[str | Path], timeout: float = 30) -> bool:
    """Tell whether a command runs and exits 0."""
    try:
        run(command, timeout=timeout)
    except ClusterError:
        return False
    return True
