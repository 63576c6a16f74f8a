"""The pages of the site, from the files of the repository.

The site has the pages of docs/, the examples, and some pages of the root. Links between them lead to pages of the site,
and pictures of docs/ are files of the site: a repository's address of a picture is a page about it, not the picture.
Links to all other files lead to the repository, because readers of the site have no clone.
"""

import posixpath
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final

from pages.site.lists import fence_after, with_lists

ROOT_PAGES: Final = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "reporting.md",
}
"""The pages of the root that the site has, with their names there."""
MERMAID: Final = "assets/mermaid.js"
"""Where the site has the program that draws diagrams."""
BRANCH: Final = "main"
"""The branch to which links to files lead."""
_LINK: Final = re.compile(r"(?:\[(?P<text>[^\[\]]*))?\]\((?P<target>[^)\s]+)\)")
"""The text may begin on the line before."""
_FILE: Final = re.compile(r"(docs/)?[\w-]+\.md")
_BARE: Final = re.compile(r"(?<!\])\(docs/([\w-]+\.md)\)")
"""A page that a description of a field names. After a bracket, it is the target of a link."""
_PICTURES: Final = (".png", ".svg")
_EXTERNAL: Final = re.compile(r"^[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def page_names(files: Iterable[str]) -> dict[str, str]:
    """The page of the site for each Markdown file that it has; both as paths, below the root and below the site."""
    names: dict[str, str] = {}
    for file in sorted(files):
        top, _, rest = file.partition("/")
        if not file.endswith(".md"):
            continue
        if file in ROOT_PAGES:
            names[file] = ROOT_PAGES[file]
        elif top == "docs":
            names[file] = rest
        elif top == "examples":
            names[file] = file
    return names


def repository_files(root: Path) -> list[str]:
    """The files that pages can be made of or show: docs/, examples/ and the pages of the root."""
    found = [path for top in ("docs", "examples") for path in (root / top).rglob("*") if path.is_file()]
    return [*ROOT_PAGES, *(path.relative_to(root).as_posix() for path in sorted(found))]


def linked(text: str, file: str, names: Mapping[str, str], root: Path, repository: str) -> str:
    """The text of a page with the links of the site. Blocks of code stay as they are.

    `file`: its path below the root; `names`: see `page_names`; `repository`: its URL. If the text of a
    link is the name of a file, it becomes the title of the page.
    """

    def replaced(link: re.Match[str]) -> str:
        words, path = link["text"], link["target"]
        page = resolved(path.partition("#")[0], file, names)
        if words is not None and page is not None and _FILE.fullmatch(words):
            words = title(root / page)
        shown = "" if words is None else f"[{words}"
        return f"{shown}]({target(path, file, names, root, repository)})"

    docs = posixpath.relpath("docs", posixpath.dirname(file) or ".")
    lines: list[str] = []
    fence = ""
    for line in text.splitlines():
        before, fence = fence, fence_after(line, fence)
        if not before and not fence:
            line = _LINK.sub(replaced, _BARE.sub(rf"([\1]({docs}/\1))", line))
        lines.append(line)
    return "\n".join([*lines, ""])


@cache
def title(page: Path) -> str:
    """The title of a page: its first heading."""
    first = page.read_text(encoding="utf-8").partition("\n")[0]
    return first.removeprefix("# ")


def resolved(path: str, file: str, names: Mapping[str, str]) -> str | None:
    """The file of the site's page to which a relative path in a file leads; None if there is no such page."""
    if not path or _EXTERNAL.match(path):
        return None
    wanted = posixpath.normpath(posixpath.join(posixpath.dirname(file), path))
    return next((each for each in (wanted, f"{wanted}/README.md") if each in names), None)


def target(link: str, file: str, names: Mapping[str, str], root: Path, repository: str) -> str:
    """The target of a link on the site: a relative path to a page or picture of it, or an address in the repository."""
    path, mark, anchor = link.partition("#")
    if not path or _EXTERNAL.match(link):
        return link
    page = resolved(path, file, names)
    if page is not None:
        return posixpath.relpath(names[page], posixpath.dirname(names[file]) or ".") + mark + anchor
    wanted = posixpath.normpath(posixpath.join(posixpath.dirname(file), path))
    if wanted.startswith("docs/") and wanted.endswith(_PICTURES):
        return posixpath.relpath(wanted.removeprefix("docs/"), posixpath.dirname(names[file]) or ".")
    kind = "tree" if (root / wanted).is_dir() else "blob"
    return f"{repository}/{kind}/{BRANCH}/{wanted}{mark}{anchor}"


def with_manifests(text: str, manifests: Mapping[str, str]) -> str:
    """The page of an example, with its manifests at the end: readers of the site do not see the folder."""
    shown = [f"### {name}\n\n```yaml\n{content.rstrip()}\n```\n" for name, content in sorted(manifests.items())]
    return "\n".join([text.rstrip() + "\n", "## Files\n", *shown]) if shown else text


def with_diagrams(text: str, name: str) -> str:
    """The page with the program that draws its diagrams, if it has any; `name`: its path below the site.

    Otherwise the theme would load the program from another host. Pages without diagrams do not load 2.5 MB. The path is
    relative to the source of the page, as in Markdown: Zensical adds the folder that each page gets on the site.
    """
    if "```mermaid\n" not in text:
        return text
    path = posixpath.relpath(MERMAID, posixpath.dirname(name) or ".")
    return f'{text.rstrip()}\n\n<script src="{path}"></script>\n'


def site_pages(root: Path, repository: str) -> dict[str, bytes]:
    """The content of the site's source: each page, and each other file of docs/, by its path below the site."""
    files = repository_files(root)
    names = page_names(files)
    pages: dict[str, bytes] = {}
    for file, name in names.items():
        text = linked((root / file).read_text(encoding="utf-8"), file, names, root, repository)
        folder = PurePosixPath(file).parent
        if folder.parent.as_posix() == "examples":
            text = with_manifests(
                text, {path.name: path.read_text(encoding="utf-8") for path in yaml_files(root / folder)}
            )
        pages[name] = with_diagrams(with_lists(text), name).encode()
    others = (file for file in files if file.startswith("docs/") and file not in names)
    return pages | {file.removeprefix("docs/"): (root / file).read_bytes() for file in others}


def yaml_files(folder: Path) -> list[Path]:
    """The manifests of an example."""
    return sorted(folder.glob("*.yaml"))
