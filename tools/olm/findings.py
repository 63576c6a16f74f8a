"""What the validators found, read from what they print. Pure."""

import json
import re
from dataclasses import dataclass

LOGRUS = re.compile(r'\blevel=(?P<level>\w+) msg=(?P<text>"(?:[^"\\]|\\.)*"|\S+)')
LEVELS = {"warn": "warning", "warning": "warning", "error": "error", "fatal": "error", "panic": "error"}


@dataclass(frozen=True)
class Finding:
    """One error or warning."""

    level: str
    text: str


def from_log(output: str) -> list[Finding]:
    """Errors and warnings in lines as logrus writes them; anything else there counts for nothing."""
    found: list[Finding] = []
    for match in LOGRUS.finditer(output):
        level, text = LEVELS.get(match["level"]), match["text"]
        if level:
            found.append(Finding(level, json.loads(text) if text.startswith('"') else text))
    return found


def from_sdk(output: str) -> list[Finding]:
    """What `operator-sdk bundle validate -o json-alpha1` reports; raises ValueError where that is no JSON."""
    outputs: list[dict[str, str]] = json.loads(output)["outputs"] or []
    levels = ((LEVELS.get(each["type"]), each["message"]) for each in outputs)
    return [Finding(level, text) for level, text in levels if level]


def outcome(output: str, errors: str, code: int) -> list[Finding]:
    """Findings of a program that may print JSON, log, or plain words; a failure without any word is an error too."""
    try:
        found = from_sdk(output)
    except (ValueError, KeyError, TypeError):
        found = from_log(errors)
    if code and not any(each.level == "error" for each in found):
        said = errors.strip().splitlines() or ["it said nothing"]
        found.append(Finding("error", f"exit code {code}: {said[-1]}"))
    return found


def count(found: list[Finding]) -> str:
    """For a line of the report."""
    errors = sum(each.level == "error" for each in found)
    warnings = len(found) - errors
    return f"{errors} errors, {warnings} warnings"
