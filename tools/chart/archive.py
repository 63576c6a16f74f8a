"""The chart as an archive, as `helm package` writes it, but the same bytes every time."""

import gzip
import io
import tarfile
from collections.abc import Mapping

from bundle.release import PACKAGE


def archive(files: Mapping[str, str]) -> bytes:
    """A .tgz of files (path below the chart's folder → text), without times and owners. Chart.yaml is first."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted(files, key=lambda path: (path != "Chart.yaml", path)):
            content = files[path].encode()
            entry = tarfile.TarInfo(f"{PACKAGE}/{path}")
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))
    return gzip.compress(buffer.getvalue(), compresslevel=9, mtime=0)
