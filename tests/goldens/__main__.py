"""Write every golden again, or freeze those of the release that is deployed."""

import sys

from goldens import KINDS, objects, paths, render
from goldens.freeze import freeze


def main(*arguments: str) -> None:
    """Say which files changed."""
    if arguments == ("freeze",):
        sys.stdout.write(f"{freeze()} is written\n")
        return
    for path in (path for kind in KINDS for path in paths(kind).values()):
        text = render(objects(path)[0])
        if text != path.read_text():
            path.write_text(text)
            sys.stdout.write(f"{path.name} is written\n")


main(*sys.argv[1:])
