"""The code blocks of pages, which tests run and apply.

Each block of commands is run by a test, which names it in a call of `page_commands`, or a comment before it says why
not: `<!-- not run: REASON -->`. tests/unit/pages/test_commands.py compares them.
"""

import re
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[2]
SHELLS = ("sh", "console")
"""The languages of commands. A typed line of `console` begins with PROMPT. The others are output."""
PROMPT = "$ "
_BLOCK = re.compile(
    r"^(?:[ ]*<!-- not run: (?P<reason>[^\n]*?) -->\n+)?"
    r"(?P<indent>[ ]*)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """One block of a page: its place in the text, its language, and why no test runs it (empty if one does)."""

    start: int
    language: str
    text: str
    reason: str = ""


def blocks(page: str) -> list[Block]:
    """The blocks of a page, which is given as Markdown, in their order."""
    return [
        Block(match.start(), match["language"], dedent(match["text"]), match["reason"] or "")
        for match in _BLOCK.finditer(page)
    ]


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
    block = located(page, after, number)
    return typed(block.text) if block.language == "console" else block.text


def typed(console: str) -> str:
    """What is typed in a block with output: the lines after the prompt, and indented lines that continue them."""
    lines = re.findall(rf"^{re.escape(PROMPT)}(.*(?:(?<=[|\\])\n[ ]+.*)*)", console, re.MULTILINE)
    return "\n".join(lines) + "\n"
