"""The code blocks of pages, which tests run and apply.

Each block of commands is run by a test, which names it in a call of `page_commands`, or a comment before it says why
not: `<!-- not run: REASON -->`. tests/unit/pages/test_commands.py compares them.
"""

from collections.abc import Container
from pathlib import Path

from pages.commands import SHELLS, Block, blocks

ROOT = Path(__file__).parents[2]


def code_blocks(page: str, language: str) -> list[str]:
    """The text of each block in a language, in the order of the page; `page`: Markdown."""
    return [block.text for block in blocks(page) if block.language == language]


def starting(page: str, start: str) -> str:
    """The text of the block of a page that begins with this text. Raises ValueError unless there is one."""
    (text,) = (block.text for block in blocks(text_of(page)) if block.text.startswith(start))
    return text


def text_of(page: str) -> str:
    """The text of a page in docs/, or of README.md."""
    return (ROOT / ("" if page == "README.md" else "docs") / page).read_text(encoding="utf-8")


def located(page: str, after: str, number: int = 0, languages: Container[str] = SHELLS) -> Block:
    """The block with this number, from 0, after a text that occurs once in the page. Raises AssertionError."""
    text = text_of(page)
    assert text.count(after) == 1, f"{page} contains {after!r} {text.count(after)} times"
    end = text.index(after) + len(after)
    found = [block for block in blocks(text) if block.start >= end and block.language in languages]
    assert number < len(found), f"{page} has only {len(found)} blocks after {after!r}"
    return found[number]


def page_commands(page: str, after: str, number: int = 0) -> str:
    """The commands of a block, as `located` finds it. Literal arguments only: a unit test collects them."""
    return located(page, after, number).commands
