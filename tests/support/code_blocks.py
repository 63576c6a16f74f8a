"""The code blocks of pages, which tests run and apply."""

import re


def code_blocks(page: str) -> list[tuple[str, str]]:
    """Language and text of each code block, in the order of the page; `page`: Markdown."""
    return re.findall(r"```(\w+)\n(.*?)```", page, flags=re.DOTALL)
