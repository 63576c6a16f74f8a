"""Credentials that change: token files, and credential plug-ins of a kubeconfig."""

import asyncio
import json
import logging
import os
import shlex
import ssl
import sys
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from faults.proxy import serving_context
from memcached_operator.certificates.pki import issue
from memcached_operator.kube import config, credentials
from memcached_operator.kube.client import ApiClient, ApiError
from memcached_operator.kube.config import Config, load_config
from memcached_operator.kube.credentials import ConfigError, TokenFile
from unit.servers import serving

PLUGIN = """
import json, pathlib, sys
directory = pathlib.Path(__file__).parent
calls = directory / "calls"
calls.write_text(calls.read_text() + "x" if calls.exists() else "x")
answer = (directory / "answer").read_text()
if answer.startswith("fail"):
    sys.exit(answer)
print(answer)
"""
"""A credential plug-in: prints the file `answer`, or fails; counts its calls."""


class Plugin:
    """A kubeconfig whose user has a credential plug-in."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._directory = directory
        self._command, code = directory / "plug-in", directory / "plug-in.py"
        code.write_text(PLUGIN)
        # Not with the interpreter in the first line, which the kernel splits at spaces.
        self._command.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, str(code)])} "$@"\n')
        self._command.chmod(0o755)
        self.kubeconfig = directory / "config"
        self._monkeypatch = monkeypatch
        self.use("https://127.0.0.1:6443")
        self.answer({"token": "first"})

    @property
    def calls(self) -> int:
        """How often the plug-in was called."""
        return len((self._directory / "calls").read_text())

    def use(self, server: str, authority: str = "", **more: Any) -> None:
        """Write the kubeconfig for this server, with its certificate authority."""
        api = "client.authentication.k8s.io/v1"
        user = {"exec": {"apiVersion": api, "command": str(self._command), "interactiveMode": "Never", **more}}
        cluster = {"server": server} | ({"certificate-authority-data": authority} if authority else {})
        content: dict[str, Any] = {
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": cluster}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": "mine"}}],
            "users": [{"name": "test", "user": user}],
        }
        self.kubeconfig.write_text(yaml.safe_dump(content))
        self._monkeypatch.setenv("KUBECONFIG", str(self.kubeconfig))
        # The package reads the variable when it is imported.
        location = "kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION"
        self._monkeypatch.setattr(location, str(self.kubeconfig))

    def answer(self, status: dict[str, str]) -> None:
        """Set the credentials that the plug-in prints."""
        api = "client.authentication.k8s.io/v1"
        self.print(json.dumps({"apiVersion": api, "kind": "ExecCredential", "status": status}))

    def print(self, text: str) -> None:
        """Set the output of the plug-in; it fails if this starts with `fail`."""
        (self._directory / "answer").write_text(text)


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plugin:
    """A kubeconfig whose user has a credential plug-in."""
    monkeypatch.setattr(config, "SERVICE_ACCOUNT", tmp_path / "none")
    monkeypatch.setattr(credentials, "LOGIN_PERIOD", 0)
    return Plugin(tmp_path, monkeypatch)


class Server:
    """An API server that accepts one token. Records the tokens and bodies of all requests."""

    def __init__(self, accepted: str) -> None:
        self.accepted = accepted
        self.tokens: list[str] = []
        self.bodies: list[bytes] = []

    async def __call__(self, request: web.BaseRequest) -> web.Response:
        self.tokens.append(request.headers.get("Authorization", "").removeprefix("Bearer "))
        self.bodies.append(await request.read())
        return web.json_response({}, status=200 if self.tokens[-1] == self.accepted else 401)


def call(plugin: Plugin, server: Server, work: Callable[[ApiClient], Any]) -> Any:
    """Log in with the plug-in and call the server."""

    async def run() -> Any:
        async with serving(server) as at:
            plugin.use(at.server)
            found = load_config()
            async with found.session() as session:
                return await work(ApiClient(found, session))

    return asyncio.run(run())


def test_plugin_provides_the_token(plugin: Plugin) -> None:
    server = Server("first")
    call(plugin, server, lambda client: client.request("GET", "/x"))
    assert (server.tokens, plugin.calls) == (["first"], 1)


def test_namespace_of_the_context_is_kept(plugin: Plugin) -> None:
    assert load_config().namespace == "mine"


def test_rejected_credentials_are_renewed_and_the_request_is_repeated(plugin: Plugin) -> None:
    server = Server("second")

    async def work(client: ApiClient) -> None:
        plugin.answer({"token": "second"})
        await client.request("POST", "/x", {"a": 1})
        await client.request("GET", "/x")

    call(plugin, server, work)
    assert (server.tokens, plugin.calls) == (["first", "second", "second"], 2)
    assert server.bodies[:2] == [b'{"a":1}'] * 2


def test_parallel_requests_share_one_login(plugin: Plugin) -> None:
    server = Server("second")

    async def work(client: ApiClient) -> None:
        plugin.answer({"token": "second"})
        await asyncio.gather(*(client.request("GET", "/x") for _ in range(8)))

    call(plugin, server, work)
    assert plugin.calls == 2


def test_logins_are_limited(plugin: Plugin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "LOGIN_PERIOD", 60)
    server = Server("another")

    async def work(client: ApiClient) -> None:
        for _ in range(3):
            with pytest.raises(ApiError) as caught:
                await client.request("GET", "/x")
            assert caught.value.code == 401

    call(plugin, server, work)
    assert (len(server.tokens), plugin.calls) == (3, 1)


def test_failed_renewal_is_reported(plugin: Plugin) -> None:
    async def work(client: ApiClient) -> None:
        plugin.print("fail: the session has expired")
        with pytest.raises(ApiError, match=r"plug-in of the kubeconfig failed: .*the session has expired"):
            await client.request("GET", "/x")

    call(plugin, Server("another"), work)


OUTPUTS = {
    "exit code": ("fail: not logged in\nrun login", "process returned 1. fail: not logged in run login"),
    "no JSON": ("hello", "failed to decode process output"),
    "no status": ("{}", "malformed response"),
    "no credentials": (
        json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {}}),
        "missing token or clientCertificateData",
    ),
}


@pytest.mark.parametrize(("output", "message"), OUTPUTS.values(), ids=OUTPUTS.keys())
def test_failed_plugin_is_a_one_line_error(plugin: Plugin, output: str, message: str) -> None:
    plugin.print(output)
    with pytest.raises(ConfigError, match=r"^the credential plug-in of the kubeconfig failed: ") as caught:
        load_config()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_only_errors_are_collected_and_nothing_else_is_hidden(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"), vars(credentials)["_errors"]() as errors:
        logging.info("kept")
        logging.error("collected")
    assert (errors, caplog.messages) == (["collected"], ["kept"])


def test_missing_plugin_is_a_one_line_error(plugin: Plugin) -> None:
    plugin.use("https://127.0.0.1:6443", command="no-such-plug-in")
    with pytest.raises(ConfigError, match=r"plug-in of the kubeconfig failed: .*'no-such-plug-in'"):
        load_config()


def test_without_the_package_the_user_is_anonymous(
    plugin: Plugin, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes.config", None)
    found = load_config()
    assert (found.headers, found.credentials) == ({}, None)
    assert "credential plug-ins need the Python package kubernetes" in caplog.text


def test_kubeconfig_takes_precedence_over_a_service_account(
    plugin: Plugin, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("TOKEN", "CERT"):
        (tmp_path / name).write_text("mounted")
        monkeypatch.setattr(f"kubernetes.config.incluster_config.SERVICE_{name}_FILENAME", str(tmp_path / name))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    assert load_config().server == "https://127.0.0.1:6443"
    assert os.environ["KUBERNETES_SERVICE_HOST"] == "10.0.0.1"


@pytest.mark.parametrize("content", [None, b"\xff"], ids=["missing", "not text"])
def test_unreadable_token_file_is_reported(content: bytes | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "token").write_bytes(content)

    async def run() -> None:
        async with serving(Server("")) as at:
            found = Config(at.server, "test", at.tls, {}, TokenFile(tmp_path / "token"))
            async with found.session() as session:
                await ApiClient(found, session).request("GET", "/x")

    with pytest.raises(ApiError, match=r"^cannot read the service account token: "):
        asyncio.run(run())


class Identity:
    """A client certificate, signed by itself, and its key, in PEM."""

    def __init__(self, name: str) -> None:
        key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        self.certificate = (
            builder.not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(hours=1))
            .sign(key, hashes.SHA256())
            .public_bytes(serialization.Encoding.PEM)
            .decode()
        )
        pem, none = serialization.Encoding.PEM, serialization.NoEncryption()
        self.key = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, none).decode()

    @property
    def status(self) -> dict[str, str]:
        """The credentials that a plug-in returns."""
        return {"clientCertificateData": self.certificate, "clientKeyData": self.key}


def test_renewed_client_certificate_is_used(plugin: Plugin) -> None:
    old, new = Identity("old"), Identity("new")
    names: list[str] = []

    async def handle(request: web.BaseRequest) -> web.Response:
        assert request.transport is not None
        names.append(dict(each[0] for each in request.transport.get_extra_info("peercert")["subject"])["commonName"])
        return web.json_response({}, status=200 if names[-1] == "new" else 401)

    async def run() -> None:
        pair = issue(["localhost"], timedelta(days=1), datetime.now(UTC))
        tls = serving_context(pair)
        tls.verify_mode = ssl.CERT_REQUIRED
        tls.load_verify_locations(cadata=old.certificate + new.certificate)
        async with serving(handle, tls=tls) as at:
            authority = b64encode(pair.ca).decode()
            plugin.answer(old.status)
            plugin.use(at.server.replace("http://127.0.0.1", "https://localhost"), authority=authority)
            found = load_config()
            plugin.answer(new.status)
            async with found.session() as session:
                for _ in range(2):
                    await ApiClient(found, session).request("GET", "/x")

    asyncio.run(run())
    assert names == ["old", "new", "new"]
