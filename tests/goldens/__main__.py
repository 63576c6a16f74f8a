"""Write every golden again."""

import sys

from goldens import objects, paths, render

for path in paths():
    text = render(objects(path)[0])
    if text != path.read_text():
        path.write_text(text)
        sys.stdout.write(f"{path.name} is written\n")
