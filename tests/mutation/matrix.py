"""The kill matrix: which level of tests detects which mutant."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from mutation.levels import LEVELS

Row = dict[str, Any]
"""A mutant with its results by level."""

HERE = Path(__file__).parent
MATRIX = HERE / "matrix.jsonl"
EQUIVALENT = HERE / "equivalent.yaml"
COLUMNS = ("mutants", "both", "unit", "simulation", "none", "equivalent")


def read(file: Path | None) -> list[Row]:
    """The rows of a file, if there is one. A run writes one for each level: they are joined."""
    rows: dict[str, Row] = {}
    for line in file.read_text().splitlines() if file and file.exists() else []:
        new: Row = json.loads(line)
        row = rows.setdefault(key(new), {})
        for name, value in new.items():
            row[name] = {**row.get(name, {}), **value} if isinstance(value, dict) else value
    return list(rows.values())


def key(row: Row) -> str:
    """What identifies a mutant when lines move."""
    return json.dumps(row["place"])


def is_detected(row: Row, level: str) -> bool:
    """True if this level detects the mutant."""
    return row.get(level) in ("detected", "hung")


def detecting(row: Row) -> list[str]:
    """The levels that detect the mutant."""
    return [level for level in LEVELS if is_detected(row, level)]


def equivalents() -> dict[str, str]:
    """The mutants that behave as the original, with the reasons."""
    found: list[Row] = yaml.safe_load(EQUIVALENT.read_text()) if EQUIVALENT.exists() else []
    return {key(each): each["because"] for each in found}


def store(rows: Iterable[Row], file: Path = MATRIX) -> None:
    """Add rows to the stored matrix, or replace their levels: the results only, sorted."""
    kept = {key(row): row for row in read(file)}
    for row in rows:
        merged = {**kept.get(key(row), {}), **row}
        kept[key(row)] = {name: merged[name] for name in ("id", "place", *LEVELS) if name in merged}
    lines = sorted(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in kept.values())
    file.write_text("".join(f"{line}\n" for line in lines))


def table(rows: Sequence[Row]) -> str:
    """The number of mutants of each package by the levels that detect them."""
    known = equivalents()
    packages: dict[str, list[str]] = {}
    for row in rows:
        for package in (_package(row), "."):
            packages.setdefault(package, []).append(_column(row, known))
    lines = [f"{'package':56}" + "".join(f"{each:>11}" for each in COLUMNS)]
    for package in [*sorted(packages.keys() - {"."}), "."]:
        found = packages.get(package, [])
        counts = [len(found), *map(found.count, COLUMNS[1:])]
        lines.append(f"{package:56}" + "".join(f"{each:>11}" for each in counts))
    return "\n".join(lines)


def _package(row: Row) -> str:
    return str(Path(row["place"][0]).parent) if len(row["place"]) > 2 else row["place"][0]


def _column(row: Row, known: Mapping[str, str]) -> str:
    levels = detecting(row)
    if not levels and key(row) in known:
        return "equivalent"
    return "both" if len(levels) > 1 else levels[0] if levels else "none"


def undetected(rows: Iterable[Row]) -> list[str]:
    """The mutants that no level detects, with their results or the reason."""
    known = equivalents()
    return [_described(row, known) for row in rows if not detecting(row)]


def _described(row: Row, known: Mapping[str, str]) -> str:
    if key(row) in known:
        return f"equivalent: {row['id']}: {known[key(row)]}"
    return f"{', '.join(f'{level} {row[level]}' for level in LEVELS if level in row)}: {row['id']}"


def compare(before: Sequence[Row], after: Sequence[Row]) -> tuple[str, bool]:
    """What levels detected before and do not detect after, and whether no level detects one of these mutants."""
    new = {key(row): row for row in after}
    found = [(row, new[key(row)]) for row in before if key(row) in new]
    lines: list[str] = []
    for level in LEVELS:
        both = [pair for pair in found if all(level in row for row in pair)]
        less = [row["id"] for row, other in both if is_detected(row, level) and not is_detected(other, level)]
        more = [row["id"] for row, other in both if is_detected(other, level) and not is_detected(row, level)]
        lines += [f"{level}: no longer detected: {each}" for each in less]
        lines.append(f"{level}: {len(both)} mutants, {len(less)} no longer detected, {len(more)} newly detected")
    lost = [row["id"] for row, other in found if detecting(row) and not detecting(other)]
    lines += [f"lost: {each}" for each in lost]
    lines.append(f"{len(found)} mutants in both, {len(before) - len(found)} only in the first one, {len(lost)} lost")
    return "\n".join(lines), bool(lost)
