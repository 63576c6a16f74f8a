#!/usr/bin/env bash
# An append to an item whose key is in base64 changes the key that memcached shows: to bytes that no command can send.
#
# Versions:   memcached 1.6.45, from the sources in Debian.
# Guess:      `ms KEY 1 b MA` changes the value of an item. Its key stays what it is: replies with the flag k, and dumps of
#             all keys, show it in base64 with the flag b, as before.
# Behaviour:  append and prepend make a new item, and forget that its key was given in base64. The item is still found
#             with `mg KEY b`, but the reply to the flag k has the decoded bytes, without b, even a space or a control
#             character. `lru_crawler mgdump` shows the same line. A set with the flag b restores the mark.
# Matters:    A program that copies or deletes what a dump lists takes the line apart at the space, or sends another key,
#             and misses the item. A client that matches replies of pipelined requests by their keys finds no request for
#             this one. Binary keys are safe only as long as nobody appends to their items.
#
# Output, seen on 2026-12-01:
#   memcached 1.6.45
#   ms AQIgaWQ= 1 b      mg -> VA 1 kAQIgaWQ= b             mgdump -> mg AQIgaWQ= b
#   ms AQIgaWQ= 1 b MA   mg -> VA 2 k\x01\x02 id            mgdump -> mg \x01\x02 id
#   ms AQIgaWQ= 1 b      mg -> VA 1 kAQIgaWQ= b             mgdump -> mg AQIgaWQ= b
#   As described: an append removes the mark of the key.
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


memcached = Client()
KEY = "AQIgaWQ="
"""The bytes 1, 2, a space and `id`."""


def shown(command: str) -> tuple[str, str]:
    """Change the item, and return how a reply and a dump show its key."""
    memcached.ask(command, "a")
    reply = memcached.ask(f"mg {KEY} b k v")[0]
    memcached.file.write(b"lru_crawler mgdump hash\r\n")
    memcached.file.flush()
    lines = iter(memcached.file.readline, b"EN\r\n")
    dumped = [line.decode().rstrip("\r\n") for line in lines if line.startswith(b"mg ")]
    print(f"{command:<20} mg -> {ascii(reply)[1:-1]:<28} mgdump -> {ascii(dumped[0])[1:-1]}")
    return reply, dumped[0]


MARKED = (f"VA 1 k{KEY} b", f"mg {KEY} b")
UNMARKED = ("VA 2 k\x01\x02 id", "mg \x01\x02 id")
found = [shown(f"ms {KEY} 1 {flags}") for flags in ("b", "b MA", "b")]
if found != [MARKED, UNMARKED, MARKED]:
    sys.exit(f"CHANGED: {found}")
print("As described: an append removes the mark of the key.")
PYTHON
timeout 60 python3 check.py
