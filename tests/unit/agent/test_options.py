"""The command line, logging and the version."""

import json
import logging
import re
import sys
from pathlib import Path

import pytest

from memcached_agent import logs, options
from memcached_agent.addresses import Address, parse_address
from memcached_agent.extstore import families as extstore
from memcached_agent.memcached.errors import REASONS
from memcached_agent.metrics import agent, arguments, memory, reloads, restarts, warm
from memcached_agent.metrics.exposition import Metric
from memcached_agent.version import version
from memcached_api.shared.monitoring import METRICS_PORT, PROBES_PORT

from .processes import finished

OPTIONS = {
    *("--memcached", "--metrics-bind-address", "--probes-bind-address"),
    *("--tls-directory", "--tls-port", "--metrics-tls", "--users-file", "--insight"),
    *("--annotations-file", "--state-directory", "--arguments-file", "--items-file", "--extstore-volume"),
    *("--log-level", "--log-format", "--version", "--help"),
}
TLS = ["--tls-directory=/tls", "--tls-port=11212"]
POD = ["--annotations-file=/etc/podinfo/annotations", "--state-directory=/state"]
RESTART = ["--arguments-file=/etc/podinfo/args", "--items-file=/cache/items"]


def test_help_describes_every_option_with_its_default() -> None:
    done = finished("--help")
    assert (done.returncode, done.stderr) == (0, "")
    text = " ".join(done.stdout.split())
    found = set(re.findall(r"^  (?:-h, )?(--[a-z-]+)", done.stdout, re.MULTILINE))
    assert found == OPTIONS
    for default in ("127.0.0.1:11211", ":9150", ":9151", "info", "text"):
        assert f"(default: {default})" in text


def test_version_is_that_of_the_project() -> None:
    done = finished("--version")
    assert (done.returncode, done.stdout) == (0, f"memcached-agent {version()}\n")
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", version())


def test_version_of_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path / "missing"), str(tmp_path)])
    assert version() == "unknown"
    (tmp_path / "memcached_operator-1.2.3.dist-info").mkdir()
    assert version() == "1.2.3"


INVALID = {
    "unknown option": (["--color"], "unrecognized arguments: --color"),
    "abbreviated option": (["--mem=127.0.0.1:1"], "unrecognized arguments: --mem=127.0.0.1:1"),
    "name of a host": (["--memcached=localhost:11211"], "'localhost:11211': invalid address; use IP:PORT"),
    "no host": (["--memcached=:11211"], "':11211': invalid address; use IP:PORT"),
    "long": (["--memcached=" + "1" * 1000], f"'{'1' * 64}': invalid address"),
    "port 0": (["--metrics-bind-address=:0"], "':0': invalid address; use IP:PORT or :PORT, with a port from 1 to"),
    "high port": (["--metrics-bind-address=:65536"], "':65536': invalid address"),
    "no port": (["--probes-bind-address=127.0.0.1"], "'127.0.0.1': invalid address; use IP:PORT or :PORT"),
    "directory without a port": (TLS[:1], "--tls-directory and --tls-port require each other"),
    "TLS without a directory": (["--metrics-tls"], "--metrics-tls requires --tls-directory"),
    "annotations without a state": (POD[:1], "--annotations-file and --state-directory require each other"),
    "arguments without items": ([*POD, RESTART[0]], "--arguments-file and --items-file require each other"),
    "arguments without annotations": (RESTART, "--arguments-file requires --annotations-file"),
    "relative state directory": (["--state-directory=state"], "'state': use an absolute path"),
    "relative directory": (["--tls-directory=tls"], "'tls': use an absolute path of at most 256 characters"),
    "long path": (["--users-file=/" + "x" * 256], "use an absolute path of at most 256 characters"),
    "control character": (["--users-file=/a\n"], "'/a\\n': use an absolute path"),
    "TLS port 0": ([TLS[0], "--tls-port=0"], "'0': use a port from 1 to 65535"),
    "TLS port with a host": ([TLS[0], "--tls-port=:1"], "':1': use a port from 1 to 65535"),
    "unknown level": (["--log-level=loud"], "invalid choice: 'loud' (choose from"),
}


@pytest.mark.parametrize(("arguments", "message"), INVALID.values(), ids=INVALID.keys())
def test_invalid_usage_exits_2_with_one_sentence(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        options.parse_options(arguments)
    assert raised.value.code == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("memcached-agent: ")
    assert message in err
    assert len(err) < 300


def test_invalid_usage_of_the_program_exits_2() -> None:
    done = finished("--memcached=nonsense")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


def test_defaults() -> None:
    addresses = (Address("127.0.0.1", 11211), Address("", METRICS_PORT), Address("", PROBES_PORT))
    assert options.parse_options([]) == options.AgentOptions(*addresses, "info", "text")


def test_reloads() -> None:
    assert options.parse_options(TLS).tls == options.TlsOptions("/tls", 11212, metrics=False)
    found = options.parse_options([*TLS, "--metrics-tls", "--users-file=/auth/users"])
    assert (found.tls, found.users_file) == (options.TlsOptions("/tls", 11212, metrics=True), "/auth/users")


def test_extstore() -> None:
    assert options.parse_options(["--extstore-volume=/extstore/"]).extstore == "/extstore"


def test_pod() -> None:
    assert options.parse_options(POD).pod == options.Pod("/etc/podinfo/annotations", "/state")
    restart = options.Restart("/etc/podinfo/args", "/cache/items")
    assert options.parse_options([*POD, *RESTART]).pod == options.Pod("/etc/podinfo/annotations", "/state", restart)


ADDRESSES = {"127.0.0.1:1": Address("127.0.0.1", 1), "[::1]:65535": Address("::1", 65535), ":9150": Address("", 9150)}


@pytest.mark.parametrize(("text", "expected"), ADDRESSES.items())
def test_address(text: str, expected: Address) -> None:
    assert parse_address(text, host_required=False) == expected
    assert str(expected) == text


@pytest.mark.parametrize("text", ["::1:1", "[127.0.0.1]:1", "[::1:1", "::1]:1", "1.2.3:1", "a:1", "[]:1", "1.2.3.4:x"])
def test_invalid_address(text: str) -> None:
    with pytest.raises(ValueError, match="invalid address"):
        parse_address(text, host_required=False)


@pytest.mark.parametrize("log_format", logs.FORMATS)
def test_log_lines(log_format: str, capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        logs.configure("warning", log_format)
        log = logging.getLogger("memcached_agent.x")
        log.info("left out")
        try:
            raise ZeroDivisionError
        except ZeroDivisionError:
            log.exception("broken %s", "ä")
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    text = capsys.readouterr().err
    if log_format == "text":
        assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ERROR   memcached_agent.x: broken ä\nTraceback", text)
    else:
        entry = json.loads(text)
        assert (entry["level"], entry["logger"], entry["msg"]) == ("error", "memcached_agent.x", "broken ä")
        assert "ZeroDivisionError" in entry["stacktrace"]
        assert entry["ts"].endswith("+00:00")


def test_flags_and_metrics_are_documented() -> None:
    page = (Path(__file__).parents[3] / "docs/monitoring.md").read_text()
    assert [each for each in OPTIONS - {"--version", "--help"} if f"`{each}`" not in page] == []
    modules = (agent, arguments, extstore, memory, reloads, restarts, warm)
    names = [each.name for module in modules for each in vars(module).values() if isinstance(each, Metric)]
    assert len(names) == 21
    assert [each for each in names if f"`{each}" not in page] == []
    assert [each for each in REASONS if f"`{each}`" not in page] == []
