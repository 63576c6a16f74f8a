"""Six caches get a newer memcached while clients read them: interrupted once, one cache at a time.

It writes build/fleet.json: the share of hits, second by second. Copied to docs/upgrade-results.json, `make generate`
draws it for docs/upgrade-memcached.md.
"""

import json
import signal
import subprocess
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest

from kubectl_memcached.model import conditions
from support import kube, programs
from support.clients import in_threads
from support.kube import Object, eventually
from support.load import Load, fill, kept, load
from support.memcached import IMAGE, OTHER_IMAGE, SMALL, memcached, pods_of, wait_until_ready
from support.plugin import COMMAND_LINE, environment
from support.slots import slot_addresses
from support.waiting import ROLLOUT

pytestmark = pytest.mark.usefixtures("cluster")

RESULT: Final = Path(__file__).parents[2] / "build/fleet.json"
SLOTS: Final = 2
WARM: Final = ("warm-a", "warm-b", "warm-c")
COLD: Final = ("cold-a", "cold-b", "cold-c")
KEYS: Final = [f"key-{number}" for number in range(2000)]
RATE: Final = 500
"""Requests per second to each cache."""
BEFORE, AFTER = 10, 20
"""Seconds of load before and after the upgrade."""


def test_fleet_is_upgraded_one_cache_at_a_time_and_warm_caches_keep_their_items(namespace: str) -> None:
    addresses = created(namespace)
    with ExitStack() as stack:
        unready = stack.enter_context(observed(namespace))
        loads = {
            name: stack.enter_context(load(found, KEYS, RATE, fills=name in COLD)) for name, found in addresses.items()
        }
        time.sleep(BEFORE)
        interrupted(namespace)
        assert images(namespace).count({IMAGE}) < len(addresses)
        done = programs.run(command(namespace), env=environment())
        assert done.returncode == 0, done.stdout + done.stderr
        time.sleep(AFTER)
        write(loads)
    assert images(namespace) == [{IMAGE}] * len(addresses)
    assert {name: kept(addresses[name], KEYS) for name in WARM} == {name: [len(KEYS)] * SLOTS for name in WARM}
    assert max(unready) == 1, "never two caches at once"


def created(namespace: str) -> dict[str, list[str]]:
    """The addresses of the slots of each cache, which has all keys."""
    for name in (*WARM, *COLD):
        cache: Object = {"memory": "64Mi", **({"warmRestart": True} if name in WARM else {})}
        spec: Object = {"image": OTHER_IMAGE, "identity": "Stable", "service": {"perPod": True}, "resources": SMALL}
        obj = memcached(namespace, name, size=SLOTS, cache=cache, **spec)
        kube.apply(obj, "--field-manager=kubectl-edit")
    for name in (*WARM, *COLD):
        wait_until_ready(namespace, name, ROLLOUT)
    found = {name: slot_addresses(namespace, SLOTS, name) for name in (*WARM, *COLD)}
    for each in found.values():
        fill(each, KEYS)
    return found


def command(namespace: str) -> list[str]:
    """The upgrade of all caches of the namespace."""
    names = [*WARM, *COLD]
    return [*COMMAND_LINE, "upgrade", "-n", namespace, *names, "--yes"]


def interrupted(namespace: str) -> None:
    """Begin the upgrade, and press Ctrl-C while the second cache is being changed."""
    with subprocess.Popen(command(namespace), stdout=subprocess.PIPE, text=True, env=environment()) as process:
        eventually(lambda: images(namespace).count({IMAGE}) >= 1 or None, ROLLOUT, "the first cache is upgraded")
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=ROLLOUT)
    assert "Interrupted." in said
    assert "To go on, run the same command again" in said


def images(namespace: str) -> list[set[str]]:
    """The images of the pods of each cache."""
    return [{pod["spec"]["containers"][0]["image"] for pod in pods_of(namespace, name)} for name in (*WARM, *COLD)]


@contextmanager
def observed(namespace: str) -> Generator[list[int]]:
    """The numbers of caches that were not ready, once a second during the block."""
    found: list[int] = []

    def run(stop: threading.Event) -> None:
        while not stop.wait(1):
            found.append(sum(not conditions.is_ready(each) for each in kube.items("memcacheds", namespace)))

    with in_threads(run):
        yield found


def write(loads: dict[str, Load]) -> None:
    """Write the share of hits among the requests of each second, of the warm and of the cold caches."""
    end = min(each.now() for each in loads.values())

    def shares(names: tuple[str, ...]) -> list[float]:
        seconds = [[loads[name].seconds.get(at) for name in names] for at in range(end)]
        hits = [sum(each.hits for each in found if each) for found in seconds]
        every = [sum(each.hits + each.misses + each.failed for each in found if each) for found in seconds]
        return [round(each / all_of, 4) if all_of else 0.0 for each, all_of in zip(hits, every, strict=True)]

    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps({"warm": shares(WARM), "cold": shares(COLD), "fleet": shares((*WARM, *COLD))}))
