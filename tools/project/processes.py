"""The operator as processes of this shell, for a cluster whose pods are simulated. Needs the packages of .venv."""

import base64
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from socket import create_server
from typing import Any

import yaml

from cluster.errors import ClusterError
from cluster.public.components import die_with_parent
from memcached_operator.certificates.pki import issue
from project import deployment, local
from project.environment import ROOT, kubectl, show_kubectl, signals_ignored

LOGS = "build/demo"
HOST = "localhost"
START_SECONDS = 60.0
STOP_SECONDS = 15.0
POLL_SECONDS = 0.1


@contextmanager
def running_operator() -> Generator[None, None, None]:
    """Install the CRDs; run controller and webhooks, and register the webhooks, until the block ends.

    Raises ClusterError with the end of the log of a process that does not start.
    """
    deployment.install()
    pair = issue([HOST], timedelta(days=1), datetime.now(UTC))
    port = _free_port()
    with tempfile.TemporaryDirectory() as folder:
        for name, content in (("tls.crt", pair.certificate), ("tls.key", pair.key)):
            (Path(folder) / name).write_bytes(content)
        serving = (f"--webhook-port={port}", f"--webhook-cert-path={folder}", "--shutdown-delay=0")
        with _process("memcached_webhooks", *serving), _process("memcached_operator"):
            print(f"The controller and the webhooks are running; their logs are in {LOGS}.", flush=True)
            configurations = webhook_configurations(f"https://{HOST}:{port}", pair.certificate)
            with _applied(yaml.safe_dump_all(configurations)):
                yield


def webhook_configurations(url: str, authority: bytes) -> list[dict[str, Any]]:
    """The webhook configurations of config/default, which call a URL in place of a Service."""
    objects: list[dict[str, Any]] = list(yaml.safe_load_all(kubectl("kustomize", "config/default")))
    found = [obj for obj in objects if obj["kind"].endswith("WebhookConfiguration")]
    for webhook in (webhook for obj in found for webhook in obj["webhooks"]):
        path = webhook["clientConfig"]["service"]["path"]
        webhook["clientConfig"] = {"url": f"{url}{path}", "caBundle": base64.b64encode(authority).decode()}
    return found


@contextmanager
def _applied(objects: str) -> Generator[None, None, None]:
    """Apply objects, and delete them at the end: without the process, the webhooks would deny every change."""
    show_kubectl(*deployment.APPLY, "-f", "-", stdin=objects)
    try:
        yield
    finally:
        with signals_ignored():
            kubectl("delete", "--ignore-not-found", "-f", "-", stdin=objects)


@contextmanager
def _process(program: str, *options: str) -> Generator[None, None, None]:
    """Run one of our programs, ready to serve, until the block ends."""
    log, probes = ROOT / LOGS / f"{program}.log", _free_port()
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable,
        "-m",
        program,
        "--metrics-bind-address=0",
        f"--health-probe-bind-address=127.0.0.1:{probes}",
    ]
    environ = {**os.environ, local.VARIABLE: local.memcached_image((ROOT / local.IMAGE_PATCH).read_text())}
    with log.open("wb") as out:
        # In its own session: after Ctrl-C the webhooks must respond until they are removed.
        child = subprocess.Popen(
            [*command, *options], cwd=ROOT, env=environ, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            start_new_session=True, preexec_fn=die_with_parent,
        )  # fmt: skip
    try:
        _wait_ready(child, f"http://127.0.0.1:{probes}/readyz", log)
        yield
    finally:
        child.terminate()
        try:
            child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _wait_ready(child: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not _responds(url):
        if child.poll() is not None or time.monotonic() > deadline:
            lines = log.read_text(errors="replace").splitlines()[-5:]
            raise ClusterError("\n    ".join((f"{log.stem} did not start; {log} ends with:", *lines)))
        time.sleep(POLL_SECONDS)


def _responds(url: str) -> bool:
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=5):
            return True
    except OSError:
        return False


def _free_port() -> int:
    with create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]
