"""The documentation site: its navigation and its pages. `make site` follows its links."""

import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

from pages.site.config import configuration, entries
from pages.site.sources import (
    MERMAID,
    page_names,
    repository_files,
    with_diagrams,
)
from unit.config.rendered import ROOT

CONFIG = configuration((ROOT / "mkdocs.yml").read_text())


def files() -> list[str]:
    """The files of the site's pages."""
    return repository_files(ROOT)


def test_each_page_is_in_the_navigation_once() -> None:
    assert Counter(page for _, page in entries(CONFIG["nav"])) == Counter(page_names(files()).values())


@pytest.mark.parametrize(
    "file",
    sorted(file for file in page_names(files()) if re.fullmatch(r"docs/[\w-]+\.md|docs/decisions/README\.md", file)),
)
def test_page_says_who_it_is_for(file: str) -> None:
    text = re.sub(r"<!--.*?-->\n*", "", (ROOT / file).read_text(), flags=re.DOTALL)
    title, paragraph = text.split("\n\n")[:2]
    assert title.startswith("# ")
    assert re.search(r"This (page|site) is for [^.]+\.", " ".join(paragraph.split())), paragraph


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


def test_lock_of_the_site_names_no_registry() -> None:
    folder = Path("tools/pages/site/programs")
    assert "://" not in (ROOT / folder / "package-lock.json").read_text()
    updates = yaml.safe_load((ROOT / ".github/dependabot.yml").read_text())["updates"]
    assert f"/{folder}" in {each.get("directory") for each in updates if each["package-ecosystem"] == "npm"}
