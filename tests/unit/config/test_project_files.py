"""Project files such as the changelog and the issue forms agree with the code and with each other."""

import configparser
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from unit.config.makefile import rules
from unit.config.rendered import ROOT

PAGES = ("CHANGELOG.md", "CODE_OF_CONDUCT.md", "SECURITY.md", ".github/PULL_REQUEST_TEMPLATE.md")
FORMS = (".github/ISSUE_TEMPLATE/bug_report.yml", ".github/ISSUE_TEMPLATE/feature_request.yml")
CATEGORIES = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
STATUSES = {"proposed", "accepted", "superseded"}
DECISIONS = ROOT / "docs/decisions"
ROW = re.compile(
    r"^\| \[(?P<title>[^\]]+)\]\((?P<page>[^)]+)\) \| (?P<status>\w+) \| (?P<date>\d{4}-\d\d-\d\d) \| .+ \|$"
)
STATUS_LINE = re.compile(r"^Status: (\w+) · Date: (\d{4}-\d\d-\d\d)$")
UPDATED_MANUALLY = "k8s.io/"
THREAT_MODEL = "docs/security.md"


def read(name: str) -> str:
    """The text of a file of the project."""
    return (ROOT / name).read_text()


def load(name: str) -> Any:
    """A YAML file of the project."""
    return yaml.safe_load(read(name))


PROJECT = tomllib.loads(read("pyproject.toml"))
VERSION: str = PROJECT["project"]["version"]


def repository() -> str:
    """The URL of the project: a placeholder, replaced as docs/releasing.md describes."""
    (path,) = (ROOT / "config/manifests/bases").glob("*.yaml")
    return yaml.safe_load(path.read_text())["metadata"]["annotations"]["repository"]


@pytest.mark.parametrize("name", PAGES)
def test_links_of_project_files_exist(name: str) -> None:
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]+)(?:#([^)]*))?\)", read(name)):
        page = (ROOT / name).parent / target
        assert page.exists(), f"{name}: {target}"
        headings = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)
        assert not anchor or anchor in {heading.lower().replace(" ", "-") for heading in headings}


def test_changelog_has_the_current_version() -> None:
    text = read("CHANGELOG.md")
    sections = re.findall(r"^## \[([^\]]+)\](?: - (\S+))?$", text, flags=re.MULTILINE)
    assert sections[0] == ("Unreleased", "")
    assert sections[1] == (VERSION, PROJECT["tool"]["memcached-operator"]["releases"][VERSION]["date"])
    assert set(re.findall(r"^### (.+)$", text, flags=re.MULTILINE)) <= CATEGORIES
    links = dict(re.findall(r"^\[([^\]]+)\]: (\S+)$", text, flags=re.MULTILINE))
    assert list(links) == [version for version, _ in sections]
    assert all(link.startswith(f"{repository()}/") for link in links.values())
    assert links["Unreleased"].endswith(f"/v{VERSION}...HEAD")


def test_changelog_has_every_release() -> None:
    releases = PROJECT["tool"]["memcached-operator"]["releases"]
    assert [
        version
        for version in releases
        if f"\n## [{version}] - {releases[version]['date']}\n" not in read("CHANGELOG.md")
    ] == []


def test_security_policy_covers_the_current_version_and_the_threat_model() -> None:
    text = read("SECURITY.md")
    minor = VERSION.rpartition(".")[0]
    assert f"| {minor}.x | yes |" in text
    assert f"]({THREAT_MODEL})" in text


def test_code_of_conduct_has_a_contact_and_no_placeholder() -> None:
    text = read("CODE_OF_CONDUCT.md")
    assert "](SECURITY.md#reporting-a-vulnerability)" in text
    assert "[INSERT" not in text
    assert "version 2.1" in text


def test_pages_contain_no_email_address() -> None:
    pages = [*PAGES, *FORMS, ".github/ISSUE_TEMPLATE/config.yml", "docs/roadmap.md"]
    assert [name for name in pages if re.search(r"\b[\w.+-]+@[\w-]+\.\w", read(name))] == []


def test_roadmap_has_no_dates_and_no_issue_numbers() -> None:
    assert re.findall(r"\b20\d\d\b|#\d+|\bissue \d+", read("docs/roadmap.md")) == []


@pytest.mark.parametrize("name", FORMS)
def test_issue_forms_are_well_formed(name: str) -> None:
    form = load(name)
    assert form.keys() >= {"name", "description", "body"}
    inputs = [field for field in form["body"] if field["type"] != "markdown"]
    ids = [field["id"] for field in inputs]
    assert len(set(ids)) == len(ids) > 0
    assert all(field["type"] in {"textarea", "input", "dropdown"} and field["attributes"]["label"] for field in inputs)
    assert any(field.get("validations", {}).get("required") for field in inputs)


def test_vulnerabilities_are_not_reported_as_issues() -> None:
    config = load(".github/ISSUE_TEMPLATE/config.yml")
    assert config["blank_issues_enabled"] is False
    links = [link["url"] for link in config["contact_links"]]
    assert f"{repository()}/security/policy" in links
    assert all(link.startswith(f"{repository()}/") for link in links)
    assert "`SECURITY.md`" in load(FORMS[0])["body"][0]["attributes"]["value"]


def test_pre_commit_runs_each_part_of_make_check() -> None:
    (check,) = [rule for rule in rules() if rule.target == "check"]
    (local,) = load(".pre-commit-config.yaml")["repos"]
    assert [hook["entry"] for hook in local["hooks"]] == [f"make --silent {part}" for part in check.prerequisites]
    assert all(hook["language"] == "system" and hook["pass_filenames"] is False for hook in local["hooks"])
    assert all(hook.get("always_run") or re.compile(hook["files"]) for hook in local["hooks"])


def dependabot(ecosystem: str, directory: str = "") -> dict[str, Any]:
    """The entry of a package ecosystem in dependabot.yml, of a directory outside tests/clients or of this one."""
    updates = [each for each in load(".github/dependabot.yml")["updates"] if each["package-ecosystem"] == ecosystem]
    inside = [each for each in updates if each.get("directory", "").startswith("/tests/clients/")]
    (entry,) = (
        [each for each in inside if each["directory"] == directory]
        if directory
        else [each for each in updates if each not in inside]
    )
    return entry


@pytest.mark.parametrize("ecosystem", ["pip", "gomod", "github-actions", "docker"])
def test_dependabot_updates_every_ecosystem(ecosystem: str) -> None:
    assert dependabot(ecosystem)["schedule"]["interval"] in {"weekly", "monthly"}


@pytest.mark.parametrize(
    ("ecosystem", "file"), [("gomod", "go/go.mod"), ("npm", "node/package-lock.json"), ("maven", "java/pom.xml")]
)
def test_dependabot_updates_the_client_libraries(ecosystem: str, file: str) -> None:
    path = ROOT / "tests/clients/programs" / file
    assert path.exists()
    assert dependabot(ecosystem, f"/{path.parent.relative_to(ROOT)}")["schedule"]["interval"] == "monthly"


def test_lock_of_npm_names_no_registry() -> None:
    assert "://" not in read("tests/clients/programs/node/package-lock.json")


def go_modules() -> list[Path]:
    """The go.mod of every Go module."""
    return sorted((ROOT / "tools/go").rglob("go.mod"))


def programs(module: str) -> list[str]:
    """The packages in the `tool` directives of a go.mod file."""
    blocks = re.findall(r"^tool \(\n(.*?)^\)", module, flags=re.MULTILINE | re.DOTALL)
    return [*re.findall(r"^tool ([^(\s]+)$", module, flags=re.MULTILINE), *" ".join(blocks).split()]


def test_dependabot_updates_every_go_module() -> None:
    modules = [f"/{path.parent.relative_to(ROOT)}" for path in go_modules()]
    assert sorted(dependabot("gomod")["directories"]) == sorted(modules)


@pytest.mark.parametrize("path", go_modules(), ids=lambda path: path.parent.name)
def test_dependabot_may_update_every_program_except_kubernetes(path: Path) -> None:
    required: list[str] = re.findall(r"^(?:require )?\s*(\S+) v\S+", path.read_text(), flags=re.MULTILINE)
    patterns: list[str] = [allowed["dependency-name"].replace("*", ".*") for allowed in dependabot("gomod")["allow"]]
    for program in programs(path.read_text()):
        modules = [each for each in required if f"{program}/".startswith(f"{each}/")]
        assert modules, f"no required module contains {program}"
        allowed = any(re.fullmatch(pattern, each) for pattern in patterns for each in modules)
        assert allowed is not program.startswith(UPDATED_MANUALLY), program


def test_every_decision_is_in_the_index() -> None:
    rows = [found for line in read("docs/decisions/README.md").splitlines() if (found := ROW.match(line))]
    pages = sorted(path.name for path in DECISIONS.glob("*.md") if path.name != "README.md")
    assert sorted(row["page"] for row in rows) == pages
    assert {row["status"] for row in rows} <= STATUSES


def test_decisions_have_the_status_and_date_of_the_index() -> None:
    rows = {row["page"]: row for line in read("docs/decisions/README.md").splitlines() if (row := ROW.match(line))}
    for page, row in rows.items():
        stated = STATUS_LINE.match((DECISIONS / page).read_text().splitlines()[1])
        assert not stated or stated.groups() == (row["status"], row["date"]), page


def test_editorconfig_has_the_line_length_of_ruff() -> None:
    parser = configparser.ConfigParser(strict=True)
    parser.read_string(f"[top]\n{read('.editorconfig')}")
    assert parser["top"].getboolean("root")
    assert parser["*.py"].getint("max_line_length") == PROJECT["tool"]["ruff"]["line-length"]
    assert parser["*"]["end_of_line"] == "lf"
