"""Grafana's own types accept the files of the dashboards."""

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from dashboards.files import files
from support import programs
from support.waiting import BUSY
from unit.config.rendered import ROOT

SOURCES = ROOT / "tests/grafana/types"
PROJECT = ROOT / "build/dashboards/types"
"""A copy of the sources, with what they need from npm."""
TIMEOUT = BUSY * 120.0
"""Seconds for one command."""
ERROR = re.compile(r"^checked\.ts\((\d+),.*?: error (.*(?:\n  .*)*)", re.MULTILINE)
MISTAKES = (
    ('"unit": "percentunit"', '"unti": "percentunit"'),
    ('"drawStyle": "line"', '"drawStyle": "lines"'),
    ('"graphTooltip": 1', '"graphTooltip": 7'),
    ('"noValue": "none"', '"noValue": 0'),
    ('"colorMode": "background_solid"', '"colourMode": "background_solid"'),
    ('"expr": ', '"expression": '),
)
"""Texts in a file, and others with which it is wrong."""


def test_files_have_the_types_of_grafana_and_others_are_errors() -> None:
    right = list(files().values())
    assert [old for old, _ in MISTAKES if old not in right[0]] == []
    wrong = [right[0].replace(*mistake) for mistake in MISTAKES]
    found = type_errors([*right, *wrong])
    assert {number: text for number, text in found.items() if number < len(right)} == {}
    assert [MISTAKES[number] for number in range(len(wrong)) if len(right) + number not in found] == []


def type_errors(texts: Sequence[str]) -> dict[int, str]:
    """What TypeScript reports about texts of files, by their number, as values of the types in types/schema.ts."""
    module = project() / "checked.ts"
    lines = [f"export const file{number}: File = {json.dumps(json.loads(text))};" for number, text in enumerate(texts)]
    module.write_text("\n".join((*lines, "import type { File } from './schema';")))
    done = run("node_modules/.bin/tsc", "--noEmit", "--pretty", "false")
    assert not done.stderr, done.stderr
    found = {int(line) - 1: text for line, text in ERROR.findall(done.stdout)}
    assert done.stdout.count(": error TS") == done.stdout.count("checked.ts("), done.stdout
    return found


def project() -> Path:
    """The directory with the sources and the packages of the lock file."""
    shutil.rmtree(PROJECT, ignore_errors=True)
    shutil.copytree(SOURCES, PROJECT)
    done = run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
    assert done.returncode == 0, done.stdout + done.stderr
    return PROJECT


def run(*words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in the project."""
    return programs.run(words, cwd=PROJECT, timeout=TIMEOUT)
