"""Write every golden again, or freeze those of the release that is deployed.

With `digests`: write the digests in the goldens of releases again, after a change of the API groups.
"""

import sys

from goldens import KINDS, objects, paths, released, render
from goldens.freeze import freeze, with_digests


def main(*arguments: str) -> None:
    """Say which files changed."""
    if arguments == ("freeze",):
        sys.stdout.write(f"{freeze()} is written\n")
        return
    if arguments == ("digests",):
        for name, path in released().items():
            path.write_text(with_digests(name.partition("/")[0], objects(path)))
        return
    for path in (path for kind in KINDS for path in paths(kind).values()):
        text = render(objects(path)[0])
        if text != path.read_text():
            path.write_text(text)
            sys.stdout.write(f"{path.name} is written\n")


main(*sys.argv[1:])
