"""Address and credentials of the API server, from the kubeconfig or from the service account of the pod."""

import os
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import aiohttp
import kopf
import yaml

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where the kubelet mounts the pod's credentials (Kubernetes documentation, "Accessing the API from a Pod")."""

TOKEN_RELOAD_PERIOD = 60.0
"""Seconds between reads of the token file. The kubelet renews a token well before it expires after one hour."""


class ConfigError(Exception):
    """No API server is configured, or its credentials cannot be read; the message contains the remedy."""


@dataclass(frozen=True)
class Config:
    """Address of the API server, and the credentials for it."""

    server: str
    namespace: str
    tls: ssl.SSLContext
    headers: dict[str, str]
    token_file: Path | None = None

    def session(self, middlewares: Sequence[aiohttp.ClientMiddlewareType] = ()) -> aiohttp.ClientSession:
        """Open a new session; the caller closes it."""
        chain = [*middlewares, *([TokenFile(self.token_file)] if self.token_file else [])]
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self.tls, keepalive_timeout=75),
            headers=self.headers | {"User-Agent": "memcached-operator"},
            middlewares=chain,
        )


class TokenFile:
    """Middleware that sends the current content of a token file as the bearer token."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._token = ""
        self._read_at = float("-inf")

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        request.headers["Authorization"] = f"Bearer {self._current(TOKEN_RELOAD_PERIOD)}"
        response = await handler(request)
        if response.status == 401:
            self._current(0)
        return response

    def _current(self, max_age: float) -> str:
        if time.monotonic() - self._read_at >= max_age:
            # Blocking is acceptable: the file has a few hundred bytes in tmpfs and is read once a minute.
            self._token = self._path.read_text().strip()
            self._read_at = time.monotonic()
        return self._token


def load_config() -> Config:
    """Find the API server as client-go does: `KUBECONFIG` first, then the service account, then `~/.kube/config`.

    Raises ConfigError if none of them is usable.
    """
    try:
        if os.environ.get("KUBECONFIG"):
            return _from_kubeconfig()
        if (SERVICE_ACCOUNT / "token").exists():
            return _from_service_account()
        return _from_kubeconfig()
    except (OSError, ValueError, kopf.LoginError) as error:
        raise ConfigError(f"cannot read the cluster's credentials: {error}") from error


def _from_service_account() -> Config:
    info = kopf.login_with_service_account(settings=kopf.OperatorSettings())
    if info is None:
        raise ConfigError(f"no service account token in {SERVICE_ACCOUNT}")
    # Use the address instead of the DNS name: the operator must work while the cluster's DNS does not.
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if host:
        info = replace(info, server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}")
    return replace(_config(info), headers={}, token_file=SERVICE_ACCOUNT / "token")


def _from_kubeconfig() -> Config:
    try:
        info = kopf.login_with_kubeconfig(settings=kopf.OperatorSettings())
    except KeyError as error:
        raise ConfigError(f"the kubeconfig refers to {error}, which it does not define") from error
    except (yaml.YAMLError, AttributeError, TypeError) as error:
        # kopf does not check that the file is a kubeconfig.
        raise ConfigError(f"the kubeconfig is not valid: {' '.join(str(error).split())}") from error
    if info is None or not info.server:
        raise ConfigError("no cluster is configured: set KUBECONFIG, or run in a cluster")
    return _config(info)


def _config(info: kopf.ConnectionInfo) -> Config:
    return Config(
        server=info.server.rstrip("/"),
        namespace=info.default_namespace or "default",
        tls=info.as_ssl_context(),
        headers=info.as_http_headers(),
    )
