"""Connections to the memcached and the agent of pods, and the same work for each pod of a cache."""

import http.client
import ssl
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeVar

from kubectl_memcached.cluster.caches import Secrets
from kubectl_memcached.cluster.forward import forwarded
from kubectl_memcached.cluster.kubectl import Kubectl
from kubectl_memcached.errors import ExitCode, PluginError
from kubectl_memcached.memcached.connection import Connection, MemcachedError, RejectedError
from kubectl_memcached.model.pods import Pod

AT_ONCE: Final = 8
"""Pods that are read at the same time: each needs a process of kubectl with about 40 MiB."""
AGENT_TIMEOUT: Final = 10.0
"""Seconds until the agent replies."""
MAX_RESPONSE: Final = 2**20
"""Bytes of a response of the agent. Metrics of 63 slab classes have 300 KB."""

FOR_ALL: Final = (ExitCode.BLOCKED, ExitCode.FORBIDDEN)
"""Errors that every pod of a cache would have."""

T = TypeVar("T")


@dataclass(frozen=True)
class Session:
    """Ports that are forwarded to a pod: `ports` has the local port for each port of the pod."""

    pod: Pod
    ports: dict[int, int]
    secrets: Secrets

    @contextmanager
    def memcached(self) -> Generator[Connection]:
        """A connection to memcached, which is logged in if necessary. Raises PluginError, even in the block."""
        port = self.pod.endpoint.port
        if port is None:
            raise PluginError(f"memcached of {self.pod.name} has no loopback port without TLS", ExitCode.POD)
        try:
            with Connection(self.ports[port]) as connection:
                connection.log_in(lambda: self.secrets.users(self.pod))
                yield connection
        except RejectedError as error:
            reason = self.secrets.rejection(self.pod)
            raise PluginError(f"memcached of {self.pod.name} {error}{reason}", ExitCode.POD) from None
        except MemcachedError as error:
            raise PluginError(f"memcached of {self.pod.name} {error}", ExitCode.POD) from None

    def agent(self, path: str) -> str:
        """The response of the agent, of any status. Raises PluginError.

        Its certificate is not verified: the API server and the kubelet vouch for the pod.
        """
        port = self.pod.endpoint.metrics_port
        if port is None:
            raise PluginError(f"{self.pod.name} has no agent: spec.monitoring adds one", ExitCode.POD)
        local = self.ports[port]
        if self.pod.endpoint.https:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            connection = http.client.HTTPSConnection("127.0.0.1", local, timeout=AGENT_TIMEOUT, context=context)
        else:
            connection = http.client.HTTPConnection("127.0.0.1", local, timeout=AGENT_TIMEOUT)
        try:
            connection.request("GET", path)
            return connection.getresponse().read(MAX_RESPONSE).decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as error:
            reason = str(error) or type(error).__name__
            raise PluginError(f"the agent of {self.pod.name} does not reply: {reason}", ExitCode.POD) from None
        finally:
            connection.close()


@contextmanager
def session(kubectl: Kubectl, pod: Pod, secrets: Secrets, *, agent: bool = False) -> Generator[Session]:
    """Forward ports to a pod during the block. `agent`: include its agent's port. Raises PluginError."""
    if pod.problem:
        raise PluginError(pod.problem, ExitCode.POD)
    wanted = [pod.endpoint.port, pod.endpoint.metrics_port if agent else None]
    ports = [port for port in wanted if port is not None]
    with forwarded(kubectl, pod.namespace, pod.name, ports) as local:
        yield Session(pod, local, secrets)


def recovered(work: Callable[[Pod], T], failed: Callable[[Pod, str], T]) -> Callable[[Pod], T]:
    """`work`, which returns the result of `failed` for a pod with an error. Errors of FOR_ALL are raised."""

    def one(pod: Pod) -> T:
        try:
            return work(pod)
        except PluginError as error:
            if error.code in FOR_ALL:
                raise
            return failed(pod, str(error))

    return one


def for_each(
    pods: Sequence[Pod], work: Callable[[Pod], T], done: Callable[[], None], at_once: int = AT_ONCE
) -> list[T]:
    """The results of the same work for each pod, in the order of the pods. `done` is called after each pod."""

    def one(pod: Pod) -> T:
        try:
            return work(pod)
        finally:
            done()

    executor = ThreadPoolExecutor(at_once)
    try:
        return list(executor.map(one, pods))
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
