"""Generated blocks of a page, and Markdown tables."""

import re
from collections.abc import Iterable, Mapping


def filled(text: str, blocks: Mapping[str, str]) -> str:
    """The text with the body of each block, which is between `<!-- generated: NAME -->` and `<!-- end -->`.

    Raises LookupError if the text lacks a block.
    """
    for name, body in blocks.items():
        pattern = rf"(<!-- generated: {re.escape(name)} -->\n).*?(<!-- end -->)"
        text, count = re.subn(pattern, lambda found, body=body: f"{found[1]}{body}\n{found[2]}", text, flags=re.DOTALL)
        if not count:
            raise LookupError(f"the page has no block <!-- generated: {name} -->")
    return text


def table(rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table; the first row is its heading. A cell is one line, even if its text has several."""
    head, *rest = [[" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rest))
