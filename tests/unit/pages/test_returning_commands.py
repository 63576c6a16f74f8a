"""Each kubectl command in messages and pages ends by itself, even if a controller creates again what it deletes.

kubectl 1.31 to 1.35 can wait without end for the deletion of an object that exists again at once.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from support.literals import literals

ROOT: Final = Path(__file__).parents[3]
SOURCES: Final = ("agent", "api", "operator", "plugin", "webhooks", "tools")
"""Folders whose texts users read: messages, Events, advice, help and alerts."""
PAGES: Final = (
    *("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**/*.md", "examples/**/*.md"),
    *("tools/**/*.md", "tools/**/*.txt", "config/**/*.yaml"),
)
RECREATED: Final = re.compile(
    r"[ ,](?:configmap|deployment|lease|networkpolic(?:y|ies)|pod|poddisruptionbudget|podmonitor|prometheusrule"
    r"|replicaset|secret|service|statefulset)s?(?=[ ,/]|$)"
)
"""Kinds that a controller creates again when they are deleted: the operator's, those of Kubernetes, of an issuer."""
COMMAND: Final = re.compile(r"\bkubectl\b(?: [^`\n|;]*?)? (?P<verb>delete|rollout status|wait)\b(?P<words>[^`\n|;]*)")
WAITS_FOR_NOTHING: Final = "--wait=false"


def commands(text: str) -> Iterator[tuple[str, str]]:
    """The commands of a text that may wait: verb and whole command up to the end of its sentence or line.

    A verb without words, as in "`kubectl delete` works", is only mentioned.
    """
    for found in COMMAND.finditer(re.sub(r"\\\n\s*", "", text)):
        if found["words"].strip():
            yield found["verb"], re.split(r"\. |, (?:or|which) ", found[0])[0]


def problem(verb: str, command: str) -> str:
    """Why a command may not return; empty if it does."""
    if verb != "delete":
        return "" if "--timeout=" in command else "has no --timeout"
    words = command.partition(" delete")[2].partition("#")[0]
    waits = WAITS_FOR_NOTHING not in words and (RECREATED.search(words) or "--cascade=orphan" in words)
    return f"has no {WAITS_FOR_NOTHING}" if waits else ""


def texts() -> Iterator[tuple[str, str]]:
    """File and text of everything that gives commands."""
    for source in SOURCES:
        for path in sorted((ROOT / source).rglob("*.py")):
            yield from ((str(path.relative_to(ROOT)), text) for text in literals(path))
    for pattern in PAGES:
        yield from ((str(path.relative_to(ROOT)), path.read_text()) for path in sorted(ROOT.glob(pattern)))


def test_each_command_returns() -> None:
    found = [(file, *each) for file, text in texts() for each in commands(text)]
    assert len(found) > 80, "the commands are found"
    assert [f"{file}: {command} {why}" for file, verb, command in found if (why := problem(verb, command))] == []


def test_each_loop_in_a_page_ends() -> None:
    """A loop that waits for an object runs below `timeout`."""
    endless = re.compile(r"^\s*(?:\$ )?(?:until|while) .*; do\b", re.MULTILINE)
    assert [file for file, text in texts() if endless.search(text)] == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("run kubectl delete -n shop --cascade=orphan statefulset/cache. This keeps", "has no --wait=false"),
        ("run kubectl delete -n shop --wait=false statefulset/cache. This keeps", ""),
        ("kubectl delete pod --force -n {} {}", "has no --wait=false"),
        ("kubectl -n shop delete memcached sessions", ""),
        ("kubectl delete crd memcacheds.cache.example.com", ""),
        ("kubectl wait -n shop --for=condition=Ready \\\n  memcached/sessions --timeout=5m", ""),
        ("kubectl wait -n shop --for=condition=Ready \\\n  memcached/sessions", "has no --timeout"),
        ("kubectl -n shop rollout status deployment/sessions", "has no --timeout"),
    ],
)
def test_rule(text: str, why: str) -> None:
    assert [problem(*each) for each in commands(text)] == [why]


def test_mention_of_a_verb_is_no_command() -> None:
    assert list(commands("`kubectl delete` works without the webhook")) == []
