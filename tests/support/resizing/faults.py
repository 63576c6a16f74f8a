"""What can fail during a change of size with real pods: an actor is killed, hangs, or is cut off for a while."""

import signal
import time
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from support import installed, kube
from support.kube import Object, eventually, must_get
from support.memcached import pods_of
from support.processes import frozen, send_signal, unreachable
from support.waiting import READY

FAULT: Final = 8.0
"""Seconds: longer than a proxy waits for a slot, and shorter than liveness probes."""
BACK: Final = 10.0
"""Seconds after a fault in which requests may fail: a proxy connects again to a slot within 2 s, and looks its name up
within 5 s."""


class Actor(NamedTuple):
    """A pod that fails. `peer`: the IP address from which a fault `cut off` drops packets; empty for all."""

    pod: Object
    container: str
    peer: str = ""


Fault = Callable[[Actor, Callable[[], None]], None]


def slot(namespace: str, number: int) -> Actor:
    """The pod of a slot."""
    return Actor(must_get("pods", namespace, f"cache-{number}"), "memcached")


def partitioned(namespace: str, number: int) -> Actor:
    """The pod of a slot, which the newest proxy cannot reach when it is cut off: other proxies can."""
    return slot(namespace, number)._replace(peer=newest_proxy(namespace)["status"]["podIP"])


def newest_proxy(namespace: str) -> Object:
    """The proxy that was created last, with an address."""

    def found() -> Object | None:
        pods = [pod for pod in pods_of(namespace, "front") if pod["status"].get("podIP")]
        return max(pods, key=lambda pod: pod["metadata"]["creationTimestamp"], default=None)

    pod = eventually(found, READY, "a proxy has an address")
    assert pod is not None
    return pod


def serving_proxy(namespace: str) -> Actor:
    """A proxy that serves."""
    pod = eventually(lambda: next(filter(kube.ready, pods_of(namespace, "front")), None), READY, "a proxy is ready")
    assert pod is not None
    return Actor(pod, "proxy")


def leader() -> Actor:
    """The operator's leader."""
    name = eventually(installed.leader, READY, "a process leads")
    return Actor(must_get("pods", installed.NAMESPACE, name), "manager")


def killed(actor: Actor, losing: Callable[[], None]) -> None:
    """Kill its process, and wait until it runs again. `losing`: is called when it has lost its items."""
    namespace, name = actor.pod["metadata"]["namespace"], actor.pod["metadata"]["name"]
    send_signal(actor.pod, actor.container, signal.SIGKILL)
    losing()
    eventually(partial(_runs_again, namespace, name, actor.pod), READY, f"{name} runs again, or is replaced")


def _runs_again(namespace: str, name: str, before: Object) -> bool:
    pod = kube.get("pods", namespace, name)
    return pod is None or (kube.ready(pod) and kube.restart_counts([pod]) != kube.restart_counts([before]))


def hangs(actor: Actor, _: Callable[[], None]) -> None:
    """Stop its processes for a while."""
    with frozen(actor.pod, actor.container):
        time.sleep(FAULT)


def cut_off(actor: Actor, _: Callable[[], None]) -> None:
    """Drop the packets to it for a while."""
    with unreachable(actor.pod, actor.container, actor.peer):
        time.sleep(FAULT)
