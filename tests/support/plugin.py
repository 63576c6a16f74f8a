"""Runs the kubectl plugin from its sources, with the cluster that KUBECONFIG selects."""

import os
import subprocess
import sys
from pathlib import Path

from support import programs

SOURCES = Path(__file__).parents[2] / "plugin"


COMMAND_LINE = (sys.executable, "-m", "kubectl_memcached")


def environment() -> dict[str, str]:
    """The variables with which it starts."""
    return {**os.environ, "PYTHONPATH": str(SOURCES)}


def kubectl_memcached(*words: str) -> subprocess.CompletedProcess[str]:
    """The output and the exit code of a command."""
    return programs.run([*COMMAND_LINE, *words], env=environment())
