"""Runs the commands of the documentation on the cluster of the tests."""

import subprocess

from support.charts import ROOT
from support.code_blocks import code_blocks
from support.waiting import COMMAND


def block(page: str, heading: str, number: int, language: str = "sh") -> str:
    """A code block of a page in docs/: its number below a heading, or below the top for an empty heading."""
    (_, text) = (ROOT / "docs" / page).read_text(encoding="utf-8").split(f"{heading}\n", 1)
    return [code for written_in, code in code_blocks(text) if written_in == language][number]


def run(page: str, heading: str, number: int) -> None:
    """Run the commands of a code block."""
    script = block(page, heading, number)
    words = ["bash", "-euo", "pipefail", "-c", script]
    done = subprocess.run(words, capture_output=True, text=True, timeout=COMMAND, check=False)
    assert done.returncode == 0, f"{script}: {done.stdout}{done.stderr}"
