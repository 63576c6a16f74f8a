#!/usr/bin/env bash
# A flush_all cancels the delayed flush_all that is pending, and a delayed one even undoes the one just before it.
#
# Versions:   memcached 1.6.45, from the sources in Debian.
# Guess:      Each flush_all is a removal of its own: `flush_all 600` still removes in 10 minutes what is there then, no
#             matter which other flush_all comes before.
# Behaviour:  memcached keeps one time, and items that are older than it are invalid from that time on. Each flush_all
#             overwrites it: `flush_all 3600` postpones a pending `flush_all 600`, and `flush_all` without a delay cancels
#             it. A delay also makes items valid again that the last flush_all removed, if memcached has not reclaimed
#             them yet, usually within a second.
# Matters:    Delays exist to flush the servers of a pool one after the other. Somebody else's flush in the meantime,
#             harmless as it looks, cancels that of a server, so values of the old release stay for their whole TTL. All
#             replies are OK, and no statistic shows the pending flush. Flush without a delay when it is due.
#
# Output, seen on 2026-12-01:
#   memcached 1.6.45
#   flush_all 3                                      6 s later, get page -> END
#   flush_all 3 | flush_all 3600                     6 s later, get page -> VALUE
#   flush_all 3 | flush_all | set page 0 0 3 | new   6 s later, get page -> VALUE
#   flush_all                                        6 s later, get page -> END
#   flush_all | flush_all 3600                       6 s later, get page -> VALUE
#   As described: only the last flush_all counts.
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


def after(*commands: str) -> bool:
    """Store an item, wait, send these commands at once, wait, and return whether a get finds the item."""
    memcached.ask("flush_all")
    memcached.ask("set page 0 0 3", "old")
    time.sleep(3)
    answer = memcached.ask(*commands)
    if set(answer) - {"OK", "STORED"}:
        sys.exit(f"CHANGED: the answer is {answer}.")
    time.sleep(6)
    found = memcached.ask("get page") != ["END"]
    print(f"{' | '.join(commands):48} 6 s later, get page -> {'VALUE' if found else 'END'}")
    return found


results = [
    after("flush_all 3"),
    after("flush_all 3", "flush_all 3600"),
    after("flush_all 3", "flush_all", "set page 0 0 3", "new"),
    after("flush_all"),
    after("flush_all", "flush_all 3600"),
]
if results != [False, True, True, False, True]:
    sys.exit("CHANGED: a second flush_all has another effect on the first.")
print("As described: only the last flush_all counts.")
PYTHON
timeout 110 python3 check.py
