"""Runs metrics-server on the local cluster, for HorizontalPodAutoscalers."""

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

TOOLS = Path(__file__).parents[2] / "tools"
SECONDS = 1800
"""Timeout of a command; the first one builds metrics-server, while other tests run."""


def cluster(*words: str) -> None:
    """Run `python3 -m cluster`, and other programs first if there are not enough CPUs. A failure shows its output."""
    done = subprocess.run(
        ["nice", "-n", "19", sys.executable, "-m", "cluster", *words],
        env={**os.environ, "PYTHONPATH": str(TOOLS)}, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}"


@contextmanager
def metrics_server() -> Generator[None]:
    """Run metrics-server until the block ends; build it if necessary."""
    try:
        cluster("start", "metrics-server")
        yield
    finally:
        cluster("stop", "metrics-server")
