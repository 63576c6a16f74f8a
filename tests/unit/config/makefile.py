"""Parses the Makefile."""

import re
from dataclasses import dataclass

from unit.config.rendered import ROOT

TEXT = (ROOT / "Makefile").read_text()
RULE = re.compile(
    r"^(?P<target>[a-z0-9-]+):(?P<prerequisites>(?: [^#=\n]*)?)(?:## (?P<help>.+))?\n(?P<recipe>(?:\t.*\n|  .*\n)*)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Rule:
    """A target with its prerequisites, its text in `make help`, and the lines of its recipe."""

    target: str
    prerequisites: list[str]
    help: str
    recipe: list[str]


def rules() -> list[Rule]:
    """All rules, without target-specific variables."""
    found = RULE.finditer(TEXT)
    return [
        Rule(each["target"], each["prerequisites"].split(), each["help"] or "", each["recipe"].splitlines())
        for each in found
    ]


def phony() -> set[str]:
    """The phony targets."""
    return set(" ".join(re.findall(r"^\.PHONY: (.+)$", TEXT, flags=re.MULTILINE)).split())
