"""The client settings in docs/clients.md are those of the programs that `make test-clients` runs."""

import pytest

from pages.commands import blocks
from support.code_blocks import text_of
from unit.config.rendered import ROOT

SOURCES = {
    "pymemcache": "with_pymemcache.py",
    "pylibmc": "with_pylibmc.py",
    "gomemcache": "go/main.go",
    "memjs": "node/client.js",
    "xmemcached": "java/Client.java",
    "php-memcached": "php/client.php",
    "dalli": "ruby/client.rb",
    "pymemcache with TLS": "pymemcache_tls.py",
    "gomemcache with TLS": "go/tls.go",
}


def lines(text: str) -> str:
    """A text without indentation and empty lines."""
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


@pytest.mark.parametrize(("heading", "source"), SOURCES.items())
def test_documented_settings_are_tested(heading: str, source: str) -> None:
    section = text_of("clients.md").partition(f"\n### {heading}\n")[2].partition("\n#")[0]
    assert lines(blocks(section)[0].text) in lines((ROOT / "tests/clients/programs" / source).read_text())
