"""Draws dashboards with Grafana's own components in a headless Chromium, and checks their files with Grafana's types.

There is no Grafana: tools/dashboards/render has a page that shows one dashboard with the results in a file.
"""

import json
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

from dashboards.grafana import document
from dashboards.model import Dashboard
from grafana.pictures import shrink
from grafana.values import filled
from grafana.world import Series, World, panels
from support.servers import Quiet, serving
from support.waiting import BUSY
from unit.config.rendered import ROOT

SOURCES = ROOT / "tools/dashboards/render"
BUILD = ROOT / "build/dashboards"
PROJECT = BUILD / "render"
"""A copy of the page's sources, with what it needs from npm."""
TIMEOUT = BUSY * 300.0
"""Seconds for one command; the longest one takes 40 s on a quiet machine."""
POINTS = 240
"""Points of a series: Grafana's default for a panel of this width is similar."""
WIDTH = 1200
"""Pixels, as in tools/dashboards/render/src/main.tsx."""
BROWSERS = ("chromium", "google-chrome")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--virtual-time-budget=60000",
)
ERROR = re.compile(r"^src/checked\.ts\((\d+),.*?: error (.*(?:\n  .*)*)", re.MULTILINE)
PANEL = re.compile(r'data-panel="([^"]*)" data-empty="(true|false)"')


class MissingProgramError(Exception):
    """A program that these tests need is not installed."""


def project() -> Path:
    """The directory with the page's sources and packages, which are installed if the lock file has changed."""
    for program in ("node", "npm"):
        if not shutil.which(program):
            raise MissingProgramError(f"{program} is missing: install nodejs and npm")
    installed, lock = PROJECT / "installed.json", (SOURCES / "package-lock.json").read_text()
    shutil.copytree(SOURCES, PROJECT, dirs_exist_ok=True)
    if not installed.exists() or installed.read_text() != lock:
        _run("npm", "ci", "--legacy-peer-deps", "--ignore-scripts", "--no-audit", "--no-fund")
        installed.write_text(lock)
    return PROJECT


def type_errors(texts: Sequence[str]) -> dict[int, str]:
    """What TypeScript reports about texts of files, by their number, as values of the types in src/schema.ts."""
    module = project() / "src/checked.ts"
    lines = [f"export const file{number}: File = {json.dumps(json.loads(text))};" for number, text in enumerate(texts)]
    module.write_text("\n".join((*lines, "import type { File } from './schema';")))
    words = ("node_modules/.bin/tsc", "--noEmit", "--pretty", "false")
    try:
        done = subprocess.run(words, cwd=PROJECT, capture_output=True, text=True, check=False, timeout=TIMEOUT)
    finally:
        module.unlink()
    assert not done.stderr, done.stderr
    found = {int(line) - 1: text for line, text in ERROR.findall(done.stdout)}
    assert done.stdout.count(": error TS") == done.stdout.count("checked.ts("), done.stdout
    return found


def bundle() -> Path:
    """The directory with the built page."""
    project()
    _run("node_modules/.bin/vite", "build", "--logLevel=warn")
    return PROJECT / "dist"


def _run(*words: str) -> None:
    done = subprocess.run(words, cwd=PROJECT, capture_output=True, text=True, check=False, timeout=TIMEOUT)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}"


def results(world: World, dashboard: Dashboard, values: dict[str, str], minutes: float) -> Series:
    """The content of data.json: the dashboard, and the series of each query during the last minutes."""
    end = time.time()
    start = end - minutes * 60
    step = max(1.0, minutes * 60 / POINTS)
    found: dict[str, dict[str, Any]] = {}
    for panel in panels(dashboard):
        for target in panel["targets"]:
            times = (end, end) if target.get("instant") else (start, end)
            series = world.server.query_range(filled(target["expr"], values), *times, step)
            found.setdefault(str(panel["id"]), {})[target["refId"]] = series
    choices = ", ".join(f"{name}: {'All' if text == '.*' else text}" for name, text in values.items())
    return {
        "dashboard": document(dashboard),
        "results": found,
        "from": start,
        "to": end,
        "step": step,
        "choices": choices,
    }


class _Files(Quiet, SimpleHTTPRequestHandler):
    """Serves the files of a folder."""


def draw(folder: Path, data: Series, picture: Path) -> dict[str, bool]:
    """Draw a dashboard into a PNG file; returns for each panel whether it is empty."""
    (folder / "data.json").write_text(json.dumps(data))
    height = max(each["gridPos"]["y"] + each["gridPos"]["h"] for each in data["dashboard"]["panels"]) * 30 + 60
    size = f"--window-size={WIDTH},{height}"
    with serving(partial(_Files, directory=str(folder)), "127.0.0.1") as address:
        page = _chromium(size, "--dump-dom", f"http://{address}/")
        assert 'data-left="0"' in page, f"the page is not complete: {page[-2000:]}"
        _chromium(size, f"--screenshot={picture}", f"http://{address}/")
    shrink(picture)
    return {title: empty == "true" for title, empty in PANEL.findall(page)}


def _chromium(*words: str) -> str:
    browser = next((each for each in BROWSERS if shutil.which(each)), None)
    if not browser:
        raise MissingProgramError(f"install one of {', '.join(BROWSERS)}")
    command = (browser, *OPTIONS, f"--user-data-dir={BUILD / 'chromium'}", *words)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr
    return done.stdout
