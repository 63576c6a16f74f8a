"""Build the documentation site, serve it on this machine, or check its links. Needs node and npm."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click

from pages.site.config import configuration
from pages.site.sources import MERMAID, site_pages
from project.generated import ROOT

CONFIG: Final = ROOT / "mkdocs.yml"
SOURCE: Final = ROOT / "build/site/pages"
HTML: Final = ROOT / "build/site/html"
PROGRAMS: Final = Path(__file__).parent / "programs"
"""The pinned programs of node: package.json and its lock."""
MODULES: Final = PROGRAMS / "node_modules"
ZENSICAL: Final = Path(sys.executable).parent / "zensical"
POLL_SECONDS: Final = 1.0


def repository() -> str:
    """The URL of the repository, as mkdocs.yml names it."""
    return str(configuration(CONFIG.read_text(encoding="utf-8"))["repo_url"])


def install_programs() -> None:
    """Install the programs of node, unless they are those of the lock."""
    stamp, lock = MODULES / ".installed", (PROGRAMS / "package-lock.json").read_bytes()
    if stamp.exists() and stamp.read_bytes() == lock:
        return
    npm = shutil.which("npm") or sys.exit("npm is missing: install node 20 or newer")
    words = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    if code := subprocess.run(words, cwd=PROGRAMS, check=False).returncode:
        sys.exit(f"npm ci failed with exit code {code}: see above")
    stamp.write_bytes(lock)


def sources() -> dict[str, bytes]:
    """The files of the site's source, by their path: pages, and the program that draws diagrams."""
    program = MODULES / "@mermaid-js/tiny/dist/mermaid.tiny.js"
    return site_pages(ROOT, repository()) | {MERMAID: program.read_bytes()}


def written(folder: Path, pages: Mapping[str, bytes]) -> None:
    """Make the folder contain exactly these files. Files that do not change keep their times."""
    for path in [each for each in folder.rglob("*") if each.is_file()]:
        if path.relative_to(folder).as_posix() not in pages:
            path.unlink()
    for name, content in pages.items():
        path = folder / name
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def environment() -> dict[str, str]:
    """The environment of Zensical: without colors if the output is not a terminal."""
    return {**os.environ} if sys.stdout.isatty() else {**os.environ, "NO_COLOR": "1"}


def zensical(*words: str) -> list[str]:
    """A command of Zensical."""
    return [str(ZENSICAL), *words, "--config-file", str(CONFIG)]


@click.group(help=__doc__)
def main() -> None:
    """The commands of the site."""


@main.command()
def build() -> None:
    """Write the site to build/site/html. A broken link or anchor is an error."""
    install_programs()
    written(SOURCE, sources())
    shutil.rmtree(HTML, ignore_errors=True)
    done = subprocess.run(zensical("build", "--strict", "--clean"), cwd=ROOT, check=False, env=environment())
    if done.returncode:
        sys.exit("the site was not built: see above")
    click.echo(f"wrote {HTML.relative_to(ROOT)}")


@main.command()
@click.option("--address", default="127.0.0.1:8000", show_default=True)
def serve(address: str) -> None:
    """Serve the site until Ctrl-C, and build a page again when its file changes."""
    install_programs()
    written(SOURCE, sources())
    with subprocess.Popen(zensical("serve", "--dev-addr", address), cwd=ROOT) as server:
        try:
            while server.poll() is None:
                written(SOURCE, sources())
                time.sleep(POLL_SECONDS)
        except KeyboardInterrupt:
            server.terminate()


@main.command()
def links() -> None:
    """Check every link of the built site with linkinator. Other hosts are skipped."""
    install_programs()
    words = [".", "--recurse", "--check-fragments", "--skip", r"^https?://(?!localhost)", "--verbosity", "error"]
    sys.exit(subprocess.run([str(MODULES / ".bin/linkinator"), *words], cwd=HTML, check=False).returncode)


if __name__ == "__main__":
    main()
