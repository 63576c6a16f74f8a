import asyncio
from pathlib import Path
from unittest import mock

import kopf
import pytest

from memcached_operator.kube import config as session
from memcached_operator.kube.config import ConfigError, TokenFile, load_config
from unit.servers import Script, answer, serving

USABLE = """\
current-context: here
contexts: [{name: here, context: {cluster: c, user: u, namespace: mine}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:6443/"}}]
users: [{name: u, user: {token: secret}}]
"""
UNUSABLE = {
    "empty": ("", "Current context is not set"),
    "not YAML": ("{ a: [b", "the kubeconfig is not valid: while parsing"),
    "not a mapping": ("- a", "the kubeconfig is not valid"),
    "null where a list should be": ("contexts: null", "the kubeconfig is not valid"),
    "a context that is not there": ("current-context: gone", "refers to 'gone', which it does not define"),
    "no server": (USABLE.replace('server: "https://127.0.0.1:6443/"', ""), "no cluster is configured: set KUBECONFIG"),
    "a CA file that is not there": (
        USABLE.replace("server:", "certificate-authority: gone.crt, server:"),
        "No such file or directory",
    ),
}


@pytest.fixture(autouse=True)
def outside_a_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No service account, no home."""
    monkeypatch.setattr(session, "SERVICE_ACCOUNT", tmp_path / "none")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)


def kubeconfig(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str | bytes) -> None:
    """Have KUBECONFIG name a file with this content."""
    path = tmp_path / "config"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    monkeypatch.setenv("KUBECONFIG", str(path))


def test_a_kubeconfig(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kubeconfig(monkeypatch, tmp_path, USABLE)
    found = load_config()
    assert (found.server, found.namespace) == ("https://127.0.0.1:6443", "mine")
    assert found.headers["Authorization"] == "Bearer secret"
    assert found.token_file is None


@pytest.mark.parametrize(("text", "message"), UNUSABLE.values(), ids=UNUSABLE.keys())
def test_an_unusable_kubeconfig_is_one_sentence(
    text: str, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kubeconfig(monkeypatch, tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_config()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_kubeconfig_that_is_no_text(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kubeconfig(monkeypatch, tmp_path, b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot read the cluster's credentials"):
        load_config()


def test_a_kubeconfig_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "gone"))
    with pytest.raises(ConfigError, match="No such file or directory"):
        load_config()


def test_nothing_at_all() -> None:
    with pytest.raises(ConfigError, match="no cluster is configured: set KUBECONFIG, or run in a cluster"):
        load_config()


ADDRESSES = {
    "by address": ("10.0.0.1", "https://10.0.0.1:443"),
    "by an IPv6 address": ("fd00::1", "https://[fd00::1]:443"),
    "by name, where no address is given": ("", "https://kubernetes.default.svc"),
}


@pytest.mark.parametrize(("host", "server"), ADDRESSES.values(), ids=ADDRESSES.keys())
def test_inside_a_cluster(host: str, server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret")
    info = kopf.ConnectionInfo(server="https://kubernetes.default.svc", token="secret", default_namespace="mine")
    monkeypatch.setattr(session, "SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setattr(kopf, "login_with_service_account", mock.Mock(return_value=info))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    found = load_config()
    assert (found.server, found.namespace) == (server, "mine")
    # The token of that moment is not kept: it is read from its file again and again.
    assert (found.headers, found.token_file) == ({}, tmp_path / "token")


def test_a_kubeconfig_named_by_hand_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret")
    monkeypatch.setattr(session, "SERVICE_ACCOUNT", tmp_path)
    kubeconfig(monkeypatch, tmp_path, USABLE)
    assert load_config().server == "https://127.0.0.1:6443"


def authorizations(script: Script, path: Path) -> list[str]:
    """What three requests are signed with; after the first, the token is another."""

    async def run() -> None:
        async with serving(script) as there, there.session([TokenFile(path)]) as client:
            for number in range(3):
                async with client.get(there.server):
                    pass
                if number == 0:
                    await asyncio.to_thread(path.write_text, "new\n")

    asyncio.run(run())
    return [request.headers["Authorization"] for request in script.requests]


@pytest.fixture
def token(tmp_path: Path) -> Path:
    """A token file."""
    path = tmp_path / "token"
    path.write_text("old\n")
    return path


def test_a_token_is_read_once_a_minute(token: Path) -> None:
    assert authorizations(Script([answer()]), token) == ["Bearer old"] * 3


def test_a_token_is_read_again_when_its_time_has_come(token: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "TOKEN_RELOAD_PERIOD", 0)
    assert authorizations(Script([answer()]), token) == ["Bearer old", "Bearer new", "Bearer new"]


def test_a_token_is_read_again_when_it_was_refused(token: Path) -> None:
    script = Script([answer(), answer(401), answer()])
    assert authorizations(script, token) == ["Bearer old", "Bearer old", "Bearer new"]
