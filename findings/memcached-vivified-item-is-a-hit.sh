#!/usr/bin/env bash
# The placeholder that `mg KEY N30` creates is an item with an empty value for every other command.
#
# Versions:   memcached 1.6.45, from the sources in Debian. 1.6.18 does the same.
# Guess:      On a miss, N makes the client the one that computes the value (flag W). Until it stores the value, clients
#             with get see a miss, add stores, and append finds nothing to append to.
# Behaviour:  get hits and returns an empty value. add answers NOT_STORED. append is stored, and the item is complete
#             from then on: the next mg gets only what was appended, without W or Z.
# Matters:    One program with a modern client is enough: all others that share the key read an empty page, an empty
#             list or an empty session for as long as the value takes to compute, and N seconds if the winner dies.
#
# Output, seen on 2026-11-30:
#   memcached 1.6.45
#   mg page N30 v                        -> VA 0 W |
#   mg page N30 v                        -> VA 0 Z |
#   get page                             -> VALUE page 0 0 |  | END
#   add page 0 0 3 / new                 -> NOT_STORED
#   append page 0 0 3 / end              -> STORED
#   mg page N30 v                        -> VA 3 | end
#   As described: get hits an empty value, add refuses, and append completes the item.
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
found = [
    show("mg page N30 v"),
    show("mg page N30 v"),
    show("get page"),
    show("add page 0 0 3", "new"),
    show("append page 0 0 3", "end"),
    show("mg page N30 v"),
]
expected = ["VA 0 W | ", "VA 0 Z | ", "VALUE page 0 0 |  | END", "NOT_STORED", "STORED", "VA 3 | end"]
if found != expected:
    sys.exit(f"CHANGED: expected {expected}")
print("As described: get hits an empty value, add refuses, and append completes the item.")
PYTHON
timeout 110 python3 check.py
