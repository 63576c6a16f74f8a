#!/usr/bin/env bash
# With items on a disk (extstore), memcached counts gets as hits that return nothing.
#
# Versions:   memcached 1.6.45, from the sources in Debian. 1.6.18 does the same.
# Guess:      get_hits / (get_hits + get_misses) is the hit ratio that the clients see, as without extstore.
# Behaviour:  memcached counts a hit when it finds the header of the item in memory, before it reads the disk. If the
#             item has left the disk, the client gets a miss and get_misses stays as it is. That is normal operation:
#             the disk drops whole pages of items, and their headers stay.
# Matters:    Dashboards, alerts and autoscalers that use these counters see a cache at 98 % whose clients miss every
#             second time. prometheus/memcached_exporter has no metric for miss_from_extstore.
#
# Output, seen on 2026-11-30:
#   memcached 1.6.45
#   12000 gets: the client got 6125 values
#   get_hits 11809, get_misses 191: hit ratio 0.98, seen by the client 0.51
#   get_hits - miss_from_extstore = 6125
#   As described: only get_hits - miss_from_extstore is the number of values that the client got.
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
"$memcached" -u "$(id -un)" -s "$folder/memcached.socket" -m 64 \
  -o "ext_page_size=8,ext_wbuf_size=2,ext_item_age=0,ext_path=$folder/items:64m" &
cat >check.py <<'PYTHON'
import socket
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


SIZE, ITEMS = 10240, 12_000
memcached = Client()
for first in range(0, ITEMS, 100):
    memcached.ask(*(line for key in range(first, first + 100) for line in (f"ms {key} {SIZE} q", "x" * SIZE)))


def stats() -> dict[str, int]:
    words = [line.split() for line in memcached.ask("stats") if line.startswith("STAT ")]
    return {name: int(value) for _, name, value in words if value.isdecimal()}


for _ in range(100):
    if stats()["extstore_page_evictions"]:
        break
    time.sleep(0.1)
before = stats()
found = sum(any(line.startswith("VA ") for line in memcached.ask(f"mg {key} v")) for key in range(ITEMS))
after = stats()
hits, misses, lost = (after[name] - before[name] for name in ("get_hits", "get_misses", "miss_from_extstore"))
print(f"{ITEMS} gets: the client got {found} values")
print(f"get_hits {hits}, get_misses {misses}: hit ratio {hits / (hits + misses):.2f}, seen by the client {found / ITEMS:.2f}")
print(f"get_hits - miss_from_extstore = {hits - lost}")
if not (found < hits and hits - lost == found):
    sys.exit("CHANGED: the counted hits are those that the client got, or differ from them by something else.")
print("As described: only get_hits - miss_from_extstore is the number of values that the client got.")
PYTHON
timeout 90 python3 check.py
