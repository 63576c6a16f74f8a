"""A MemcachedProxy with many clients, with clients that do not read, and with certificates that are replaced."""

import resource
import socket
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from e2e.test_proxy import PROXIES, address, cache, proxy
from support import kube
from support.clients import Client, Server, traffic, trusting
from support.kube import Object, eventually, must_get
from support.memcached import pods_of, wait_until_ready
from support.pki import CA
from support.processes import container_id, processes
from support.secrets import names_of, sync, tls_secret
from support.waiting import RELOADED, STEP

pytestmark = pytest.mark.usefixtures("cluster")

IDLE: Final = 10_000
STUCK: Final = 50
LARGE: Final = b"v" * 500_000
REQUESTS: Final = 100
"""Requests for a large item that a client sends without reading the answers: 50 MB for each client."""

Record = Callable[[str, object], None]


@contextmanager
def many_files() -> Generator[None]:
    """Allow this process IDLE connections during the block."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, IDLE + 1000), max(hard, IDLE + 1000)))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def memory(pod: Object) -> float:
    """The memory of a proxy, in MiB."""
    (process,) = processes(container_id(pod, "proxy"))
    (line,) = (each for each in Path(f"/proc/{process}/status").read_text().splitlines() if each.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def test_idle_clients_and_clients_that_do_not_read_fit_into_the_memory(namespace: str, record_property: Record) -> None:
    kube.apply(cache(namespace, 3))
    kube.apply(proxy(namespace, size=1, maxConnections=IDLE + 200))
    wait_until_ready(namespace)
    wait_until_ready(namespace, "front", plural=PROXIES)
    (pod,) = pods_of(namespace, "front")
    limit = must_get("deployments", namespace, "front")["spec"]["template"]["spec"]["containers"][0]["resources"]
    server = (pod["status"]["podIP"], 11211)
    record_property("memory limit", limit["limits"]["memory"])
    record_property("without clients", f"{memory(pod):.1f} MiB")
    with many_files(), ExitStack() as stack, Client(Server(*server)) as active:
        eventually(partial(_stores_large, active), STEP, "the slot is reached")
        for _ in range(IDLE):
            stack.enter_context(socket.create_connection(server))
        assert active.works()
        record_property(f"with {IDLE} idle clients", f"{memory(pod):.1f} MiB")
        stuck = [stack.enter_context(socket.create_connection(server)) for _ in range(STUCK)]
        for each in stuck:
            each.sendall(b"get large\r\n" * REQUESTS)
        eventually(active.works, STEP, "other clients are served")
        record_property(f"and {STUCK} that do not read", f"{memory(pod):.1f} MiB")
    (after,) = pods_of(namespace, "front")
    assert kube.restart_counts([after]) == {pod["metadata"]["uid"]: 0}


def _stores_large(client: Client) -> bool:
    return client.request(b"set large 0 0 %d" % len(LARGE), LARGE) == b"STORED\r\n"


def test_replaced_certificates_cost_no_request(namespace: str, record_property: Record) -> None:
    old, new = CA("old"), CA("new")
    both, names = old.pem + new.pem, names_of(namespace, "front")
    kube.apply(tls_secret(namespace, "front-tls", old.issue(names), both))
    kube.apply(cache(namespace, 3))
    kube.apply(proxy(namespace, tls={"secretName": "front-tls"}))
    wait_until_ready(namespace)
    wait_until_ready(namespace, "front", plural=PROXIES)
    trusted = trusting(old, new)
    service = Server(address(namespace), 11211, names[0], trusted)
    pods = [Server(pod["status"]["podIP"], 11211, names[0], trusted) for pod in pods_of(namespace, "front")]
    with traffic(service, *pods) as sent:
        for authority in (new, old, new):
            pair = authority.issue(names)
            kube.apply(tls_secret(namespace, "front-tls", pair, both))
            sync(pods_of(namespace, "front"))
            eventually(
                lambda serial=pair.serial: {_serial(each) for each in pods} == {serial}, RELOADED, "the new certificate"
            )
    record_property("requests", sent.requests)
    assert (sent.failed, sent.reasons) == (0, [])
    assert set(kube.restart_counts(pods_of(namespace, "front")).values()) == {0}


def _serial(server: Server) -> int:
    with Client(server) as client:
        assert client.works()
        return client.serial
