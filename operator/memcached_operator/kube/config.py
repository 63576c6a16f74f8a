"""Address and credentials of the API server, from the kubeconfig or from the service account of the pod."""

import asyncio.sslproto
import logging
import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import aiohttp
import kopf
import yaml

from memcached_operator.kube.credentials import ConfigError, Login, TokenFile, login_with_client
from memcached_tls.tls import PIECE

log = logging.getLogger(__name__)

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where the kubelet mounts the pod's credentials (Kubernetes documentation, "Accessing the API from a Pod")."""


# asyncio reserves 256 KiB for each TLS connection: 70 % of the controller's memory with 200 watched namespaces, which
# have 17 connections each. Unlike servers, clients cannot choose the class, and no function sets the size. It is
# not part of the documented API of asyncio, so a test measures the memory of a connection.
asyncio.sslproto.SSLProtocol.max_size = PIECE


@dataclass(frozen=True)
class Config:
    """Address of the API server, and the credentials for it. `credentials`: those that change, or None."""

    server: str
    namespace: str
    tls: ssl.SSLContext
    headers: dict[str, str]
    credentials: aiohttp.ClientMiddlewareType | None = None

    def session(
        self, middlewares: Sequence[aiohttp.ClientMiddlewareType] = (), read_buffer: int = 2**16
    ) -> aiohttp.ClientSession:
        """Open a new session; the caller closes it. `read_buffer`: bytes of a response that are read ahead."""
        chain = [*middlewares, *([self.credentials] if self.credentials else [])]
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self.tls, keepalive_timeout=75),
            headers=self.headers | {"User-Agent": "memcached-operator"},
            middlewares=chain,
            read_bufsize=read_buffer,
            trace_configs=[_before_sending()],
        )


def _before_sending() -> aiohttp.TraceConfig:
    """Has a session call the `trace_request_ctx` of a request before the first byte of it is sent.

    A connection takes up to 10 s, or until a paused process resumes: by then another process can be the leader.
    """
    tracing = aiohttp.TraceConfig()
    tracing.on_request_headers_sent.append(_call_check)
    return tracing


async def _call_check(_: aiohttp.ClientSession, context: SimpleNamespace, __: object) -> None:
    if context.trace_request_ctx is not None:
        context.trace_request_ctx()


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
    return replace(_config(info), headers={}, credentials=TokenFile(SERVICE_ACCOUNT / "token"))


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
    return _config(info) if _has_credentials(info) else _logged_in(info)


def _has_credentials(info: kopf.ConnectionInfo) -> bool:
    return any((info.token, info.password, info.certificate_path, info.certificate_data))


def _logged_in(login: kopf.ConnectionInfo) -> Config:
    """Log in as the user of a kubeconfig without credentials, whose plug-in or provider must be called."""
    info = login_with_client()
    if info is None:
        log.warning("the kubeconfig contains no credentials; credential plug-ins need the Python package kubernetes")
        return _config(login)
    config = _config(replace(info, default_namespace=login.default_namespace))
    return replace(config, headers={}, credentials=Login(login_with_client, info, config.tls))


def _config(info: kopf.ConnectionInfo) -> Config:
    tls = info.as_ssl_context()
    # From Python 3.13 on, the default is strict: it rejects CAs without a key usage and certificates without the
    # identifier of their authority, which clusters have and Kubernetes' own clients accept.
    tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return Config(
        server=info.server.rstrip("/"),
        namespace=info.default_namespace or "default",
        tls=tls,
        headers=info.as_http_headers(),
    )
