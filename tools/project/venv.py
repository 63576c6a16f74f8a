"""Make .venv from requirements/dev.txt: `python3 -m project.venv [DIRECTORY]`.

This runs before anything is installed, so it uses the standard library only, and no syntax or module that Python 3.9
lacks: it must report that a Python is too old.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST = (3, 11)
ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "requirements/dev.txt"
INPUTS = (LOCK, ROOT / "pyproject.toml")
STAMP = ".installed-"
PACKAGE = "python3-venv"
INTERRUPTED = 130


class VenvError(Exception):
    """An expected failure: the message is one sentence that says what is missing, and the remedy."""


def main(arguments: list[str] | None = None) -> int:
    """Make or update the environment; returns the exit code: 0, 1 for an error, 130 on Ctrl-C."""
    try:
        make(Path(parser().parse_args(arguments).directory))
    except VenvError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: {error.strerror}: {error.filename or ''}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted: run it again to continue", file=sys.stderr)
        return INTERRUPTED
    return 0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(
        "python3 -m project.venv", description="Make a virtual environment with everything in requirements/dev.txt."
    )
    top.add_argument("directory", nargs="?", default=".venv", metavar="DIRECTORY", help="default: %(default)s")
    return top


def make(directory: Path) -> None:
    """Install what requirements/dev.txt locks and this project; does nothing if neither has changed since."""
    check_version(sys.version_info[:2], sys.executable)
    stamp = directory / stamp_name(inputs())
    if stamp.exists():
        return
    ensure_venv()
    version = ".".join(map(str, sys.version_info[:3]))
    _report(f"Installing requirements/dev.txt into {directory} with Python {version}: about a minute on the first run.")
    run([sys.executable, "-m", "venv", *_cleared(directory), str(directory)])
    python = str(directory / "bin/python")
    install(python, "--require-hashes", "-r", str(LOCK))
    install(python, "--no-build-isolation", "-e", str(ROOT))
    run([python, "-m", "pip", "--quiet", "--disable-pip-version-check", "check"])
    for old in directory.glob(f"{STAMP}*"):
        old.unlink()
    stamp.touch()


def _cleared(directory: Path) -> list[str]:
    """The option that removes what another Python has installed, or what was not completed; none otherwise."""
    settings = directory / "pyvenv.cfg"
    same = settings.exists() and f"version = {sys.version.split()[0]}\n" in settings.read_text()
    return [] if same and any(directory.glob(f"{STAMP}*")) else ["--clear"]


def install(python: str, *words: str) -> None:
    """Install with the environment's pip, without dependencies: the lock names all of them.

    With dependencies, pip before 23.3 fails as soon as one that is needed with an extra has a newer version than locked
    (pytest-cov needs coverage[toml]): github.com/pypa/pip/issues/12345.
    """
    run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", *words])


def inputs() -> list[bytes]:
    """Everything from which the environment is made: this Python, and the files."""
    return [sys.version.encode(), *(path.read_bytes() for path in INPUTS)]


def stamp_name(inputs: list[bytes]) -> str:
    """The name of a file that exists once these inputs are installed."""
    return STAMP + hashlib.sha256(b"".join(inputs)).hexdigest()[:12]


def check_version(version: tuple[int, ...], program: str) -> None:
    """Raise VenvError for a Python that is too old."""
    if version < OLDEST:
        found, oldest = (".".join(map(str, each)) for each in (version, OLDEST))
        raise VenvError(
            f"{program} is Python {found}, but {oldest} or newer is needed: "
            "install one and name it, for example `make venv PYTHON3=python3.13`"
        )


def has_venv() -> bool:
    """Whether this Python can make environments with pip; Debian has that in a separate package."""
    words = [sys.executable, "-c", "import ensurepip, venv"]
    return subprocess.run(words, capture_output=True, check=False, env=environment()).returncode == 0


def ensure_venv() -> None:
    """Install Python's venv module. Raises VenvError where only the user can."""
    if has_venv():
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise VenvError(f"Python's venv module is missing: install the package {PACKAGE} and run this again")
    _report(f"Installing the package {PACKAGE}.")
    run(["apt-get", "update", "-qq"])
    run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", PACKAGE])
    if not has_venv():
        raise VenvError(
            f"{sys.executable} has no venv module, and the package {PACKAGE} is for another Python: "
            "name one that has it, for example `make venv PYTHON3=/usr/bin/python3`"
        )


def _report(text: str) -> None:
    """Print to standard error: callers such as `$(make -s images-list)` read standard output."""
    print(text, file=sys.stderr, flush=True)


def run(words: list[str]) -> None:
    """Run a command; its errors are shown. Raises VenvError if it fails."""
    if subprocess.run(words, check=False, env=environment(), stdout=sys.stderr).returncode:
        raise VenvError(f"`{' '.join(words)}` failed: see above")


def environment() -> dict[str, str]:
    """The environment of commands: without our PYTHONPATH, and with a package manager that does not ask."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    # setuptools warns of every editable installation.
    return {**kept, "DEBIAN_FRONTEND": "noninteractive", "PYTHONWARNINGS": "ignore"}


if __name__ == "__main__":
    sys.exit(main())
