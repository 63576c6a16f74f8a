#!/usr/bin/env bash
# A disk of items (extstore) is empty after each restart of memcached, on a persistent volume, too.
#
# Versions:   memcached 1.6.45, from the sources in Debian. 1.6.18 does the same.
# Guess:      The file of ext_path has the items, so a memcached that starts with the file of its predecessor has them.
#             Grafana's chart for Loki gives it a persistent volume claim.
# Behaviour:  memcached truncates the file when it starts. It says nothing about it: with -vv, its log has no line about
#             the old content. All items are gone.
# Matters:    A claim that outlives its pod keeps nothing. It costs its price, and pins the pod to the zone or the node
#             of the volume. The cache is cold after each rollout, however long the disk lives.
#
# Output, seen on 2026-11-30:
#   memcached 1.6.45
#   first start: 2000 of 2000 items, 14 MiB in the file
#   stopped: 18 MiB in the file
#   second start: 0 of 2000 items, 0 MiB in the file
#   lines about the file in the log of the second start: 0
#   As described: the second start has no item, and the file is empty.
set -euo pipefail
folder=$(mktemp -d)
trap 'jobs -p | xargs -r kill 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
# memcached 1.6.45, built in the folder, or the program that the variable MEMCACHED names
memcached=${MEMCACHED:-}
if [ -z "$memcached" ]; then
  mirror=$(apt-get indextargets --format "\$(SITE)" 'Created-By: Packages' | awk '!/security/ && !found++')
  timeout 60 curl -fsSo memcached.tar.xz "${mirror%/}/pool/main/m/memcached/memcached_1.6.45.orig.tar.xz"
  sha256sum --quiet -c <<<'c383a2ad8f973b627c3de472702f46ee33b402750de4fd2d25cef65a00140110  memcached.tar.xz'
  timeout 120 apt-get -qq download libevent-dev 2>download.log || { cat download.log; exit 1; }
  dpkg-deb -x libevent-dev_*.deb . && rm usr/lib/*/*.so # the static library remains
  mkdir source && tar -C source --strip-components=1 -xf memcached.tar.xz
  machine=$(gcc -dumpmachine)
  (cd source && timeout 240 ./configure --quiet --disable-docs --disable-dependency-tracking CFLAGS=-O0 \
    --with-libevent="$folder/usr" CPPFLAGS="-I$folder/usr/include -I$folder/usr/include/$machine" \
    LDFLAGS="-L$folder/usr/lib/$machine" && timeout 240 make -s -j2 memcached) >build.log 2>&1 || { tail build.log; exit 1; }
  memcached=$folder/source/memcached
fi
"$memcached" -V
cat >check.py <<'PYTHON'
import pathlib
import socket
import subprocess
import sys
import time


class Client:
    """A connection to memcached."""

    def __init__(self) -> None:
        for _ in range(100):
            self.socket = socket.socket(socket.AF_UNIX)
            try:
                self.socket.connect("memcached.socket")
                break
            except OSError:
                time.sleep(0.1)
        self.file = self.socket.makefile("rwb")

    def ask(self, *lines: str) -> list[str]:
        """Send lines, and return the lines of the answer: all that come before the answer to `mn`."""
        self.file.write("".join(f"{line}\r\n" for line in (*lines, "mn")).encode())
        self.file.flush()
        answer: list[str] = []
        while (line := self.file.readline().decode().rstrip("\r\n")) != "MN":
            answer.append(line)
        return answer


OPTIONS = sys.argv[1:]
FILE = pathlib.Path("items")
VALUE = "x" * 10240


def stats() -> dict[str, str]:
    return dict(line.split()[1:3] for line in memcached.ask("stats") if line.startswith("STAT "))


counts: list[int] = []
for number in ("first", "second"):
    with open("log", "wb") as log:
        process = subprocess.Popen(OPTIONS, stderr=log, stdout=log)
    try:
        memcached = Client()
        if number == "first":
            for key in range(2000):
                memcached.ask(f"ms {key} {len(VALUE)} q", VALUE)
            while int(stats()["extstore_objects_written"]) < 1000:
                time.sleep(0.1)
        counts.append(sum(memcached.ask(f"mg {key}") == ["HD"] for key in range(2000)))
        size = FILE.stat().st_blocks * 512 // 2**20
        print(f"{number} start: {counts[-1]} of 2000 items, {size} MiB in the file")
    finally:
        process.terminate()
        process.wait()
    pathlib.Path("memcached.socket").unlink(missing_ok=True)
    if number == "first":
        print(f"stopped: {FILE.stat().st_blocks * 512 // 2**20} MiB in the file")
about = [line for line in pathlib.Path("log").read_text().splitlines() if "ext" in line.lower() or "items" in line]
print(f"lines about the file in the log of the second start: {len(about)}")
if not (counts[0] == 2000 and counts[1] == 0 and not about):
    sys.exit("CHANGED: memcached keeps items in the file, or says that it does not.")
print("As described: the second start has no item, and the file is empty.")
PYTHON
timeout 90 python3 check.py "$memcached" -vv -u "$(id -un)" -s memcached.socket -m 64 \
  -o "ext_page_size=8,ext_wbuf_size=2,ext_item_age=0,ext_path=items:64m"
