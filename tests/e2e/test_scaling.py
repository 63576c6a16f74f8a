"""A change of size in phases, with real pods: no client of the proxies reads an outdated value, and no item is lost."""

import json
import time
from typing import Final

import pytest

from support import installed, kube
from support.kube import eventually, kubectl, must_get
from support.resizing.changes import CHANGE, MOVE, PHASES, ROLLOUTS, cache, wait_until_phase, wait_until_settled
from support.resizing.clients import Clients, Figures, served
from support.resizing.faults import (
    BACK,
    Actor,
    Fault,
    cut_off,
    hangs,
    killed,
    leader,
    partitioned,
    serving_proxy,
    slot,
)

pytestmark = pytest.mark.usefixtures("cluster")

DURATION: Final = "20s"
"""Several times as long as all items are stored again."""
FALSE_MISSES: Final = 0.01
"""The share of the reads that may miss an item that should be there."""
HIT_RATIO: Final = 0.98
"""The lowest one of items that are stored again during Move. Some of these requests end with their connection."""


def assert_consistent(clients: Clients, figures: Figures, *, late: bool = False) -> None:
    """Assert what a change of size promises, whatever fails meanwhile.

    `late`: the network delivers a request that has failed when it works again. It can delete a later value.
    """
    checker = clients.checker
    checker.read_all()
    figures("counts, errors, examples", str(checker))
    assert checker.wrong == 0, checker.examples
    assert late or checker.counts["unexpected"] == 0, checker.examples
    missing = checker.counts["false miss"] + checker.counts["unexpected"]
    assert missing <= FALSE_MISSES * checker.reads, checker.examples


def assert_ordered(clients: Clients) -> None:
    """Assert that each change that moved keys went through all phases, one change after the other."""
    last = 0.0
    for change in clients.changes():
        phases = list(change.since)
        assert phases == list(PHASES[: len(phases)])
        assert "Move" not in phases or phases == list(PHASES)
        assert change.since["Wait"] >= last
        last = max(change.since.values())


def assert_no_errors(clients: Clients) -> None:
    """Assert that no request was answered with an error."""
    assert clients.errors() == []
    assert clients.checker.errors == {}


@pytest.mark.long(140)
def test_clients_of_proxies_see_no_outdated_value_and_miss_no_item(namespace: str, record_property: Figures) -> None:
    """Each connection is closed in each phase: once, if the new proxies become ready within the drain of the others."""
    with served(namespace, 3, DURATION) as clients:
        for size, duration in ((4, DURATION), (3, "0s")):
            kube.apply(cache(namespace, size, duration))
            wait_until_phase(namespace, "Prepare")
            ended = wait_until_settled(namespace, size)
            ratios = clients.record(record_property, ended)
            assert duration != DURATION or min(ratios.values()) >= HIT_RATIO
            closed = [counts[phase] for counts in clients.closed(ended) for phase in ROLLOUTS]
            assert (min(closed), max(closed) <= 2) == (1, True), closed
        assert_consistent(clients, record_property)
        assert_no_errors(clients)


@pytest.mark.nightly
@pytest.mark.long(200)
def test_slots_are_doubled_and_reduced(namespace: str, record_property: Figures) -> None:
    with served(namespace, 3, DURATION) as clients:
        for size in (6, 2):
            kube.apply(cache(namespace, size, DURATION))
            wait_until_phase(namespace, "Prepare")
            ratios = clients.record(record_property, wait_until_settled(namespace, size))
            assert min(ratios.values()) >= HIT_RATIO
        assert_consistent(clients, record_property)
        assert_no_errors(clients)


SLOTS: Final = ("source", "target")
CASES: Final[list[tuple[str, Fault]]] = [
    *((actor, fault) for actor in (*SLOTS, "proxy", "operator") for fault in (killed, hangs, cut_off)),
    ("partition", cut_off),
]


def actor_of(kind: str, namespace: str, sizes: tuple[int, int], turn: int) -> Actor:
    """The actor that fails in a phase. `source`: a slot that keys leave. `turn`: the number of the phase."""
    smaller, is_out = min(sizes), sizes[0] < sizes[1]
    match kind:
        case "proxy":
            return serving_proxy(namespace)
        case "operator":
            return leader()
        case "partition":
            return partitioned(namespace, smaller)
        case _:
            return slot(namespace, turn % smaller if (kind == "source") is is_out else smaller)


@pytest.mark.nightly
@pytest.mark.long(180)
@pytest.mark.parametrize("sizes", [(3, 4), (4, 3)], ids=["out", "in"])
@pytest.mark.parametrize(("actor", "fault"), CASES, ids=[f"{actor}-{fault.__name__}" for actor, fault in CASES])
def test_fault_in_each_phase(
    namespace: str, actor: str, fault: Fault, sizes: tuple[int, int], record_property: Figures
) -> None:
    with served(namespace, sizes[0], DURATION) as clients:
        kube.apply(cache(namespace, sizes[1], DURATION))
        losing = clients.checker.losing if actor in SLOTS else nothing
        spans: list[tuple[float, float]] = []
        for turn, phase in enumerate(ROLLOUTS):
            eventually(lambda phase=phase: any(phase in each.since for each in clients.changes()), CHANGE, phase)
            begun = time.monotonic()
            fault(actor_of(actor, namespace, sizes, turn), losing)
            spans.append((begun, time.monotonic() + BACK))
        clients.record(record_property, wait_until_settled(namespace, sizes[1]))
        assert_consistent(clients, record_property, late=fault is cut_off)
        assert_ordered(clients)
        assert [each for each in clients.errors() if not any(first <= each[0] <= last for first, last in spans)] == []
        if actor in ("proxy", "operator"):
            assert_no_errors(clients)


def nothing() -> None:
    """A fault that loses no items."""


@pytest.mark.nightly
@pytest.mark.long(180)
@pytest.mark.parametrize("phase", ["Prepare", "Move"])
def test_upgrade_of_the_operator(namespace: str, phase: str, record_property: Figures) -> None:
    """It is undone in the next phase."""
    release = installed.other_release()
    with served(namespace, 3, DURATION) as clients:
        kube.apply(cache(namespace, 4, DURATION))
        wait_until_phase(namespace, phase)
        with installed.upgraded(release):
            wait_until_phase(namespace, PHASES[PHASES.index(phase) + 1])
        clients.record(record_property, wait_until_settled(namespace, 4))
        assert_consistent(clients, record_property)
        assert_ordered(clients)
        assert_no_errors(clients)


SIZES: Final = (4, 3, 5, 2, 3, 4, 2, 5, 6, 3, 4, 3, 5, 4, 3, 2, 4, 5, 3, 4)


@pytest.mark.nightly
@pytest.mark.long(720)
def test_autoscaler_that_changes_its_mind(namespace: str, record_property: Figures) -> None:
    with served(namespace, 3, "5s") as clients:
        for size in SIZES:
            kubectl("scale", "memcached/cache", "-n", namespace, f"--replicas={size}")
            kube.consistently(lambda: keeps_slots(namespace), 30)
        wait_until_settled(namespace, SIZES[-1], 2 * CHANGE)
        record_property(
            "changes", "; ".join(f"{each.source} → {each.target}: {'/'.join(each.since)}" for each in clients.changes())
        )
        assert_consistent(clients, record_property)
        assert_ordered(clients)
        assert_no_errors(clients)


def keeps_slots(namespace: str) -> bool:
    """Whether all slots exist that a change of size needs."""
    live = must_get("statefulsets", namespace, "cache")
    state = json.loads(live["metadata"]["annotations"][MOVE])
    return live["spec"]["replicas"] >= max(state["from"], state["to"] if state["phase"] != "Wait" else 0)
