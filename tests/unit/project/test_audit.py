"""`make audit` fails if it cannot read the data about vulnerabilities. By itself, pip-audit succeeds then."""

import shlex
import subprocess
import sys
from pathlib import Path

from support import programs

ROOT = Path(__file__).parents[3]
WITHOUT_DATA = """
import sys, requests
from pip_audit._cli import audit

def not_found(self, method, url, **options):
    response = requests.Response()
    response.status_code, response.url = 404, url
    return response

requests.Session.request = not_found
sys.exit(audit())
"""
"""pip-audit where each package is unknown, as behind a mirror of PyPI that does not serve vulnerabilities."""


def command() -> list[str]:
    """The arguments of pip-audit in the target."""
    shown = programs.output(["make", "--dry-run", "audit"], cwd=ROOT)
    program, *arguments = shlex.split(shown.splitlines()[-1])
    assert program.endswith("/pip-audit")
    return arguments


def without_data(arguments: list[str], tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """The result for one short lock."""
    lock = tmp_path / "lock.txt"
    lock.write_text(f"example==1.0 --hash=sha256:{'0' * 64}\n")
    options = [word for word in arguments if word.startswith("--")]
    words = [sys.executable, "-c", WITHOUT_DATA, *options, "-r", str(lock)]
    return programs.run(words, cwd=tmp_path)


def test_missing_data_is_a_failure(tmp_path: Path) -> None:
    done = without_data(command(), tmp_path)
    assert done.returncode == 1, done.stderr
    assert "example: Dependency not found on PyPI and could not be audited" in done.stderr
