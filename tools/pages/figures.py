"""The sources that measured figures depend on, and the sentence that names them."""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec

from cluster.versions import KUBERNETES

ROOT: Final = Path(__file__).resolve().parents[2]
LENGTH: Final = 12
"""Characters of a digest."""
UNRELEASED: Final = "Unreleased"
RELEASED: Final = re.compile(r'^(DEFAULT_AGENT_IMAGE: Final = )".+"$', re.MULTILINE)
"""The line that each release changes (tools/release/commit/places.py). It does not change the figures."""
LOCKED: Final = re.compile(r"^\S+==\S+", re.MULTILINE)
MODULES: Final = {"etcd": "go.etcd.io/etcd/server/v3", "kwok": "sigs.k8s.io/kwok"}
"""The Go modules of the control plane, by their directories in tools/go."""


@dataclass(frozen=True)
class Figures:
    """Figures of a page. `file`: the published results. `command`: measures them again.

    `sources`: the modules that measure, and the packages of the processes that they start.
    """

    page: str
    file: str
    command: str
    sources: tuple[str, ...]


FIGURES: Final = {
    "bench": Figures(
        "docs/performance.md",
        "docs/performance-results.json",
        "make bench",
        ("measure/bench/*.py", "api/**/*.py", "operator/**/*.py", "webhooks/**/*.py"),
    ),
    "soak": Figures(
        "docs/reliability.md",
        "docs/soak-results.json",
        "make test-soak",
        ("tests/faults/campaigns/soak.py", "api/**/*.py", "operator/**/*.py"),
    ),
}
SHOWN: Final = "report.py"
"""The module that only shows figures."""


def digest(name: str, root: Path = ROOT) -> str:
    """The digest of the code that figures depend on, without docstrings, and of the versions that run it."""
    files = {path for pattern in FIGURES[name].sources for path in root.glob(pattern) if path.name != SHOWN}
    found = sha256()
    for path in sorted(files):
        code = _code(ast.parse(RELEASED.sub(r'\1""', path.read_text(encoding="utf-8"))))
        found.update(f"{path.relative_to(root)} {code}\n".encode())
    found.update("\n".join(_versions(root)).encode())
    return found.hexdigest()[:LENGTH]


def measured(sources: str, date: str, release: str) -> str:
    """A sentence: when figures were measured, and with which sources."""
    version = "unreleased sources" if release == UNRELEASED else f"the sources of release {release}"
    return f"The figures were measured on {date} with {version} (digest `{sources}`)."


def outdated(root: Path = ROOT) -> list[str]:
    """A sentence for each page whose figures were measured with other sources than those of the tree."""
    return [
        f"the figures in {each.page} were measured with other sources: run `{each.command}`, and publish its results"
        for name, each in FIGURES.items()
        if _published(root / each.file) != digest(name, root)
    ]


def _published(file: Path) -> str:
    return msgspec.json.decode(file.read_bytes(), type=dict[str, Any])["sources"]


def _code(node: Any) -> str:
    """The syntax without texts that do nothing. Unlike `ast.dump`, it is the same with each version of Python."""
    if isinstance(node, list):
        return f"[{','.join(filter(None, map(_code, node)))}]"  # pyright: ignore[reportUnknownArgumentType]
    if not isinstance(node, ast.AST):
        return repr(node)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return ""
    fields = ((name, value) for name, value in ast.iter_fields(node) if value not in (None, []))
    return f"{type(node).__name__}({','.join(f'{name}={_code(value)}' for name, value in fields)})"


def _versions(root: Path) -> Iterator[str]:
    """The versions of Python, of the locked packages and of the control plane."""
    yield f"{sys.version_info.major}.{sys.version_info.minor}"
    yield from LOCKED.findall((root / "requirements/runtime.txt").read_text())
    yield KUBERNETES
    for directory, module in MODULES.items():
        text = (root / "tools/go" / directory / "go.mod").read_text()
        yield from re.findall(rf"^(?:require )?\s*{re.escape(module)} v\S+", text, re.MULTILINE)
