"""Runs the commands of docs/try.md on the cluster of kubectl, and compares their output with that of the page."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress

from pages.commands import NAMESPACE, NC, SHELLS, Block, blocks
from project.environment import ROOT

PAGE = "docs/try.md"
SECTION = re.compile(r"^## With kind.*?(?=^## )", re.MULTILINE | re.DOTALL)
OF_THE_DEMO = "memcached-demo"
"""The namespace in place of the page's. An earlier one of this name is deleted."""
FORWARDS = "port-forward"
"""A command that needs a real pod."""
PREAMBLE = f"""\
trap 'kill $(jobs -p) 2> /dev/null || true' EXIT
{NC}
"""
"""Background commands, such as `kubectl port-forward`, end with the block."""
PREPARE = (
    f"kubectl delete namespace {NAMESPACE} --ignore-not-found --timeout=5m\nkubectl create namespace {NAMESPACE}\n"
)
NEXT_STEPS = f"""
Next steps:
  kubectl -n {OF_THE_DEMO} edit memcached/cache
  kubectl explain memcached.spec     every field; also docs/api.md
Clean up:
  kubectl delete namespace {OF_THE_DEMO}
  make undeploy                      the operator, its CustomResourceDefinitions and every Memcached"""


def run_page(*, simulated: bool) -> int:
    """Run the blocks up to the first one that fails; returns the exit code. `simulated`: pods run no containers."""
    begun = time.monotonic()
    steps = [("Prepare a namespace:", Block(0, "sh", PREPARE)), *steps_of((ROOT / PAGE).read_text(encoding="utf-8"))]
    skipped = 0
    for number, (text, block) in enumerate(steps, start=1):
        print(f"\n[{number}/{len(steps)}] {text}\n", flush=True)
        if simulated and FORWARDS in block.text:
            print("Skipped: simulated pods run no memcached.")
            skipped += 1
        elif problem := run_block(block):
            print(f"\nStep {number} of {PAGE} failed: {problem}.", file=sys.stderr)
            return 1
    passed = f"{len(steps) - skipped} steps passed in {time.monotonic() - begun:.1f} s"
    print(f"\n{passed}, {skipped} skipped.\n{NEXT_STEPS}" if skipped else f"\n{passed}.\n{NEXT_STEPS}")
    return 0


def steps_of(page: str) -> list[tuple[str, Block]]:
    """The blocks that can be run on any cluster, each with the paragraph before it."""
    section = "".join(SECTION.findall(page))
    found = [block for block in blocks(section) if block.language in SHELLS and not block.reason]
    return [(section[: block.start].rstrip().rpartition("\n\n")[2], block) for block in found]


def run_block(block: Block) -> str:
    """Run the commands and show their output. Returns what is wrong: a missing line of output, or an exit code.

    Of a block with output, the exit code does not matter: the page also shows a command that must fail.
    """
    commands = re.sub(rf"\b{NAMESPACE}\b", OF_THE_DEMO, block.commands)
    print("".join(f"$ {line}\n" for line in commands.splitlines()), end="", flush=True)
    code, output = run_shell(PREAMBLE + commands)
    if missing := [line for line in block.output if line not in output]:
        return f"the output has no line {missing[0]!r}"
    return f"exit code {code}" if code and not block.output else ""


def run_shell(script: str) -> tuple[int, list[str]]:
    """The exit code and the lines of a script, which are shown. An interruption of this process stops the script."""
    words = ["bash", "-euo", "pipefail", "-c", script]
    with subprocess.Popen(
        words,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as shell:
        lines: list[str] = []
        try:
            for line in shell.stdout or ():
                lines.append(line.rstrip())
                print(lines[-1], flush=True)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGTERM)
    return shell.returncode, lines
