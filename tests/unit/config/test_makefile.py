"""The Makefile is short, and its targets run the right commands."""

import os
import re
import subprocess

import pytest

from unit.config.makefile import TEXT, phony, rules
from unit.config.rendered import ROOT

MAX_LINES, MAX_DOCUMENTED, MAX_RECIPE = 220, 30, 5
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / ".github").rglob("*.*")]
REQUIRED = """
    help demo clean venv lock manifests generate fmt run check test test-unit test-integration test-e2e test-olm
    test-clients test-faults test-faults-gate test-soak bench docker-build docker-push install uninstall deploy undeploy
    build-installer bundle bundle-build bundle-push catalog catalog-build catalog-push bundle-validate scorecard olm
    cluster cluster-down olm-demo
"""


def test_makefile_and_recipes_are_short() -> None:
    assert len(TEXT.splitlines()) <= MAX_LINES
    assert {rule.target: len(rule.recipe) for rule in rules() if len(rule.recipe) > MAX_RECIPE} == {}


def test_make_help_lists_at_most_30_targets() -> None:
    listed = re.findall(r"^  \x1b\[36m(\S+)", commands("help", dry_run=False), flags=re.MULTILINE)
    assert listed == [rule.target for rule in rules() if rule.help]
    assert 0 < len(listed) <= MAX_DOCUMENTED


def test_every_target_is_phony_and_the_required_ones_exist() -> None:
    targets = {rule.target for rule in rules()}
    assert phony() == targets
    assert set(REQUIRED.split()) <= targets


def test_targets_named_in_the_documentation_exist() -> None:
    text = "\n".join(path.read_text() for path in PAGES)
    named = re.findall(r"(?:`|^ *(?:- run: )?)make ((?:[a-z-]+ ?)+)", text, flags=re.MULTILINE)
    words = {word for each in named for word in each.split()}
    assert {"demo", "test", "deploy"} <= words
    assert words - phony() == set()


def commands(*words: str, dry_run: bool = True, **environ: str) -> str:
    """What make prints; by default, the commands it would run."""
    plain = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    options = ["--dry-run"] if dry_run else []
    done = subprocess.run(
        ["make", "--no-print-directory", *options, *words],
        cwd=ROOT, env=plain | environ, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["test-unit"], r'project test --workers=4 --args="\$ARGS" --overlay="config/default" .* unit$'),
        (["test"], "project test .* unit integration e2e faults olm$"),
        (["test-clients"], "project test .* clients$"),
        (["test", "KUBECONFIG=/mine"], "project test .* unit integration e2e faults $"),
        (
            ["docker-build", "IMG=dev", "BASE_IMAGE=b"],
            '--image="localhost/dev" --build-arg=BASE_IMAGE="b" --build-arg=B',
        ),
        (["docker-push", "IMG=r.example.com/op:1"], 'push IMG "r.example.com/op:1" --into-cluster$'),
        (["deploy", "OVERLAY=config/overlays/namespaced"], '--overlay="config/overlays/namespaced"$'),
        (["bundle-push"], r'push BUNDLE_IMG "localhost/\S+-bundle:v[0-9.]+"$'),
        (["demo"], "project demo cache "),
        (["demo", "SCENES=olm"], "project demo olm "),
        (["olm-demo"], "project demo olm "),
        (["olm", "DATE=2030-01-02"], 'project olm --image="localhost/.+" -- .*--date="2030-01-02"'),
        (["run", "METRICS_PORT=1"], "project run --metrics-port=1 --probes-port=8081$"),
    ],
)
def test_targets_run_commands(words: list[str], command: str) -> None:
    assert re.search(command, commands(*words), flags=re.MULTILINE)


def test_pytest_arguments_are_passed_as_one_word() -> None:
    done = subprocess.run(
        ["make", "--silent", "test-unit", "-o", "venv", "VENV_TOOLS=printf '%s\\n'", "ARGS=-k 'a or b'"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "--args=-k 'a or b'" in done.stdout.splitlines()


def test_missing_python_is_reported_by_name() -> None:
    words = ["make", "--silent", "venv", "PYTHON3=no-such-python"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert done.stderr.startswith("no-such-python is missing: install Python 3.11 or newer, or name one,")
