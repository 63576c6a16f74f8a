"""Write every golden again."""

import sys

from goldens import KINDS, objects, paths, render

for path in (path for kind in KINDS for path in paths(kind).values()):
    text = render(objects(path)[0])
    if text != path.read_text():
        path.write_text(text)
        sys.stdout.write(f"{path.name} is written\n")
