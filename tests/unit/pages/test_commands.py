"""Each block of commands in a page is run by a test, or says why not."""

import ast
from collections.abc import Iterator
from pathlib import Path

from pages.commands import SHELLS, Block, blocks
from support.code_blocks import ROOT, located, text_of

PAGES = ("README.md", *sorted(file.name for file in (ROOT / "docs").glob("*.md")))
RUN_IN_PARTS = {"plugin.md"}
"""Pages whose examples one test runs all, with their output (tests/unit/plugin/test_page.py)."""


def of_commands(page: str) -> list[Block]:
    """The blocks of a page that a reader can run."""
    return [block for block in blocks(text_of(page)) if block.language in SHELLS]


def claimed() -> Iterator[tuple[str, int]]:
    """Page and place of each block that a test runs."""
    for file in sorted((ROOT / "tests").rglob("*.py")):
        if "page_commands(" in (text := file.read_text()) and file != Path(__file__):
            for node in ast.walk(ast.parse(text)):
                if (
                    isinstance(node, ast.Call)
                    and getattr(node.func, "id", getattr(node.func, "attr", "")) == "page_commands"
                ):
                    page, after, *number = (ast.literal_eval(word) for word in node.args)
                    yield page, located(page, after, *number).start


def test_each_block_of_commands_is_run_or_says_why_not() -> None:
    run = set(claimed())
    found = {
        (page, block.start): block
        for page in PAGES
        for block in of_commands(page)
        if page not in RUN_IN_PARTS or block.language == "sh"
    }
    unclear = [
        f"{page}: {found[page, start].text}"
        for page, start in found
        if ((page, start) in run) == bool(found[page, start].reason)
    ]
    assert not unclear, (
        "run it in a test (tests/e2e/test_pages.py), or put <!-- not run: REASON --> before it, not both"
    )
    assert run <= found.keys()


def test_shells_of_other_names_are_not_used() -> None:
    others = {"bash", "shell", "zsh", ""}
    assert [page for page in PAGES for block in blocks(text_of(page)) if block.language in others] == []
