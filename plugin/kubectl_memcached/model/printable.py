"""Text of the cluster and of containers, which must not control the terminal."""


def plain(text: str) -> str:
    """The text without characters that control a terminal."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "\N{REPLACEMENT CHARACTER}" for letter in text)


def one_line(text: str) -> str:
    """The plain text on one line."""
    return plain(text.replace("\n", " "))
