"""The documentation site: its navigation, its pages, and where their links lead."""

import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

from pages.site.config import configuration, entries
from pages.site.lists import with_lists
from pages.site.sources import (
    MERMAID,
    ROOT_PAGES,
    linked,
    page_names,
    repository_files,
    site_pages,
    with_diagrams,
    with_manifests,
)
from unit.config.rendered import ROOT

REPOSITORY = "https://git.example.com/project"
TITLES = [
    "Try",
    "Install",
    "First cache",
    "Tasks",
    "Troubleshoot by symptom",
    "Migrate",
    "Reference",
    "How it works",
    "Evidence",
]
"""The order of the site, after its start page."""


CONFIG = configuration((ROOT / "mkdocs.yml").read_text())


def files() -> list[str]:
    """The files of the site's pages."""
    return repository_files(ROOT)


def test_each_page_is_in_the_navigation_once() -> None:
    assert Counter(page for _, page in entries(CONFIG["nav"])) == Counter(page_names(files()).values())


def test_sections_have_their_order() -> None:
    first, *sections = (next(iter(entry)) for entry in CONFIG["nav"])
    assert (first, sections) == ("Home", TITLES)


@pytest.mark.parametrize(
    "file",
    sorted(file for file in page_names(files()) if re.fullmatch(r"docs/[\w-]+\.md|docs/decisions/README\.md", file)),
)
def test_page_says_who_it_is_for(file: str) -> None:
    text = re.sub(r"<!--.*?-->\n*", "", (ROOT / file).read_text(), flags=re.DOTALL)
    title, paragraph = text.split("\n\n")[:2]
    assert title.startswith("# ")
    assert re.search(r"This (page|site) is for [^.]+\.", " ".join(paragraph.split())), paragraph


def test_start_page_links_to_every_section() -> None:
    text = (ROOT / "docs/index.md").read_text()
    for entry in CONFIG["nav"][1:]:
        pages = [page for _, page in entries([entry])]
        assert any(f"]({page}" in text for page in pages), entry


QUESTIONS = {
    "Install with OLM": "install-olm.md",
    "Install with kubectl": "install-kubectl.md",
    "Install with Helm": "helm.md",
    "Argo CD": "install-argo-cd.md",
    "Flux": "install-flux.md",
    "Private registry": "air-gap.md",
    "OpenShift": "air-gap.md#openshift",
    "Migration from Bitnami": "migrating.md#from-bitnamis-chart",
    "TLS": "tls.md",
    "Password": "auth.md",
    "NetworkPolicy": "placing.md#clients-networkpolicy",
    "PHP": "../examples/php-sessions/README.md",
    "Resource sizing": "sizing.md#choose-the-settings",
    "Several zones": "../examples/multi-zone/README.md",
    "Scaling": "scaling.md",
    "Grafana": "dashboards.md",
    "Alerts": "monitoring.md#alerts",
    "Hit ratio": "troubleshoot.md#the-hit-ratio-is-low",
    "Backups and persistence": "lifecycle.md#backups",
    "Upgrade": "lifecycle.md#upgrade-the-operator",
    "Rollback": "lifecycle.md#roll-back-the-operator",
    "Uninstall": "lifecycle.md#uninstall",
    "Pending pod": "troubleshoot.md#pods-are-pending",
    "Evictions": "troubleshoot.md#items-are-evicted",
    "Stale keys": "troubleshoot.md#stale-keys-after-scaling",
    "Drain": "troubleshoot.md#a-drain-waits",
    "Webhook error": "troubleshoot.md#webhook-errors",
}
"""The questions of a first month, and the pages that answer them."""


@pytest.mark.parametrize("page", QUESTIONS.values(), ids=QUESTIONS)
def test_start_page_answers_each_question_in_one_click(page: str) -> None:
    assert f"]({page})" in (ROOT / "docs/index.md").read_text()


def test_site_loads_nothing_from_other_hosts() -> None:
    assert CONFIG["theme"]["font"] is False
    assert with_diagrams("```mermaid\nflowchart\n```\n", "a/b.md").endswith(f'<script src="../{MERMAID}"></script>\n')
    assert with_diagrams("```mermaid\nflowchart\n```\n", "a.md").endswith(f'<script src="{MERMAID}"></script>\n')
    assert with_diagrams("# Title\n", "a.md") == "# Title\n"


NAMES = {"docs/a.md": "a.md", "docs/decisions/b.md": "decisions/b.md", "examples/x/README.md": "examples/x/README.md"}


@pytest.mark.parametrize(
    ("file", "link", "target"),
    [
        ("docs/a.md", "decisions/b.md#c", "decisions/b.md#c"),
        ("docs/a.md", "../examples/x/README.md", "examples/x/README.md"),
        ("docs/a.md", "../examples/x", "examples/x/README.md"),
        ("docs/decisions/b.md", "../a.md", "../a.md"),
        ("examples/x/README.md", "../../docs/a.md#d", "../../a.md#d"),
        ("docs/a.md", "../LICENSE", f"{REPOSITORY}/blob/main/LICENSE"),
        ("docs/a.md", "../config/grafana", f"{REPOSITORY}/tree/main/config/grafana"),
        ("docs/a.md", "images/memcached-cache.png", "images/memcached-cache.png"),
        ("docs/decisions/b.md", "../images/memcached-cache.png", "../images/memcached-cache.png"),
        ("docs/a.md", "#here", "#here"),
        ("docs/a.md", "https://kubernetes.io", "https://kubernetes.io"),
    ],
)
def test_links_lead_to_pages_of_the_site_or_to_the_repository(file: str, link: str, target: str) -> None:
    assert linked(f"[text]({link})", file, NAMES, ROOT, REPOSITORY) == f"[text]({target})\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[warm.md](warm.md#more-memory)", "[Keeping caches warm](warm.md#more-memory)"),
        ("[more memory](warm.md#more-memory)", "[more memory](warm.md#more-memory)"),
        ("in place (docs/warm.md).", "in place ([Keeping caches warm](warm.md))."),
    ],
)
def test_names_of_files_become_titles(text: str, shown: str) -> None:
    names = page_names(["docs/api.md", "docs/warm.md"])
    assert linked(text, "docs/api.md", names, ROOT, REPOSITORY) == f"{shown}\n"


def test_text_of_a_link_may_begin_on_another_line() -> None:
    page = linked("[a\nlicense](../LICENSE)", "docs/a.md", NAMES, ROOT, REPOSITORY)
    assert page == f"[a\nlicense]({REPOSITORY}/blob/main/LICENSE)\n"


def test_code_keeps_its_text() -> None:
    page = "```md\n[text](../LICENSE)\n```\n"
    assert linked(page, "docs/a.md", NAMES, ROOT, REPOSITORY) == page
    assert REPOSITORY in linked(f"{page}[text](../LICENSE)\n", "docs/a.md", NAMES, ROOT, REPOSITORY)


def test_example_shows_its_manifests() -> None:
    assert (
        with_manifests("# Title\n", {"a.yaml": "kind: A\n"})
        == "# Title\n\n## Files\n\n### a.yaml\n\n```yaml\nkind: A\n```\n"
    )
    assert with_manifests("# Title\n", {}) == "# Title\n"
    shown = site_pages(ROOT, REPOSITORY)["examples/dev/README.md"].decode()
    assert (ROOT / "examples/dev/memcached.yaml").read_text().rstrip() in shown


def test_repository_is_that_of_the_changelog() -> None:
    assert f"[Unreleased]: {CONFIG['repo_url']}/compare/" in (ROOT / "CHANGELOG.md").read_text()


def test_pages_of_the_root_exist() -> None:
    assert [name for name in ROOT_PAGES if not (ROOT / name).exists()] == []


def test_lock_of_the_site_names_no_registry() -> None:
    folder = Path("tools/pages/site/programs")
    assert "://" not in (ROOT / folder / "package-lock.json").read_text()
    updates = yaml.safe_load((ROOT / ".github/dependabot.yml").read_text())["updates"]
    assert f"/{folder}" in {each.get("directory") for each in updates if each["package-ecosystem"] == "npm"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Two:\n* one\n  more\n* two", "Two:\n\n* one\n    more\n* two"),
        ("1. one\n\n   ```sh\n   * a\n   ```\n\n2. two", "1. one\n\n    ```sh\n    * a\n    ```\n\n2. two"),
        ("10. one\n\n    more", "10. one\n\n    more"),
        ("1. one\n\n   more\n2. two", "1. one\n\n    more\n\n2. two"),
        ("* one\n\nText\n    * no item", "* one\n\nText\n    * no item"),
        ("* one\n\nText\n* two", "* one\n\nText\n\n* two"),
        ("```\ntext\n* one\n```", "```\ntext\n* one\n```"),
    ],
)
def test_lists_are_those_of_the_generator(text: str, shown: str) -> None:
    assert with_lists(text) == f"{shown}\n"


def test_target_of_a_link_is_not_a_bare_page() -> None:
    """As in the changelog, whose links begin with the folder."""
    names = page_names(["CHANGELOG.md", "docs/warm.md"])
    assert linked("[warm](docs/warm.md)", "CHANGELOG.md", names, ROOT, REPOSITORY) == "[warm](warm.md)\n"
