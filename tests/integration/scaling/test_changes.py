"""Clients see no old values while the number of servers behind proxies changes, and while servers and proxies fail."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from memcached_operator.memcachedproxy.desired.handler import handler
from memcached_operator.parts.ring import Phase
from support.scaling.checker import KEYS, Checker
from support.scaling.driver import PHASES, Cut, Driver, Emptied, Fault, ProxyKilled, Servers, Stopped
from support.scaling.sweep import Sweep, sweep

PROGRAM: Final = handler()
NOTHING: Final = Fault()
FAULTS: Final = {
    "nothing": NOTHING,
    "a server is stopped": Stopped(),
    "a server is emptied": Emptied(),
    "a proxy is killed": ProxyKilled(),
}
CHANGES: Final = ((3, 4), (4, 3), (3, 6), (6, 2))
FEW: Final = 600
"""Keys with which clients write and read the same ones more often."""
FALSE_MISSES: Final = 0.01
"""The share of the reads that may miss an item that should be there."""


def checked(
    root: Path, sizes: Sequence[int], fault: Fault, sweeping: Sweep | None = sweep, keys: int = KEYS
) -> Checker:
    """The checker after changes of size, one after another."""
    driver = Driver(root, Servers(root, max(sizes)), sweeping)
    with driver.checked(sizes[0], keys) as checker:
        for old, new in pairwise(sizes):
            driver.change(old, new, fault)
    return checker


def mutant(
    root: Path, phases: Sequence[Phase], end: int = 0, fault: Fault = NOTHING, program: str = PROGRAM
) -> Checker:
    """The checker after a change from 3 to 4 servers with other phases, to a ring of `end` servers if that is given."""
    driver = Driver(root, Servers(root, 4), sweep, program)
    with driver.checked(3, FEW) as checker:
        driver.change(3, 4, fault, phases, end)
    return checker


def check(checker: Checker) -> None:
    """No old value, and few misses."""
    assert (checker.wrong, checker.counts["unexpected"]) == (0, 0), str(checker)
    assert checker.counts["false miss"] <= FALSE_MISSES * checker.reads, str(checker)


@pytest.mark.long(90)
def test_reads_return_no_old_value_while_servers_are_added_and_removed(root: Path) -> None:
    check(checked(root, (3, 4, 3), Stopped()))


@pytest.mark.nightly
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("sizes", CHANGES, ids=str)
def test_reads_return_no_old_value_in_each_change_with_each_fault(
    fault: Fault, sizes: tuple[int, int], root: Path
) -> None:
    check(checked(root, sizes, fault))


@pytest.mark.nightly
def test_change_that_ends_in_prepare_returns_no_old_value(root: Path) -> None:
    check(mutant(root, (Phase.PREPARE,), end=3))


@pytest.mark.nightly
def test_checker_finds_a_plain_switch(root: Path) -> None:
    assert mutant(root, ()).wrong


@pytest.mark.nightly
def test_checker_finds_a_change_that_goes_back_from_move(root: Path) -> None:
    assert mutant(root, (Phase.PREPARE, Phase.MOVE), end=3).wrong


@pytest.mark.nightly
def test_checker_finds_copies_of_an_earlier_change(root: Path) -> None:
    assert checked(root, (3, 4, 3), NOTHING, sweeping=None, keys=FEW).wrong


@pytest.mark.nightly
def test_checker_finds_a_write_whose_other_copy_was_not_deleted(root: Path) -> None:
    """With the same cut, the handler itself loses items, but returns no old one."""
    assert mutant(root, PHASES, fault=Cut()).wrong == 0
    ignoring = PROGRAM.replace("return deleted:ok()and res or refused(deleted)", "return res")
    assert ignoring != PROGRAM
    assert mutant(root, PHASES, fault=Cut(), program=ignoring).wrong
