#!/usr/bin/env bash
# Writing an item back with the TTL that memcached returned deletes it, if the item has no TTL.
#
# Versions:   memcached 1.6.45, from the sources in Debian. 1.6.18 does the same.
# Guess:      What `mg KEY t` returns can be passed on as the T of `ms`: an item without a TTL stays without one.
# Behaviour:  `mg KEY t` (and exp= of `me` and `lru_crawler metadump`) reports no TTL as -1. As a TTL of ms, touch,
#             set or mg, -1 means expired: the answer is HD, TOUCHED or STORED, and the item is gone.
# Matters:    A program that copies items to another server, or that rewrites an item and keeps its TTL, loses every
#             item that never expires, without an error.
#
# Output, seen on 2026-11-30:
#   memcached 1.6.45
#   mg old t                                 -> HD t-1
#   ms copy 1 T-1                            -> HD
#   mg copy v                                -> EN
#   touch old -1                             -> TOUCHED
#   mg old v                                 -> EN
#   As described: -1 means `never` where memcached reports it, and `now` where memcached reads it.
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


def show(text: str, answer: list[str]) -> list[str]:
    print(f"{text:40} -> {' | '.join(answer)}")
    return answer


memcached = Client()
memcached.ask("ms old 1", "x")
(answer,) = show("mg old t", memcached.ask("mg old t"))
ttl = answer.removeprefix("HD t")
written = show(f"ms copy 1 T{ttl}", memcached.ask(f"ms copy 1 T{ttl}", "x"))
read = show("mg copy v", memcached.ask("mg copy v"))
touched = show(f"touch old {ttl}", memcached.ask(f"touch old {ttl}"))
gone = show("mg old v", memcached.ask("mg old v"))
same = (ttl, written, read, touched, gone) == ("-1", ["HD"], ["EN"], ["TOUCHED"], ["EN"])

if not same:
    sys.exit("CHANGED: -1 has another meaning.")
print("As described: -1 means `never` where memcached reports it, and `now` where memcached reads it.")
PYTHON
timeout 90 python3 check.py
