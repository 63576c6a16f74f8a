"""The documentation site: its navigation and its pages. `make site` follows its links."""

from collections import Counter
from pathlib import Path

import yaml

from pages.site.config import configuration, entries
from pages.site.sources import MERMAID, page_names, repository_files, with_diagrams
from unit.config.rendered import ROOT

CONFIG = configuration((ROOT / "mkdocs.yml").read_text())


def files() -> list[str]:
    """The files of the site's pages."""
    return repository_files(ROOT)


def test_each_page_is_in_the_navigation_once() -> None:
    assert Counter(page for _, page in entries(CONFIG["nav"])) == Counter(page_names(files()).values())


def test_site_loads_nothing_from_other_hosts() -> None:
    assert CONFIG["theme"]["font"] is False
    assert with_diagrams("```mermaid\nflowchart\n```\n", "a/b.md").endswith(f'<script src="../{MERMAID}"></script>\n')
    assert with_diagrams("```mermaid\nflowchart\n```\n", "a.md").endswith(f'<script src="{MERMAID}"></script>\n')
    assert with_diagrams("# Title\n", "a.md") == "# Title\n"


def test_lock_of_the_site_names_no_registry() -> None:
    folder = Path("tools/pages/site/programs")
    assert "://" not in (ROOT / folder / "package-lock.json").read_text()
    updates = yaml.safe_load((ROOT / ".github/dependabot.yml").read_text())["updates"]
    assert f"/{folder}" in {each.get("directory") for each in updates if each["package-ecosystem"] == "npm"}
