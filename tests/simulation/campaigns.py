"""The cases and mutants of the campaigns that run in the simulation."""

from fnmatch import fnmatchcase
from itertools import chain
from typing import Final

from faults.campaigns import drift, foreign, leaders, permissions, proxies, slots, stale, updates, watches, writes
from faults.campaigns.mutants import mutants

CAMPAIGNS: Final = (writes, watches, stale, drift, foreign, slots, proxies, leaders, permissions, updates)
REAL: Final = (
    "election/paused*",  # a stopped process; the simulation has one clock for all
    "election/clock/*",  # a process with another clock
    "election/releases/*",  # a process with other sources
    "updates/*/leader-paused",
    "permissions/foreign-deployment",  # admission policies
)
"""Patterns of the names of those of their cases that need real processes."""
CASES: Final = {
    case.name: case
    for case in chain.from_iterable(campaign.cases() for campaign in CAMPAIGNS)
    if not any(fnmatchcase(case.name, pattern) for pattern in REAL)
}
MUTANTS: Final = {name: mutant for name, mutant in mutants().items() if mutant.case in CASES and not mutant.crashes}
"""Those that such a case detects, without those that end the process."""
