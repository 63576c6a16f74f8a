"""The code blocks of pages, and the commands in them. Standard library only: the demo and the tests run them."""

import re
from dataclasses import dataclass
from textwrap import dedent

SHELLS = ("sh", "console")
"""The languages of commands. A typed line of `console` begins with PROMPT. The others are output."""
PROMPT = "$ "
NAMESPACE = "shop"
"""The namespace of the examples."""
NC = """\
nc() {
  for _ in {1..300}; do { exec 3<> "/dev/tcp/$1/$2"; } 2> /dev/null && break; sleep 0.1; done
  cat >&3
  cat <&3
}"""
"""A bash function for `nc HOST PORT`, which need not be installed. It waits up to 30 s until the port is open."""
_BLOCK = re.compile(
    r"^(?:[ ]*<!-- not run: (?P<reason>[^\n]*?) -->\n+)?"
    r"(?P<indent>[ ]*)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_TYPED = re.compile(rf"^{re.escape(PROMPT)}(.*(?:(?<=[|\\])\n[ ]+.*)*)\n?", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """One block of a page: its place in the text, its language, and why nothing runs it (empty if something does)."""

    start: int
    language: str
    text: str
    reason: str = ""

    @property
    def commands(self) -> str:
        """What a reader types: the block, or of `console` the lines after the prompt and those that continue them."""
        if self.language != "console":
            return self.text
        return "".join(f"{line}\n" for line in _TYPED.findall(self.text))

    @property
    def output(self) -> list[str]:
        """The lines that the page shows as output; only `console` has some."""
        return _TYPED.sub("", self.text).splitlines() if self.language == "console" else []


def blocks(page: str) -> list[Block]:
    """The blocks of a page, which is given as Markdown, in their order."""
    return [
        Block(match.start(), match["language"], dedent(match["text"]), match["reason"] or "")
        for match in _BLOCK.finditer(page)
    ]
