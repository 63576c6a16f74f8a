import asyncio
import ssl
import tracemalloc
from asyncio.sslproto import SSLProtocol
from pathlib import Path
from typing import Any
from unittest import mock

import kopf
import pytest

from memcached_operator.kube import config as module
from memcached_operator.kube import credentials
from memcached_operator.kube.config import load_config
from memcached_operator.kube.credentials import ConfigError, TokenFile
from memcached_tls.tls import PIECE
from unit.servers import Script, response, serving

VALID = """\
current-context: here
contexts: [{name: here, context: {cluster: c, user: u, namespace: mine}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:6443/"}}]
users: [{name: u, user: {token: secret}}]
"""
INVALID = {
    "empty": ("", "Current context is not set"),
    "not YAML": ("{ a: [b", "the kubeconfig is not valid: while parsing"),
    "not a mapping": ("- a", "the kubeconfig is not valid"),
    "null instead of a list": ("contexts: null", "the kubeconfig is not valid"),
    "missing context": ("current-context: missing", "refers to 'missing', which it does not define"),
    "no server": (VALID.replace('server: "https://127.0.0.1:6443/"', ""), "no cluster is configured: set KUBECONFIG"),
    "missing CA file": (
        VALID.replace("server:", "certificate-authority: missing.crt, server:"),
        "No such file or directory",
    ),
}


@pytest.fixture(autouse=True)
def outside_a_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a service account, a home directory and KUBECONFIG."""
    monkeypatch.setattr(module, "SERVICE_ACCOUNT", tmp_path / "none")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)


def kubeconfig(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str | bytes) -> None:
    """Set KUBECONFIG to a file with this content."""
    path = tmp_path / "config"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    monkeypatch.setenv("KUBECONFIG", str(path))


def test_valid_kubeconfig(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kubeconfig(monkeypatch, tmp_path, VALID)
    found = load_config()
    assert (found.server, found.namespace) == ("https://127.0.0.1:6443", "mine")
    assert found.headers["Authorization"] == "Bearer secret"
    assert found.credentials is None


def test_a_connection_reserves_little_memory() -> None:
    """asyncio reserves 256 KiB, and each watched namespace has 17 connections."""

    async def reserved() -> int:
        loop = asyncio.get_running_loop()
        tracemalloc.start()
        protocol = SSLProtocol(loop, asyncio.Protocol(), ssl.create_default_context(), loop.create_future())
        found = max(trace.size for trace in tracemalloc.take_snapshot().traces)
        tracemalloc.stop()
        protocol.connection_lost(None)
        return found

    assert asyncio.run(reserved()) < 2 * PIECE


def test_certificates_that_kubernetes_accepts_are_accepted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With the defaults of Python 3.13, which the image contains."""
    original = ssl.create_default_context

    def strict(*args: Any, **options: Any) -> ssl.SSLContext:
        context = original(*args, **options)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", strict)
    kubeconfig(monkeypatch, tmp_path, VALID)
    found = load_config().tls
    assert (found.verify_mode, found.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert not found.verify_flags & ssl.VERIFY_X509_STRICT


@pytest.mark.parametrize(("text", "message"), INVALID.values(), ids=INVALID.keys())
def test_invalid_kubeconfig_is_a_one_line_error(
    text: str, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kubeconfig(monkeypatch, tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_config()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_binary_kubeconfig(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kubeconfig(monkeypatch, tmp_path, b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot read the cluster's credentials"):
        load_config()


def test_missing_kubeconfig(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "missing"))
    with pytest.raises(ConfigError, match="No such file or directory"):
        load_config()


def test_no_configuration() -> None:
    with pytest.raises(ConfigError, match="no cluster is configured: set KUBECONFIG, or run in a cluster"):
        load_config()


ADDRESSES = {
    "IPv4 address": ("10.0.0.1", "https://10.0.0.1:443"),
    "IPv6 address": ("fd00::1", "https://[fd00::1]:443"),
    "host name, without an address": ("", "https://kubernetes.default.svc"),
}


@pytest.mark.parametrize(("host", "server"), ADDRESSES.values(), ids=ADDRESSES.keys())
def test_inside_a_cluster(host: str, server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret")
    info = kopf.ConnectionInfo(server="https://kubernetes.default.svc", token="secret", default_namespace="mine")
    monkeypatch.setattr(module, "SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setattr(kopf, "login_with_service_account", mock.Mock(return_value=info))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    found = load_config()
    assert (found.server, found.namespace) == (server, "mine")
    # The token is not stored; it is read from its file repeatedly.
    assert found.headers == {}
    assert isinstance(found.credentials, TokenFile)


def test_kubeconfig_has_precedence_over_the_service_account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret")
    monkeypatch.setattr(module, "SERVICE_ACCOUNT", tmp_path)
    kubeconfig(monkeypatch, tmp_path, VALID)
    assert load_config().server == "https://127.0.0.1:6443"


def authorizations(script: Script, path: Path) -> list[str]:
    """The Authorization headers of three requests; the token changes after the first."""

    async def run() -> None:
        async with serving(script) as conn, conn.session([TokenFile(path)]) as client:
            for number in range(3):
                async with client.get(conn.server):
                    pass
                if number == 0:
                    await asyncio.to_thread(path.write_text, "new\n")

    asyncio.run(run())
    return [request.headers["Authorization"] for request in script.requests]


@pytest.fixture
def token(tmp_path: Path) -> Path:
    """A file with the token `old`."""
    path = tmp_path / "token"
    path.write_text("old\n")
    return path


def test_token_is_cached(token: Path) -> None:
    assert authorizations(Script([response()]), token) == ["Bearer old"] * 3


def test_token_is_read_again_after_its_period(token: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "TOKEN_RELOAD_PERIOD", 0)
    assert authorizations(Script([response()]), token) == ["Bearer old", "Bearer new", "Bearer new"]


def test_token_is_read_again_after_401(token: Path) -> None:
    script = Script([response(), response(401), response()])
    assert authorizations(script, token) == ["Bearer old", "Bearer old", "Bearer new"]
