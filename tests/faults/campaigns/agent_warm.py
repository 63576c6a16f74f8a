"""T15, too: the warm gate, while the agent or memcached is restarted and the annotation of the pod changes.

memcached is simulated: its clients work at a rate that the scenario sets, in real time.
"""

import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path

import aiohttp

from faults.case import Case, References
from faults.process import Operator, supervised
from faults.sandbox import TIMEOUT_FACTOR, Sandbox, wait_until
from support.ports import free_port
from support.volumes import Volume
from unit.agent.memcacheds import FakeMemcached
from unit.agent.warming import Process, annotations

PATIENT = "hitRatio=80,timeout=900,minRequests=100"
IMPATIENT = "hitRatio=80,timeout=20,minRequests=100"
IN_TIME = 10.0
"""Seconds from a change until the agent has seen it: it polls every 5 s."""
OBSERVED = 30.0
"""Seconds until the agent has seen enough to decide by the hit ratio: it needs 10 s of samples."""
RATE = 1000
"""Gets per second."""
Probe = tuple[int, str]
"""The status and the body of a response of /readyz."""


class Pod:
    """A memcached whose clients work while it runs. `hits`: their hits per second; the other gets are misses."""

    def __init__(self) -> None:
        self.memcached = FakeMemcached(answer=self._answer)
        self.process = Process()
        self.hits = 0
        self._last = time.monotonic()

    def replace(self, process: Process) -> None:
        """Replace the process of memcached, and close its connections."""
        self.process = process
        self.memcached.close_all()

    def _answer(self, line: str) -> bytes | None:
        seconds = int(time.monotonic() - self._last)  # memcached's clock has whole seconds
        self._last += seconds
        self.process.work(seconds, self.hits, RATE - self.hits)
        return self.process.answer(line)


@dataclass
class Setup:
    """An agent, its memcached and the files of the pod."""

    sandbox: Sandbox
    agent: Operator
    pod: Pod
    podinfo: Volume
    port: int
    session: aiohttp.ClientSession

    async def get(self, path: str) -> Probe:
        """The status and the body of a response; 0 if there is none."""
        try:
            async with self.session.get(f"http://127.0.0.1:{self.port}{path}") as response:
                return response.status, await response.text()
        except aiohttp.ClientError:
            return 0, ""

    async def answer(self) -> Probe | None:
        """The response of /readyz, if the agent is connected to memcached."""
        found = await self.get("/readyz")
        return found if found[0] == HTTPStatus.OK or "not warm yet" in found[1] else None

    async def decision(self) -> Probe | None:
        """The response of /readyz, if it depends on a hit ratio."""
        found = await self.answer()
        return found if found and (found[0] == HTTPStatus.OK or "hit ratio" in found[1]) else None

    async def is_ready(self) -> bool:
        """Whether the pod is ready."""
        return (await self.get("/readyz"))[0] == HTTPStatus.OK

    def annotate(self, value: str | None) -> None:
        """Replace the annotation of the pod."""
        self.podinfo.write({"annotations": annotations(value)})

    async def warm_up(self) -> None:
        """Let memcached become warm."""
        self.pod.hits = RATE
        await wait_until(self.is_ready, OBSERVED, "memcached is warm")
        self.pod.hits = 0

    async def check_waits(self, probe: Callable[[], Awaitable[Probe | None]], why: str) -> str:
        """Check that the pod is not ready at the first response of a probe; returns the sentence."""
        status, text = await wait_until(probe, OBSERVED, "the agent reports what it knows of memcached")
        self.sandbox.check(status == HTTPStatus.SERVICE_UNAVAILABLE, f"the pod is ready although {why}")
        return text


Scenario = Callable[[Setup], Awaitable[None]]


async def run(sandbox: Sandbox, _: References, scenario: Scenario) -> None:
    """One scenario. The pod is not ready before it; without the annotation, it is afterwards."""
    with tempfile.TemporaryDirectory() as directory:
        pod, podinfo, state, port = Pod(), Volume(Path(directory) / "podinfo"), Path(directory) / "state", free_port()
        podinfo.write({"annotations": annotations(PATIENT)})
        state.mkdir()
        arguments = [
            *(f"--memcached=127.0.0.1:{pod.memcached.port}", f"--metrics-bind-address=127.0.0.1:{port}"),
            *(f"--annotations-file={podinfo.directory}/annotations", f"--state-directory={state}"),
        ]
        log = sandbox.operator.log.with_suffix(".agent.log")
        agent = Operator(arguments, {}, sandbox.settings.sources, log, "memcached_agent")
        timeout = aiohttp.ClientTimeout(total=30 * TIMEOUT_FACTOR)
        async with pod.memcached.running(), supervised(agent), aiohttp.ClientSession(timeout=timeout) as session:
            agent.start()
            setup = Setup(sandbox, agent, pod, podinfo, port, session)
            await setup.check_waits(setup.answer, "memcached has just started")
            await scenario(setup)
            sandbox.check(await setup.get("/livez") == (200, "ok\n"), "the agent is not live")
            setup.annotate(None)
            await wait_until(setup.is_ready, IN_TIME, "the pod without a gate is ready")
            sandbox.check("Traceback" not in agent.log_text(), "there is a traceback in the log")
            sandbox.check(not agent.exits, "the agent has exited")


async def latch(setup: Setup) -> None:
    """The agent is killed while memcached is warm, and has many misses when the agent is back."""
    await setup.warm_up()
    starts = len(setup.agent.starts)
    setup.agent.kill()

    async def answer() -> Probe | None:
        return await setup.answer() if len(setup.agent.starts) > starts else None

    status, text = await wait_until(answer, OBSERVED, "the agent is back")
    setup.sandbox.check(status == HTTPStatus.OK, f"a restart of the agent makes a warm pod wait: {text}")


async def last_minute(setup: Setup) -> None:
    """memcached had many hits before, and now has only misses."""
    setup.pod.process.hits += 10**9
    setup.agent.kill()
    text = await setup.check_waits(setup.decision, "memcached has only misses")
    setup.sandbox.check("hit ratio 0 % of" in text, f"the hit ratio is not that of the last minute: {text}")


async def timeout(setup: Setup) -> None:
    """memcached has only misses until the time is over."""
    setup.annotate(IMPATIENT)
    await wait_until(setup.is_ready, OBSERVED, "the timeout makes the pod ready")
    setup.sandbox.check("(timeout)" in setup.agent.log_text(), "the log has no warning about the timeout")


async def replaced(setup: Setup, *, warm_restart: bool) -> None:
    """A warm memcached is restarted, and then has misses. It has the process ID of the one before.

    `warm_restart`: and its clock, too.
    """
    await setup.warm_up()
    time_now, connections = setup.pod.process.time, setup.pod.memcached.connections
    started = setup.pod.process.started if warm_restart else time_now
    setup.pod.replace(Process(started=started, time=time_now, cpu=0.01))

    async def answer() -> Probe | None:
        return await setup.answer() if setup.pod.memcached.connections > connections else None

    await setup.check_waits(answer, "its memcached is another process")


async def invalid(setup: Setup) -> None:
    """The annotation becomes invalid while memcached is not warm: the pod must not wait for it."""
    setup.annotate("hitRatio=high")
    await wait_until(setup.is_ready, IN_TIME, "the pod with an invalid gate is ready")
    _, text = await setup.get("/healthz")
    setup.sandbox.check("warm-up is invalid" in text, f"/healthz does not report the annotation: {text}")


SCENARIOS: dict[str, Scenario] = {
    "warm-latch": latch,
    "warm-last-minute": last_minute,
    "warm-timeout": timeout,
    "warm-new-process": partial(replaced, warm_restart=False),
    "warm-restart": partial(replaced, warm_restart=True),
    "warm-invalid-gate": invalid,
}


def cases() -> list[Case]:
    """One case per scenario."""
    return [Case(f"T15/{name}", partial(run, scenario=scenario)) for name, scenario in SCENARIOS.items()]
