import logging
import os
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from memcached_api.images import Images
from memcached_api.kind import Kind
from memcached_api.registry import KINDS
from memcached_operator import app
from memcached_operator.__main__ import main, parse_duration
from memcached_operator.kinds import kinds as all_kinds
from memcached_operator.kinds import selected
from support import programs


def test_help_describes_every_option_with_its_default() -> None:
    text = " ".join(CliRunner().invoke(main, ["--help"]).output.split())
    for option in main.params:
        assert isinstance(option, click.Option)
        assert option.help
        assert " ".join(option.help.split()) in text
    for default in (":8383", ":8081", "2160h", "600", "info", "text", "docker.io/library/memcached:"):
        assert f"default: {default}" in text


INVALID = {
    "address without a port": ("--metrics-bind-address=localhost", "'localhost': invalid bind address"),
    "port too high": ("--health-probe-bind-address=:65536", "':65536': invalid bind address"),
    "duration without a unit": ("--certificate-lifetime=90", "'90': invalid duration"),
    "duration too long": ("--certificate-lifetime=99999999999999h", "2160h, at most 3650 days"),
    "pattern of namespaces": ("--watch-namespaces=team-*", "'team-*': invalid namespace name"),
    "kind without the one to which it refers": (
        "--kinds=memcachedproxy,appservice",
        "'memcachedproxy': its objects refer to objects of memcached; add this kind",
    ),
    "unknown kind": (
        "--kinds=memcached,redis",
        "'redis': unknown kind; use one or more of memcached, memcachedproxy, appservice",
    ),
    "image with a space": ("--default-image=A b", "'A b': invalid image reference"),
    "domain with a leading dot": ("--cluster-domain=.local", "'.local': invalid DNS domain"),
    "sync period below a second": ("--sync-period=0", "0.0 is not in the range x>=1"),
    "retry delay below a second": ("--max-retry-delay=0", "0.0 is not in the range x>=1"),
    "unknown log level": ("--log-level=loud", "'loud' is not one of 'debug', 'info', 'warning', 'error'"),
    "unknown log format": ("--log-format=xml", "'xml' is not one of 'text', 'json'"),
    "unknown option": ("--color", "No such option"),
    "positional argument": ("extra", "Got unexpected extra argument (extra)"),
}


@pytest.mark.parametrize(("argument", "message"), INVALID.values(), ids=INVALID.keys())
def test_invalid_usage_exits_2_with_a_message(argument: str, message: str) -> None:
    result = CliRunner().invoke(main, [argument])
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_invalid_environment_variable_exits_2_with_a_message() -> None:
    environment = {"MEMCACHED_OPERATOR_METRICS_BIND_ADDRESS": "nonsense"}
    result = CliRunner().invoke(main, [], env=environment)
    assert result.exit_code == 2
    assert "'nonsense': invalid bind address" in result.stderr


@pytest.fixture
def log_level() -> Iterator[None]:
    """The command sets the level of all logs of the process."""
    level = logging.getLogger().level
    yield
    logging.getLogger().setLevel(level)


KINDS_OF: dict[str, tuple[list[str], tuple[Kind[Any], ...]]] = {
    "nothing": ([], KINDS),
    "empty": (["--kinds="], KINDS),
    "one": (["--kinds=memcached"], KINDS[:1]),
    "another one": (["--kinds", "AppService"], KINDS[2:]),
    "two in another order": (["--kinds= appservice , Memcached,"], (KINDS[0], KINDS[2])),
    "a kind and the one to which it refers": (["--kinds=memcachedproxy,memcached"], KINDS[:2]),
}


@pytest.mark.usefixtures("log_level")
@pytest.mark.parametrize(("arguments", "kinds"), KINDS_OF.values(), ids=KINDS_OF.keys())
def test_kinds_are_all_or_those_that_are_named(
    arguments: list[str], kinds: tuple[Kind[Any], ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[app.ControllerOptions] = []

    async def run(options: app.ControllerOptions) -> None:
        started.append(options)

    monkeypatch.setattr(app, "run", run)
    assert CliRunner().invoke(main, [*arguments, "--log-level=error"]).exit_code == 0
    assert [each.kinds for each in started] == [kinds]
    controllers = selected(all_kinds(Images()), kinds)
    assert [each.resource.kind for each in controllers] == [kind.name for kind in kinds]


LIFETIMES = {
    "90s": timedelta(seconds=90),
    "30m": timedelta(minutes=30),
    "2160h": timedelta(days=90),
    "87600h": timedelta(days=3650),
}


@pytest.mark.parametrize(("text", "expected"), LIFETIMES.items(), ids=LIFETIMES.keys())
def test_lifetime(text: str, expected: timedelta) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["", "h", "0h", "-1h", "1.5h", "1d", "1 h", "87601h", "1h30m", "²h"])
def test_invalid_lifetime(text: str) -> None:
    with pytest.raises(click.BadParameter, match="invalid duration"):
        parse_duration(text)


def test_missing_configuration_is_an_error_of_one_line_in_the_format_of_the_logs(tmp_path: Path) -> None:
    options = ("--metrics-bind-address=0", "--health-probe-bind-address=0", "--log-format=json")
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "memcached_operator", *options]
    done = programs.run(command, env=environment, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith('{"level": "error"')
    assert "no cluster is configured: set KUBECONFIG, or run in a cluster" in line
