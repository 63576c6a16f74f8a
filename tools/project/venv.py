"""Make .venv from requirements/dev.txt: `python3 -m project.venv [DIRECTORY]`.

This runs before anything is installed, so it uses the standard library only, and no syntax or module that Python 3.9
lacks: it must report that a Python is too old. pip installs, and not the locked uv: uv does not read pip's settings,
with which a machine reaches its package index.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

OLDEST = (3, 11)
ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "requirements/dev.txt"
INPUTS = (LOCK, ROOT / "pyproject.toml")
STAMP = ".installed-"
INTERRUPTED = 130
SHOWN_EVERY = 20
"""Seconds after which a command that still runs is shown."""


class VenvError(Exception):
    """An expected failure: the message is one sentence that says what is missing, and the remedy."""


def main(directory: str = ".venv") -> int:
    """Make or update the environment; returns the exit code: 0, 1 for an error, 130 on Ctrl-C."""
    try:
        make(Path(directory))
    except VenvError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted: run it again to continue", file=sys.stderr)
        return INTERRUPTED
    return 0


def make(directory: Path) -> None:
    """Install what requirements/dev.txt locks and this project; does nothing if neither has changed since.

    Without dependencies, since the lock names all of them. With dependencies, pip before 23.3 fails as soon as one that
    is needed with an extra has a newer version than locked (pytest-cov needs coverage[toml]):
    github.com/pypa/pip/issues/12345.
    """
    check_version(sys.version_info[:2], sys.executable)
    inputs = sys.version.encode() + b"".join(path.read_bytes() for path in INPUTS)
    stamp = directory / f"{STAMP}{hashlib.sha256(inputs).hexdigest()[:12]}"
    if stamp.exists():
        return
    if not find_spec("ensurepip"):
        install_ensurepip()
    version = sys.version.split()[0]
    # Not to standard output, which callers such as `$(make -s images-list)` read.
    print(f"Installing {LOCK.name} into {directory} with Python {version}: about 2 minutes at first.", file=sys.stderr)
    run(sys.executable, "-m", "venv", *_cleared(directory, version), str(directory))
    pip = (str(directory / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps")
    run(*pip, "--require-hashes", "-r", str(LOCK))
    run(*pip, "--no-build-isolation", "-e", str(ROOT))
    for old in directory.glob(f"{STAMP}*"):
        old.unlink()
    stamp.touch()


def _cleared(directory: Path, version: str) -> list[str]:
    """The option that removes what another Python has installed, or what was not completed; none otherwise."""
    settings = directory / "pyvenv.cfg"
    same = settings.exists() and f"version = {version}\n" in settings.read_text()
    return [] if same and any(directory.glob(f"{STAMP}*")) else ["--clear"]


def check_version(version: tuple[int, ...], program: str) -> None:
    """Raise VenvError for a Python that is too old."""
    if version < OLDEST:
        found, oldest = (".".join(map(str, each)) for each in (version, OLDEST))
        raise VenvError(
            f"{program} is Python {found}, but {oldest} or newer is needed: "
            "install one and name it, for example `make venv PYTHON3=python3.13`"
        )


def install_ensurepip() -> None:
    """As root on Debian and Ubuntu, install what makes environments. Raises VenvError elsewhere."""
    if os.geteuid() or not shutil.which("apt-get"):
        raise VenvError(f"{sys.executable} cannot make environments: install the package python3-venv")
    run("apt-get", "update", "-qq")
    run("apt-get", "install", "-y", "-qq", "--no-install-recommends", "python3-venv")


def run(*words: str) -> None:
    """Run a command, without our PYTHONPATH; its errors are shown. Raises VenvError if it fails."""
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    # setuptools warns of every editable installation.
    environ["PYTHONWARNINGS"] = "ignore"
    started = time.monotonic()
    with subprocess.Popen(words, env=environ, stdout=sys.stderr) as command:
        try:
            while not _ended(command):
                print(f"  still running after {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
        except BaseException:
            command.kill()
            raise
    if command.returncode:
        raise VenvError(f"`{' '.join(words)}` failed: see above")


def _ended(command: subprocess.Popen[bytes]) -> bool:
    """Wait for a command; returns whether it has ended within SHOWN_EVERY."""
    try:
        command.wait(SHOWN_EVERY)
    except subprocess.TimeoutExpired:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
