"""The command line: flags, their environment variables, and invalid values."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from memcached_api.images import Images
from memcached_api.memcached.types import MEMCACHED
from memcached_process.addresses import Address
from memcached_webhooks import __main__ as command
from memcached_webhooks.server import AdmissionOptions


@pytest.fixture(autouse=True)
def root_logger() -> Iterator[None]:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = before


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[AdmissionOptions]:
    """The options that the process is started with."""
    received: list[AdmissionOptions] = []

    async def run(options: AdmissionOptions) -> None:
        received.append(options)

    monkeypatch.setattr(command, "run", run)
    return received


def test_defaults(started: list[AdmissionOptions]):
    assert CliRunner().invoke(command.main, [], env={"RELATED_IMAGE_MEMCACHED": None}).exit_code == 0
    directory = Path("/tmp/k8s-webhook-server/serving-certs")
    assert started == [
        AdmissionOptions(
            images=Images("docker.io/library/memcached:1.6.45"),
            certificate=directory / "tls.crt",
            key=directory / "tls.key",
            webhook=Address(None, 9443),
            probes=Address(None, 8081),
            metrics=Address(None, 8383),
            shutdown_delay=3.0,
        )
    ]


FLAGS = {
    "webhook-port": "1",
    "webhook-cert-path": "/c",
    "webhook-cert-name": "a",
    "webhook-cert-key": "b",
    "kinds": "memcached",
    "default-image": "m:1",
    "agent-image": "a:1",
    "metrics-bind-address": "0",
    "health-probe-bind-address": ":2",
    "shutdown-delay": "0.5",
    "log-format": "json",
    "log-level": "debug",
}
IMAGES = {"default-image": "RELATED_IMAGE_MEMCACHED", "agent-image": "RELATED_IMAGE_AGENT"}
"""The flags whose environment variables OLM requires."""
GIVEN: dict[str, tuple[list[str], dict[str, str]]] = {
    "flags": ([f"--{name}={value}" for name, value in FLAGS.items()], {}),
    "environment": (
        [],
        {
            IMAGES.get(name, f"MEMCACHED_WEBHOOKS_{name.replace('-', '_').upper()}"): value
            for name, value in FLAGS.items()
        },
    ),
}


@pytest.mark.parametrize(("arguments", "environment"), GIVEN.values(), ids=GIVEN.keys())
def test_flags_and_environment_variables(
    started: list[AdmissionOptions], arguments: list[str], environment: dict[str, str]
):
    result = CliRunner().invoke(command.main, arguments, env=environment)
    assert result.exit_code == 0, result.output
    assert started == [
        AdmissionOptions(
            *(Images("m:1", "a:1"), Path("/c/a"), Path("/c/b"), Address(None, 1), Address(None, 2), None, 0.5),
            kinds=(MEMCACHED,),
        )
    ]
    assert logging.getLogger().level == logging.DEBUG


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--default-image=A b", "'A b': invalid image reference"),
        ("--kinds=redis", "'redis': unknown kind; use one or more of memcached, memcachedproxy, appservice"),
        ("--metrics-bind-address=x", "'x': invalid bind address"),
        ("--shutdown-delay=-1", "-1.0 is not in the range"),
        ("--log-level=loud", "'loud' is not one of"),
    ],
)
def test_invalid_values(argument: str, message: str):
    result = CliRunner().invoke(command.main, [argument])
    assert result.exit_code == 2
    assert message in result.output


def test_address_in_use_exits_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    async def run(_: AdmissionOptions) -> None:
        raise OSError("address in use")

    monkeypatch.setattr(command, "run", run)
    assert CliRunner().invoke(command.main, []).exit_code == 1
