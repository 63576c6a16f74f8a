"""Each rule of the pages' English finds a bad sentence, and correct pages pass (`make prose`)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cluster.binaries.families import VALE_FAMILY
from cluster.binaries.programs import build_programs
from unit.config.rendered import ROOT

BAD = {
    "Archaic": ("A heeded signal.", "Each namesake waits.", "Meanwhile, it waits.", "A limit, thereby a cost."),
    "Beginning": ("What fails is deleted.", "It works. How it works is secret.", "Which pod fails decides the rest."),
    "Colon": (
        "The pod fails: it restarts.",
        "* the cache is full: no item is stored",
        "It is new: its pods are empty.",
        "It is new: after a restart, it is empty.",
        "Wait: the pod is new: then go on.",
    ),
    "End": ("The kernel ends the process.", "A signal that ended memcached."),
    "Even": ("It runs, also if the node fails.", "All pods, also those that wait.", "Each, also one of a new pod."),
    "Gone": ("The pod is gone.", "The items were already gone."),
    "Owners": ("The pods of others.", "Its user is that of the image.", "The fields are those of a pod."),
    "Persons": ("Nobody waits.", "Someone else's pod.", "The controller is told.", "It tells them."),
    "Reject": (
        "It denies the object.",
        "An object that is Denied.",
        "A denial by a rule.",
        "It refuses the spec.",
        "Denying it.",
        "Two refusals.",
    ),
    "Semicolon": ("The pod fails; the node runs.", "* The pod fails;\n  the node runs."),
    "Words": (
        "The agent runs beside memcached.",
        "A breach of a rule.",
        "It scales by hand.",
        "It does the least that a change needs.",
        "It keeps them for ever.",
        "A journal of changes.",
        "It judges the object.",
        "It is mended.",
        "No news for it.",
        "It is of no use.",
        "A pretended node.",
        "A roll-out begins.",
        "The trouble begins.",
        "The verdict is final.",
    ),
}
"""Bad sentences, by the rule that finds them."""
GOOD = """# How it works

Connections are refused. The API server answers `denied` and "denied the request".

Which port is open? The port is 11211.

The controller also watches pods, for example: `a; b: it`. It needs two: a pod that has a node, and a node.

<!-- generated: figures -->
It was denied; nobody was told.
<!-- end -->

| Fault | Effect |
|---|---|
| a lost reply | none: it is read again |
"""


@pytest.fixture(scope="module")
def vale() -> list[str]:
    """The command line of `make prose`, up to the paths."""
    folder = build_programs([(VALE_FAMILY, ("vale",))])
    return [str(folder / "vale"), "--no-global", f"--config={ROOT / '.vale.ini'}", "--output=JSON", "--no-exit"]


def findings(vale: list[str], pages: Path) -> dict[str, set[str]]:
    """The rules that find something, without the name of the style, by the name of the page; those of all pages."""
    done = subprocess.run([*vale, pages], capture_output=True, text=True, check=True, cwd=ROOT)
    found = {Path(page).stem: alerts for page, alerts in json.loads(done.stdout).items()}
    return {page: {alert["Check"].removeprefix("Project.") for alert in alerts} for page, alerts in found.items()}


def test_each_rule_has_a_bad_sentence() -> None:
    assert sorted(path.stem for path in (ROOT / "tools/pages/styles/Project").glob("*.yml")) == sorted(BAD)


def test_each_bad_sentence_is_found_by_its_rule_only(vale: list[str], tmp_path: Path) -> None:
    sentences = {f"{rule}-{number}": text for rule, texts in BAD.items() for number, text in enumerate(texts)}
    for name, text in sentences.items():
        (tmp_path / f"{name}.md").write_text(f"# Page\n\n{text}\n")
    found = findings(vale, tmp_path)
    wrong = {text: found.get(name) for name, text in sentences.items() if found.get(name) != {name.split("-")[0]}}
    assert wrong == {}


def test_code_and_generated_blocks_and_correct_english_pass(vale: list[str], tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text(GOOD)
    assert findings(vale, tmp_path) == {}


@pytest.mark.parametrize(
    ("page", "rule"),
    [
        ("# Page\n\n### Too deep\n", "MD001"),
        ("# Page\nText\n", "MD022"),
        ("# Page\n\n```\ncode\n```\n", "MD040"),
        ("# Page\n", ""),
    ],
)
def test_markdown_rules_are_those_of_the_project(page: str, rule: str, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(page)
    command = [sys.executable, "-m", "pymarkdown", "scan", tmp_path / "page.md"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, rule in done.stdout, done.stderr) == (int(bool(rule)), True, "")
