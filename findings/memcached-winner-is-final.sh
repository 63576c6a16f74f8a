#!/usr/bin/env bash
# If the client that won the right to compute a value dies, no other gets it before the item expires.
#
# Versions:   memcached 1.6.45, from the sources in Debian. 1.6.18 does the same.
# Guess:      The flags W (won) and Z (another client has won) work like a lease: after some seconds without a new value,
#             the next client wins.
# Behaviour:  There is no time limit. Each later client gets Z, until the item is stored, deleted or expires. An item that
#             was marked as stale keeps its TTL, so that can take days. A second `md KEY I` lets one more client win.
# Matters:    One crash, one timeout or one deployment at the wrong moment: all clients serve the stale value, each sure
#             that another one is refreshing it. Give the mark a short TTL (`md KEY I T30`), or N and R a short one.
#
# Output, seen on 2026-11-30:
#   memcached 1.6.45
#   md page I                            -> HD
#   mg page t v                          -> VA 3 t86400 X W | old
#   1 s later:
#   mg page t v                          -> VA 3 t86399 Z X | old
#   15 s later:
#   mg page t v                          -> VA 3 t86384 Z X | old
#   40 s later:
#   mg page t v                          -> VA 3 t86343 Z X | old
#   md page I                            -> HD
#   mg page t v                          -> VA 3 t86343 X W | old
#   As described: only the first client won, until the item was marked again.
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
"$memcached" -u "$(id -un)" -s "$folder/memcached.socket" &
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


def show(*lines: str) -> str:
    answer = " | ".join(memcached.ask(*lines))
    print(f"{' / '.join(line[:28] for line in lines):36} -> {answer[:60]}")
    return answer


memcached = Client()
memcached.ask("set page 0 86400 3", "old")
show("md page I")
found = [show("mg page t v")]
for seconds in (1, 15, 40):
    time.sleep(seconds)
    print(f"{seconds} s later:")
    found.append(show("mg page t v"))
show("md page I")
found.append(show("mg page t v"))
flags = [answer.partition(" |")[0].split()[3:] for answer in found]
if flags != [["X", "W"], *[["Z", "X"]] * 3, ["X", "W"]]:
    sys.exit(f"CHANGED: the flags were {flags}")
print("As described: only the first client won, until the item was marked again.")
PYTHON
timeout 110 python3 check.py
