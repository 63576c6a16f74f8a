import os
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from memcached_operator.__main__ import main, parse_duration

OPTIONS = {
    "--leader-elect",
    "--metrics-bind-address",
    "--health-probe-bind-address",
    "--watch-namespaces",
    "--agent-image",
    "--default-image",
    "--cluster-domain",
    "--manage-certificates",
    "--certificate-lifetime",
    "--sync-period",
    "--max-retry-delay",
    "--log-level",
    "--log-format",
    "--version",
    "--help",
}
QUIET = ("--metrics-bind-address=0", "--health-probe-bind-address=0")


def run(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run the program in a subprocess with a minimal environment."""
    inherited = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LANG") if name in os.environ}
    command = [sys.executable, "-m", "memcached_operator", *arguments]
    env = {**inherited, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=env)


def test_help_lists_every_option() -> None:
    text = CliRunner().invoke(main, ["--help"]).output
    assert set(re.findall(r"^  (--[a-z-]+)", text, re.MULTILINE)) == OPTIONS


def test_help_describes_every_option_with_its_default() -> None:
    text = " ".join(CliRunner().invoke(main, ["--help"]).output.split())
    for option in main.params:
        assert isinstance(option, click.Option)
        assert option.help
        assert " ".join(option.help.split()) in text
    for default in (":8383", ":8081", "2160h", "600", "info", "text", "docker.io/library/memcached:"):
        assert f"default: {default}" in text


def test_help_and_version_need_no_cluster() -> None:
    for option in ("--help", "--version"):
        done = run(option, KUBECONFIG="missing")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout


INVALID = {
    "address without a port": ("--metrics-bind-address=localhost", "'localhost': invalid bind address"),
    "port too high": ("--health-probe-bind-address=:65536", "':65536': invalid bind address"),
    "duration without a unit": ("--certificate-lifetime=90", "'90': invalid duration"),
    "zero duration": ("--certificate-lifetime=0h", "'0h': invalid duration"),
    "negative duration": ("--certificate-lifetime=-1h", "'-1h': invalid duration"),
    "fractional duration": ("--certificate-lifetime=1.5h", "'1.5h': invalid duration"),
    "empty duration": ("--certificate-lifetime=", "'': invalid duration"),
    "duration too long": (
        "--certificate-lifetime=99999999999999h",
        "2160h, at most 3650 days",
    ),
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


LIFETIMES = {
    "90s": timedelta(seconds=90),
    "30m": timedelta(minutes=30),
    "2160h": timedelta(days=90),
    "87600h": timedelta(days=3650),
}


@pytest.mark.parametrize(("text", "expected"), LIFETIMES.items(), ids=LIFETIMES.keys())
def test_lifetime(text: str, expected: timedelta) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["", "h", "1d", "1 h", "87601h", "1h30m", "²h"])
def test_invalid_lifetime(text: str) -> None:
    with pytest.raises(click.BadParameter, match="invalid duration"):
        parse_duration(text)


def error_line(*arguments: str, **environment: str) -> str:
    """The only line on standard error; asserts exit code 1 and no traceback."""
    done = run(*QUIET, *arguments, **environment)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Traceback" not in done.stderr
    (line,) = done.stderr.splitlines()
    return line


def test_missing_kubeconfig_is_a_one_line_error(tmp_path: Path) -> None:
    assert "cannot read the cluster's credentials: " in error_line(KUBECONFIG=str(tmp_path / "missing"))


def test_invalid_kubeconfig_is_a_one_line_error(tmp_path: Path) -> None:
    broken = tmp_path / "config"
    broken.write_text("{ no: [yaml")
    assert "the kubeconfig is not valid: " in error_line(KUBECONFIG=str(broken))


def test_missing_configuration_is_a_one_line_error(tmp_path: Path) -> None:
    assert "no cluster is configured: set KUBECONFIG, or run in a cluster" in error_line(HOME=str(tmp_path))


def test_error_is_json_with_log_format_json(tmp_path: Path) -> None:
    line = error_line("--log-format=json", HOME=str(tmp_path))
    assert line.startswith('{"level": "error"')
