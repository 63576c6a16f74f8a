"""The client settings in docs/clients.md are those of the programs that `make test-clients` runs."""

import re

import pytest

from clients.libraries import LIBRARIES
from unit.config.rendered import ROOT

PAGE = (ROOT / "docs/clients.md").read_text()
PROGRAMS = ROOT / "tests/clients/programs"
SOURCES = {
    "pymemcache": "with_pymemcache.py",
    "pylibmc": "with_pylibmc.py",
    "gomemcache": "go/main.go",
    "memjs": "node/client.js",
    "xmemcached": "java/Client.java",
}
SECURE = {"pymemcache with TLS": "pymemcache_tls.py", "gomemcache with TLS": "go/tls.go"}


def lines(text: str) -> str:
    """A text without indentation and empty lines."""
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


def test_every_tested_library_is_documented() -> None:
    assert re.findall(r"^### (\w+memcache\w*|pylibmc|memjs)$", PAGE, flags=re.MULTILINE) == [*SOURCES]
    assert tuple(SOURCES) == LIBRARIES


@pytest.mark.parametrize(("heading", "source"), [*SOURCES.items(), *SECURE.items()])
def test_documented_settings_are_tested(heading: str, source: str) -> None:
    found = re.search(rf"^### {heading}\n[^#]*?```\w+\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert found
    assert lines(found[1]) in lines((PROGRAMS / source).read_text())


def test_documented_versions_are_the_locked_ones() -> None:
    locks = [ROOT / "requirements/clients.txt", *(PROGRAMS / each for each in ("node/package.json", "java/pom.xml"))]
    text = "\n".join(path.read_text() for path in locks)
    documented: list[tuple[str, str]] = re.findall(r"^\| (\w+) (\d+\.\d+\.\d+) \|", PAGE, flags=re.MULTILINE)
    assert {name for name, _ in documented} == {*SOURCES} - {"gomemcache"}
    for name, version in documented:
        pinned = re.search(rf'{name}(?:==|": "|</artifactId>\s*<version>){re.escape(version)}\b', text)
        assert pinned, f"{name} {version}"
