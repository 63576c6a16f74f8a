"""Parses the output of the validators. Pure functions."""

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
    """The errors and warnings in logrus output; other lines are ignored."""
    found: list[Finding] = []
    for match in LOGRUS.finditer(output):
        level, text = LEVELS.get(match["level"]), match["text"]
        if level:
            found.append(Finding(level, json.loads(text) if text.startswith('"') else text))
    return found


def from_sdk(output: str) -> list[Finding]:
    """What `operator-sdk bundle validate -o json-alpha1` reports; raises ValueError if that is not JSON."""
    outputs: list[dict[str, str]] = json.loads(output)["outputs"] or []
    levels = ((LEVELS.get(each["type"]), each["message"]) for each in outputs)
    return [Finding(level, text) for level, text in levels if level]


def outcome(output: str, errors: str, code: int) -> list[Finding]:
    """The findings of a program that prints JSON, logs or text. A non-zero exit code without an error is an error."""
    try:
        found = from_sdk(output)
    except (ValueError, KeyError, TypeError):
        found = from_log(errors)
    if code and not any(each.level == "error" for each in found):
        lines = errors.strip().splitlines() or ["no output"]
        found.append(Finding("error", f"exit code {code}: {lines[-1]}"))
    return found


def count(found: list[Finding]) -> str:
    """The numbers for a line of the report."""
    errors = sum(each.level == "error" for each in found)
    warnings = len(found) - errors
    return f"{errors} errors, {warnings} warnings"
