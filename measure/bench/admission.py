"""Cost of a review: latency, CPU and memory of the admission process, idle and in a storm."""

import asyncio
import base64
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import yaml

from bench import load
from bench.environment import LOGS, Environment
from bench.programs import LAUNCH, Program, running, wait_until
from bench.reviews import HOST
from bench.rounds import Figures
from integration.control_plane import ROOT
from memcached_operator.certificates import pki
from memcached_operator.kube.client import ApiError
from memcached_operator.kube.resource import Object
from support.ports import free_port

MANIFESTS = ROOT / "config/webhook/manifests.yaml"
IDLE = 2000
"""Number of reviews whose latency is measured without other load."""
PERIOD = 0.01
"""Seconds between two measured reviews during the storm."""
REGISTRATION_TIMEOUT = 30.0


@dataclass
class Admission:
    """A running admission process, its port, and the file with its CA."""

    program: Program
    port: int
    ca: Path

    def command(self, *arguments: str) -> list[str]:
        """Command line of a client that sends reviews."""
        return [sys.executable, "-m", "bench.reviews", str(self.port), str(self.ca), *arguments]

    async def reviews(self, kind: str, count: int) -> list[float]:
        """Send reviews one after the other; returns the latency of each, in seconds."""
        process = await asyncio.create_subprocess_exec(
            *self.command(kind, str(count)), stdout=subprocess.PIPE, env=_environment()
        )
        output, _ = await process.communicate()
        return msgspec.json.decode(output, type=list[float])


def _environment() -> dict[str, str]:
    return {"PYTHONPATH": ":".join(filter(None, sys.path))}


@asynccontextmanager
async def admission() -> AsyncGenerator[Admission]:
    """Start the admission process as in the image, with a new certificate."""
    folder = LOGS / "serving-certs"
    folder.mkdir(parents=True, exist_ok=True)
    pair = pki.issue([HOST], timedelta(days=1), datetime.now(UTC))
    for name, content in (("tls.crt", pair.certificate), ("tls.key", pair.key), ("ca.crt", pair.ca)):
        (folder / name).write_bytes(content)
    port, probes, metrics = free_port(), free_port(), free_port()
    options = [f"--webhook-port={port}", f"--webhook-cert-path={folder}", "--shutdown-delay=0"]
    options += [f"--metrics-bind-address=127.0.0.1:{metrics}", f"--health-probe-bind-address=127.0.0.1:{probes}"]
    command = [sys.executable, "-c", LAUNCH.format("memcached_webhooks.__main__"), *options]
    with running(command, LOGS / "webhook.log", metrics) as program:
        await wait_until(
            lambda: program.metric("memcached_webhooks_certificate_expiry_timestamp_seconds") > 0,
            30,
            "the admission process serves",
        )
        yield Admission(program, port, folder / "ca.crt")
        program.stop()


async def costs(admission_process: Admission, count: int) -> Figures:
    """Latency and CPU of each kind of review, and memory after `many` reviews."""
    figures: Figures = {}
    for kind in ("validate", "mutate"):
        await admission_process.reviews(kind, IDLE // 10)
        used = admission_process.program.cpu()
        figures[f"{kind}, idle, s"] = await admission_process.reviews(kind, IDLE)
        figures[f"{kind}, CPU per review, µs"] = 1e6 * (admission_process.program.cpu() - used) / IDLE
    figures["RSS before, MiB"] = admission_process.program.rss()
    used = admission_process.program.cpu()
    await asyncio.gather(*(admission_process.reviews(kind, count // 2) for kind in ("validate", "mutate")))
    figures["reviews per second and core"] = count / (admission_process.program.cpu() - used)
    figures["RSS after many, MiB"] = admission_process.program.rss()
    return figures


async def in_storm(env: Environment, admission_process: Admission, count: int) -> Figures:
    """Latency of reviews while the API server sends reviews for each object of a storm."""
    namespace = await env.namespace("reviewed")
    await _register(env, admission_process)
    probe = await asyncio.create_subprocess_exec(
        *admission_process.command("validate", "0", str(PERIOD)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=_environment(),
    )
    await load.storm(env.client, namespace, count, lambda _: None)
    output, _ = await probe.communicate(b"")
    await _unregister(env)
    return {"validate, storm, s": msgspec.json.decode(output, type=list[float])}


def _configurations() -> list[Object]:
    return [obj for obj in yaml.safe_load_all(MANIFESTS.read_text()) if obj["kind"].endswith("WebhookConfiguration")]


async def _register(env: Environment, admission_process: Admission) -> None:
    """Register the webhooks of config/webhook with this URL, and wait until the API server calls them."""
    bundle = base64.b64encode(admission_process.ca.read_bytes()).decode()
    for obj in _configurations():
        for webhook in obj["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = {"url": f"https://{HOST}:{admission_process.port}{path}", "caBundle": bundle}
        await env.client.request("POST", _path(obj), obj)
    async with asyncio.timeout(REGISTRATION_TIMEOUT):
        while not await _is_registered(env):  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.2)


async def _is_registered(env: Environment) -> bool:
    """Whether the API server calls the webhooks: an object without an image gets one."""
    obj = load.memcached("default", "dry-run")
    del obj["spec"]["image"]
    try:
        output = await env.client.request("POST", f"{load.path('default')}", obj, params={"dryRun": "All"})
    except ApiError:
        return False
    return "image" in output["spec"]


async def _unregister(env: Environment) -> None:
    for obj in _configurations():
        await env.client.request("DELETE", f"{_path(obj)}/{obj['metadata']['name']}")


def _path(obj: Object) -> str:
    return f"/apis/admissionregistration.k8s.io/v1/{obj['kind'].lower()}s"
