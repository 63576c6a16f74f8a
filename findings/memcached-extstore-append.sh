#!/usr/bin/env bash
# append refuses an item that memcached has moved to its disk (extstore), and so does add.
#
# Versions:   memcached 1.6.45, from the sources in Debian. 1.6.18 does the same.
# Guess:      An append works for each item that a get returns, whether memcached keeps it in memory or on its disk.
# Behaviour:  append and prepend answer NOT_STORED as soon as the item is on the disk, as if it did not exist. add then
#             answers NOT_STORED, because it exists. Items of up to about 400 bytes stay in memory: a list works until it grows.
# Matters:    "append, and add if there is nothing to append to" is how clients keep lists. Here each round fails: the
#             data is lost, or the client tries again without an end. It happens only to long lists, and only once they were moved.
#
# Output, seen on 2026-11-30:
#   memcached 1.6.45
#   small,   100 bytes: append STORED, prepend STORED, add NOT_STORED, get VALUE small 0 102
#   large, 20000 bytes: append NOT_STORED, prepend NOT_STORED, add NOT_STORED, get VALUE large 0 20000
#   As described: the item on the disk exists, and neither append nor add stores anything.
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


def on_disk() -> int:
    line = next(line for line in memcached.ask("stats") if line.startswith("STAT extstore_objects_written "))
    return int(line.split()[2])


def store(key: str, size: int) -> None:
    """Store an item, and others, until all but those that are too small for the disk are on the disk."""
    before = on_disk()
    memcached.ask(f"set {key} 0 0 {size}", "x" * size)
    for number in range(100):
        memcached.ask(f"set other-{key}-{number} 0 0 20000", "y" * 20_000)
    while on_disk() < before + 100 + (size > 512):
        time.sleep(0.1)


memcached = Client()
answers: dict[str, list[str]] = {}
for key, size in (("small", 100), ("large", 20_000)):
    store(key, size)
    answers[key] = [memcached.ask(f"{command} {key} 0 0 1", "z")[0] for command in ("append", "prepend", "add")]
    value = memcached.ask(f"get {key}")[0]
    print(f"{key}, {size:5} bytes: append {answers[key][0]}, prepend {answers[key][1]}, add {answers[key][2]}, get {value}")
if answers != {"small": ["STORED", "STORED", "NOT_STORED"], "large": ["NOT_STORED"] * 3}:
    sys.exit("CHANGED: append, prepend or add of an item on the disk has another answer.")
print("As described: the item on the disk exists, and neither append nor add stores anything.")
PYTHON
timeout 90 python3 check.py
