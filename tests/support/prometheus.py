"""Debian's Prometheus, as a process on this machine that scrapes pods of the cluster."""

import os
import shutil
import subprocess
import urllib.error
import urllib.parse
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any
from urllib.request import urlopen

import msgspec
import yaml

from cluster.paths import cache_dir
from support import programs
from support.kube import eventually
from support.ports import free_port
from support.waiting import READY, REQUEST

PACKAGE = "prometheus"


def program(name: str = "prometheus") -> Path:
    """A program from Debian's package, which is downloaded once and not installed: `prometheus` or `promtool`."""
    folder = cache_dir() / PACKAGE
    found = folder / "usr/bin" / name
    if not found.exists():
        with TemporaryDirectory() as downloads:
            if os.geteuid() == 0:
                programs.output(["apt-get", "update", "-qq"])
            programs.output(["apt-get", "download", "-qq", PACKAGE], cwd=downloads)
            (package,) = Path(downloads).iterdir()
            programs.output(["dpkg-deb", "-x", package, folder])
    return found


def promtool() -> Path | None:
    """The promtool of the machine or, for root, of Debian. None where there is neither."""
    found = shutil.which("promtool")
    if found:
        return Path(found)
    return program("promtool") if shutil.which("apt-get") and os.geteuid() == 0 else None


class Prometheus:
    """A running Prometheus on loopback."""

    def __init__(self, port: int) -> None:
        self._port = port

    def query(self, text: str) -> list[dict[str, Any]]:
        """The series of an instant query, each with its labels (`metric`) and its `value`."""
        words = urllib.parse.urlencode({"query": text})
        try:
            answer = self._get(f"/api/v1/query?{words}")
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{text}: {error.read().decode()}") from error
        return answer["data"]["result"]

    def targets(self) -> list[dict[str, Any]]:
        """The scraped targets."""
        return self._get("/api/v1/targets?state=active")["data"]["activeTargets"]

    def is_ready(self) -> bool:
        """Whether it answers queries."""
        try:
            with urlopen(f"http://127.0.0.1:{self._port}/-/ready", timeout=REQUEST) as response:
                return response.status == 200
        except OSError:
            return False

    def _get(self, path: str) -> Any:
        with urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=REQUEST) as response:
            return msgspec.json.decode(response.read())


@contextmanager
def prometheus(scrape_configs: list[dict[str, Any]]) -> Generator[Prometheus]:
    """Run Prometheus during the block; it scrapes every second."""
    with server(scrape_configs, {"global": {"scrape_interval": "1s"}}) as started:
        yield started


@contextmanager
def server(
    scrape_configs: list[dict[str, Any]], more: Mapping[str, Any], rules: Mapping[str, str] = MappingProxyType({})
) -> Generator[Prometheus]:
    """Run Prometheus during the block. `more`: other sections of its configuration; `rules`: files with rules."""
    port = free_port()
    with TemporaryDirectory() as folder:
        for name, text in rules.items():
            (Path(folder) / name).write_text(text)
        config = {**more, "rule_files": [f"{folder}/{name}" for name in rules], "scrape_configs": scrape_configs}
        (Path(folder) / "prometheus.yml").write_text(yaml.safe_dump(config))
        words = [
            *(str(program()), f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"),
            *(f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"),
        ]
        with subprocess.Popen(words) as process:
            found = Prometheus(port)
            try:
                eventually(found.is_ready, READY, "Prometheus answers")
                yield found
            finally:
                process.kill()
