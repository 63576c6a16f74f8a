"""What a review costs: time, CPU and memory of the admission process, idle and in a storm."""

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
from bench.ground import LOGS, Ground
from bench.programs import LAUNCH, Program, free_port, running, wait
from bench.reviews import HOST
from bench.rounds import Figures
from integration.control_plane import ROOT
from memcached_operator.certificates import pki
from memcached_operator.kube.client import ApiError
from memcached_operator.kube.resource import Object

MANIFESTS = ROOT / "config/webhook/manifests.yaml"
IDLE = 2000
"""Reviews of which the latency is taken while nothing else goes on."""
PERIOD = 0.01
"""Seconds between two reviews that are timed during the storm."""
REGISTERED = 30.0


@dataclass
class Admission:
    """A running admission process, and the CA its certificate is trusted by."""

    program: Program
    port: int
    ca: Path

    def command(self, *arguments: str) -> list[str]:
        """The command of a client that sends reviews."""
        return [sys.executable, "-m", "bench.reviews", str(self.port), str(self.ca), *arguments]

    async def reviews(self, kind: str, count: int) -> list[float]:
        """Send reviews one after the other; the seconds of each."""
        process = await asyncio.create_subprocess_exec(
            *self.command(kind, str(count)), stdout=subprocess.PIPE, env=_environment()
        )
        answer, _ = await process.communicate()
        return msgspec.json.decode(answer, type=list[float])


def _environment() -> dict[str, str]:
    return {"PYTHONPATH": ":".join(filter(None, sys.path))}


@asynccontextmanager
async def admission() -> AsyncGenerator[Admission]:
    """The admission process as shipped, with a certificate of its own."""
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
        await wait(lambda: program.metric("memcached_webhooks_certificate_expiry_timestamp_seconds") > 0, 30, "serving")
        yield Admission(program, port, folder / "ca.crt")
        program.stop()


async def costs(there: Admission, many: int) -> Figures:
    """Latency and CPU of each kind of review, and memory after many."""
    figures: Figures = {}
    for kind in ("validate", "mutate"):
        await there.reviews(kind, IDLE // 10)
        used = there.program.cpu()
        figures[f"{kind}, idle, s"] = await there.reviews(kind, IDLE)
        figures[f"{kind}, CPU per review, µs"] = 1e6 * (there.program.cpu() - used) / IDLE
    figures["RSS before, MiB"] = there.program.rss()
    used = there.program.cpu()
    await asyncio.gather(*(there.reviews(kind, many // 2) for kind in ("validate", "mutate")))
    figures["reviews per second and core"] = many / (there.program.cpu() - used)
    figures["RSS after many, MiB"] = there.program.rss()
    return figures


async def in_storm(on: Ground, there: Admission, count: int) -> Figures:
    """Latency of reviews while the API server has every object of a storm reviewed."""
    namespace = await on.namespace("reviewed")
    await _register(on, there)
    probe = await asyncio.create_subprocess_exec(
        *there.command("validate", "0", str(PERIOD)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=_environment(),
    )
    await load.storm(on.client, namespace, count, lambda _: None)
    answer, _ = await probe.communicate(b"")
    await _unregister(on)
    return {"validate, storm, s": msgspec.json.decode(answer, type=list[float])}


def _configurations() -> list[Object]:
    return [obj for obj in yaml.safe_load_all(MANIFESTS.read_text()) if obj["kind"].endswith("WebhookConfiguration")]


async def _register(on: Ground, there: Admission) -> None:
    """Have the API server call it as config/webhook says, by address; wait until it does."""
    bundle = base64.b64encode(there.ca.read_bytes()).decode()
    for obj in _configurations():
        for webhook in obj["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = {"url": f"https://{HOST}:{there.port}{path}", "caBundle": bundle}
        await on.client.request("POST", _path(obj), obj)
    async with asyncio.timeout(REGISTERED):
        while not await _refuses(on):  # noqa: ASYNC110 - what is waited for happens in the API server
            await asyncio.sleep(0.2)


async def _refuses(on: Ground) -> bool:
    """Whether the API server has the webhook's answer: an object without an image gets one."""
    obj = load.memcached("default", "asked")
    del obj["spec"]["image"]
    try:
        answer = await on.client.request("POST", f"{load.path('default')}", obj, params={"dryRun": "All"})
    except ApiError:
        return False
    return "image" in answer["spec"]


async def _unregister(on: Ground) -> None:
    for obj in _configurations():
        await on.client.request("DELETE", f"{_path(obj)}/{obj['metadata']['name']}")


def _path(obj: Object) -> str:
    return f"/apis/admissionregistration.k8s.io/v1/{obj['kind'].lower()}s"
