"""Changed sources in a process that has imported the unchanged ones: only what differs is imported again.

A forkserver imports this module last, before it starts any process, so that each process has all of them.
"""

import importlib
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from faults.process import ROOT, ROOTS

_IMPORT: Final = re.compile(r"^\s*(?:from ([\w.]+) import (\([^)]*\)|.*)|import ([\w.]+))", re.MULTILINE)
"""An import statement with absolute names: the module and the names, or the module."""


def _files() -> dict[str, Path]:
    """The modules of the project that have been imported, and their files."""
    files = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
    own = {name: Path(file) for name, file in files.items() if file and name != "__main__"}
    return {name: file for name, file in own.items() if file.is_relative_to(ROOT) and ".venv" not in file.parts}


def _importers(files: Mapping[str, Path]) -> dict[str, set[str]]:
    """The modules that import a module, or a name from it."""
    found: dict[str, set[str]] = defaultdict(set)
    for name, file in files.items():
        for source, names, alone in _IMPORT.findall(file.read_text()):
            module = source or alone
            for each in (module, *(f"{module}.{part}" for part in re.findall(r"\w+", names))):
                if each in files:
                    found[each].add(name)
    return found


_FILES: Final = _files()
_IMPORTERS: Final = _importers(_FILES)


def use(sources: Path) -> None:
    """Import modules from a copy of the sources from now on.

    Those that differ, and those that depend on them, are imported again when they are needed next. A module cannot
    differ if its import changes other modules: metrics, for example, can be registered only once.
    """
    copies = {name: sources / file.relative_to(ROOT) for name, file in _FILES.items() if _is_copied(file)}
    differing = [name for name, copy in copies.items() if copy.read_bytes() != _FILES[name].read_bytes()]
    for name in _with_dependents(differing):
        _forget(name)
    for name, copy in copies.items():
        if copy.name == "__init__.py" and name in sys.modules:
            sys.modules[name].__path__ = [str(copy.parent)]
    sys.path[:0] = [str(sources / root) for root in ROOTS]
    importlib.invalidate_caches()


def _forget(name: str) -> None:
    del sys.modules[name]
    package, _, last = name.rpartition(".")
    if package in sys.modules:
        vars(sys.modules[package]).pop(last, None)


def _is_copied(file: Path) -> bool:
    return file.relative_to(ROOT).parts[0] in ROOTS


def _with_dependents(names: Iterable[str]) -> set[str]:
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _IMPORTERS.get(name, ())
    return found
