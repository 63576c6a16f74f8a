#!/usr/bin/env bash
# A counter that is incremented all the time is evicted as if it were not used.
#
# Versions:   memcached 1.6.45, from the sources in Debian. 1.6.18 does the same.
# Guess:      incr uses an item as get does, so a busy counter is among the last items that are evicted.
# Behaviour:  incr, decr and ma look the item up without marking it as used. An item that only they use falls to the
#             end of its LRU list and is evicted, while an item that is read as rarely stays. `mg KEY h` answers h0
#             (never hit) for such a counter.
# Matters:    Rate limiters and sequences count with incr. In a full cache, a busy counter is lost and starts again.
#             Read the counter now and then (get, or gat to extend its time), or keep counters in a cache of their
#             own.
#
# Output, seen on 2026-11-30:
#   memcached 1.6.45
#   incremented  used once per 5,000 sets: evicted after 27 rounds
#   arithmetic   used once per 5,000 sets: evicted after 27 rounds
#   read         used once per 5,000 sets: still there
#   As described: incr and ma do not protect an item from eviction, a get does.
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
"$memcached" -u "$(id -un)" -s "$folder/memcached.socket" -m 8 &
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
for key in ("incremented", "arithmetic", "read"):
    memcached.ask(f"set {key} 0 0 1", "1")
lost: dict[str, int] = {}
for round_ in range(1, 41):
    memcached.ask(*(word for n in range(5000) for word in (f"set other{round_}-{n} 0 0 1", "x")))
    used = {
        "incremented": memcached.ask("incr incremented 1"),
        "arithmetic": memcached.ask("ma arithmetic"),
        "read": memcached.ask("mg read v"),
    }
    for key, answer in used.items():
        if answer[0] in ("NOT_FOUND", "NF", "EN"):
            lost.setdefault(key, round_)
for key in ("incremented", "arithmetic", "read"):
    print(f"{key:12} used once per 5,000 sets:", f"evicted after {lost[key]} rounds" if key in lost else "still there")
same = set(lost) == {"incremented", "arithmetic"}

if not same:
    sys.exit("CHANGED: incr and ma, or a get, now have another effect on evictions.")
print("As described: incr and ma do not protect an item from eviction, a get does.")
PYTHON
timeout 90 python3 check.py
