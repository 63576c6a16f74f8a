"""Replies of a real memcached, from `exporter/`, and metrics as values."""

import re
from pathlib import Path
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from memcached_agent.memcached.stats import Statistics, statistics

FOLDER: Final = Path(__file__).parent / "exporter"
COMMANDS: Final = ("stats", "stats settings", "stats items", "stats slabs")
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]
"""Values by name and labels."""


def replies() -> dict[str, bytes]:
    """The reply to each command, with the line ends of the protocol."""
    parts = (FOLDER / "stats.txt").read_text().split("# ")[1:]
    found = {name.strip(): text.replace("\n", "\r\n").encode() for name, _, text in (p.partition("\n") for p in parts)}
    assert tuple(found) == COMMANDS
    return found


def reference() -> Statistics:
    """The replies, parsed."""
    return statistics(*replies().values())


def samples(text: str) -> Samples:
    """All samples of a text. The parser of prometheus-client would rename counters without `_total`."""
    found: Samples = {}
    for family in text_string_to_metric_families(re.sub(r"(?m)^(# TYPE \S+) counter$", r"\1 gauge", text)):
        for each in family.samples:
            key = (each.name, frozenset(each.labels.items()))
            assert key not in found
            found[key] = each.value
    return found


def types(text: str) -> dict[str, str]:
    """The type of each metric, in the words of the text: the parser removes `_total` from the names."""
    lines = [line.split() for line in text.splitlines() if line.startswith("# TYPE ")]
    assert len({line[2] for line in lines}) == len(lines)
    return {name: kind for _, _, name, kind in lines}


def value(text: str, name: str, **labels: str) -> float:
    """The value of one sample."""
    return samples(text)[name, frozenset(labels.items())]
