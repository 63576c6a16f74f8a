"""Clients of seven libraries, which know only the connection ConfigMap: no stalls, and only the expected misses."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clients import libraries
from clients.scenario import KEYS, SAMPLE, Record, Scenario
from support import kube

LIMIT = 1.5
"""Maximum seconds of a request: docs/clients.md sets at most 0.5 s for connecting, and again for the response."""


@pytest.fixture(scope="module")
def records(programs: dict[str, libraries.Command], dns: Path) -> Iterator[dict[str, Record]]:
    """What the clients of each library saw."""
    with kube.temporary_namespace() as namespace:
        scenario = Scenario(namespace, {name: programs[name] for name in libraries.LIBRARIES}, dns)
        scenario.play()
        yield scenario.records


@pytest.fixture(params=libraries.LIBRARIES)
def record(request: pytest.FixtureRequest, records: dict[str, Record]) -> Record:
    """What the clients of one library saw."""
    return records[request.param]


def test_keys_are_distributed_over_all_slots(record: Record) -> None:
    counts = [len(keys) for keys in record.held]
    assert (sum(counts), record.filled.succeeded, record.filled.errors) == (KEYS, KEYS, 0)
    assert min(counts) >= 0.15 * KEYS, counts


def test_replaced_pod_costs_only_the_keys_of_its_slot(record: Record) -> None:
    first, _, last = record.held
    assert record.kept == [first, set(), last]
    assert record.replaced.succeeded == len(first) + len(last)


def test_ring_is_the_same_after_the_replacement_also_for_new_clients(record: Record) -> None:
    assert record.refilled == record.held
    assert (record.restarted.succeeded, record.restarted.errors) == (KEYS, 0)


def test_requests_do_not_stall_while_a_pod_is_replaced(record: Record) -> None:
    assert any(each.succeeded < SAMPLE for each in record.away), "no request was affected"
    assert max(each.slowest for each in record.away) <= LIMIT


def test_requests_do_not_stall_while_a_server_does_not_answer(record: Record) -> None:
    assert any(each.succeeded < SAMPLE for each in record.frozen), "no request was affected"
    assert max(each.slowest for each in record.frozen) <= LIMIT


def test_new_slot_takes_a_quarter_of_the_keys(record: Record) -> None:
    assert (record.old.succeeded, record.old.errors) == (KEYS, 0), "the old list is still correct for the old slots"
    assert 0.6 * KEYS <= record.new.succeeded <= 0.9 * KEYS
    assert record.new.errors == 0
    for before, after in zip(record.held, record.resized, strict=False):
        assert after >= before - record.resized[3]
    assert len(record.resized[3]) == KEYS - record.new.succeeded, "a key moved between the old slots"


def test_figures_of_docs(records: dict[str, Record], record_property: Callable[[str, object], None]) -> None:
    """Prints the figures of each library in docs/clients.md, in the order of its rows."""
    for name, found in records.items():
        away, silent = (max(each.slowest for each in results) for results in (found.away, found.frozen))
        hits = (found.filled, found.replaced, found.old, found.new)
        times = f"{away:.1f} s | {silent:.1f} s | {found.pace:.1f} s | {found.recovery:.0f} s"
        record_property(name, f"| {' | '.join(f'{each.succeeded:,}' for each in hits)} | {times} |")
