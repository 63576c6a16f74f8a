"""Runs the kubectl plugin from its sources, with the cluster that KUBECONFIG selects."""

import os
import subprocess
import sys
from pathlib import Path

from support.waiting import COMMAND

SOURCES = Path(__file__).parents[2] / "plugin"


def kubectl_memcached(*words: str) -> subprocess.CompletedProcess[str]:
    """The output and the exit code of a command."""
    return subprocess.run(
        [sys.executable, "-m", "kubectl_memcached", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=COMMAND,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
    )
