"""Lists as the site's generator reads them: Python-Markdown needs a blank line before, and four spaces inside an item.

GitHub, and this repository, follow CommonMark: a list may follow a paragraph, and the content of an item is indented by
the width of its marker.
"""

import re
from typing import Final

INDENT: Final = 4
"""Spaces before the content of an item: https://python-markdown.github.io/#differences."""
_ITEM: Final = re.compile(r"(?:[*-]|\d+\.) +")
_FENCE: Final = re.compile(r" *(`{3,}|~{3,})")


def with_lists(text: str) -> str:
    """The page with a blank line before each list, and with its items indented for Python-Markdown."""
    lines: list[str] = []
    width, fence = 0, ""  # of the marker of the last item; of the block of code that is open
    loose = False  # whether the last item has several paragraphs
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip(" "))
        inside = bool(width) and indent >= width
        item = None if fence or indent else _ITEM.match(line)
        if item and (loose or not width) and lines and lines[-1]:
            lines.append("")
        loose = not item and (loose or not line)
        if item:
            width = item.end()
        elif line and not inside and not fence and lines and not lines[-1]:
            width = 0  # a new paragraph: the list has ended
        lines.append(" " * max(0, INDENT - width) + line if line and inside else line)
        fence = fence_after(line, fence)
    return "\n".join([*lines, ""])


def fence_after(line: str, fence: str) -> str:
    """The fence that is open after a line; empty outside code."""
    found = _FENCE.match(line)
    if not found:
        return fence
    if not fence:
        return found[1]
    return "" if found[1].startswith(fence) else fence
