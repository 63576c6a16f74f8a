"""A fake cluster for the commands. kubectl responds from a directory, memcached listens on loopback."""

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kubectl_memcached.cli import cli
from kubectl_memcached.errors import PluginError
from kubectl_memcached.memcached.connection import TIMEOUT
from support import stub_memcached
from support.fake_kubectl import FakeKubectl
from support.stub_memcached import Stub
from unit.plugin.samples import METRICS, RESOURCE, SETTINGS, memcached, pod, stats

Object = dict[str, Any]


@dataclass
class Result:
    """The exit code and the output of a command."""

    code: int
    output: str
    error: str = field(compare=False)
    """On a busy machine, it also has the progress."""


@dataclass
class World:
    """A cluster with a Memcached of two pods, and a scripted memcached for each."""

    kubectl: FakeKubectl
    cr: Object = field(default_factory=memcached)
    stubs: list[Stub] = field(default_factory=list[Stub])
    responses: dict[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])
    pods: list[Object] = field(default_factory=list[Object])

    def use(self, cr: Object, number: int = 2, **replies: str) -> None:
        """Set the Memcached of the cluster and the number of its pods.

        `replies`: to `stats` by its argument. `stats`: the reply without one.
        """
        commands = {"stats" if name == "stats" else f"stats {name}": reply for name, reply in replies.items()}
        self.cr, self.pods = cr, [pod(slot, cr) for slot in range(number)]
        prepared = {"stats": stats(), "stats settings": SETTINGS, **commands}
        self.stubs = [Stub(dict(prepared), login="") for _ in self.pods]


Run = Callable[..., Result]


def invoked(words: Sequence[str], text: str) -> Result:
    """The result of a command line. `text`: its standard input."""
    result = CliRunner().invoke(cli, words, input=text)
    if isinstance(result.exception, PluginError):
        return Result(result.exception.code, result.stdout, str(result.exception))
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Result(result.exit_code, result.stdout, result.stderr)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A cluster with one healthy Memcached without an agent."""
    cluster = World(FakeKubectl(tmp_path), responses={"/metrics": (200, METRICS), "/healthz": (200, "ok\n")})
    cluster.use(memcached())
    return cluster


@pytest.fixture
def run(world: World, monkeypatch: pytest.MonkeyPatch) -> Generator[Run]:
    """Run a command in the cluster, 80 columns wide and without colors."""
    with ExitStack() as stack:

        def invoke(*words: str, text: str = "", **variables: str) -> Result:
            kubectl = world.kubectl
            kubectl.objects = {RESOURCE: [world.cr], "pods": world.pods, **kubectl.objects}
            agent = stack.enter_context(stub_memcached.agent(world.responses))
            for running_pod, stub in zip(world.pods, world.stubs, strict=True):
                port = stack.enter_context(stub_memcached.memcached(stub))
                kubectl.ports[running_pod["metadata"]["name"]] = {11211: port, 11210: port, 9150: agent}
            for name, value in {"COLUMNS": "80", **kubectl.environment(), **variables}.items():
                monkeypatch.setenv(name, value)
            return invoked(words, text)

        yield invoke
        _wait_for_pods()


def _wait_for_pods() -> None:
    """Wait until no thread of a command that ended early, with one error for all pods, reads a pod any more.

    Without their memcached, these threads would make other messages, during the next test.
    """
    for thread in threading.enumerate():
        if thread.name.startswith("ThreadPoolExecutor"):
            thread.join(TIMEOUT)
            assert not thread.is_alive(), thread.name
