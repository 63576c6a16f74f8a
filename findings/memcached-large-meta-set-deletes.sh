#!/usr/bin/env bash
# A meta set that is too large deletes the item, in the modes add and append and with a wrong CAS value, too.
#
# Versions:   memcached 1.6.45, from the sources in Debian. 1.6.18 does the same.
# Guess:      A value above the item size limit is refused, and the item stays. Or, as with set, it is deleted, so that
#             no old value stays. But add, append and compare-and-set never touch an item that they do not replace.
# Behaviour:  With the classic commands it is so: only set deletes. ms deletes in each mode: add (ME), append (MA), replace
#             (MR), and with a CAS value that does not match (C1).
# Matters:    Clients that moved from add, append or cas to the meta commands lose a good item to a request that would
#             have left it, or only extended it. A list is lost by one entry that is too large.
#
# Output, seen on 2026-11-30:
#   memcached 1.6.45
#   set key 0 0 SIZE       -> SERVER_ERROR object too large for cache; get key -> END
#   add key 0 0 SIZE       -> SERVER_ERROR object too large for cache; get key -> VALUE key 0 3 | old | END
#   append key 0 0 SIZE    -> SERVER_ERROR object too large for cache; get key -> VALUE key 0 3 | old | END
#   replace key 0 0 SIZE   -> SERVER_ERROR object too large for cache; get key -> VALUE key 0 3 | old | END
#   cas key 0 0 SIZE 1     -> SERVER_ERROR object too large for cache; get key -> VALUE key 0 3 | old | END
#   ms key SIZE ME         -> SERVER_ERROR object too large for cache; get key -> END
#   ms key SIZE MA         -> SERVER_ERROR object too large for cache; get key -> END
#   ms key SIZE MR         -> SERVER_ERROR object too large for cache; get key -> END
#   ms key SIZE C1         -> SERVER_ERROR object too large for cache; get key -> END
#   As described: of the classic commands only set deletes the item, of the meta commands each.
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


def stays(command: str) -> bool:
    """Whether an item stays after this command with a value of 1.1 MB."""
    memcached.ask("set key 0 0 3", "old")
    size = 1_100_000
    answer = memcached.ask(command.replace("SIZE", str(size)), "x" * size)[0]
    value = memcached.ask("get key")
    print(f"{command:22} -> {answer}; get key -> {' | '.join(value)}")
    return value != ["END"]


CLASSIC = ("add key 0 0 SIZE", "append key 0 0 SIZE", "replace key 0 0 SIZE", "cas key 0 0 SIZE 1")
META = ("ms key SIZE ME", "ms key SIZE MA", "ms key SIZE MR", "ms key SIZE C1")
found = [[stays(command) for command in commands] for commands in (("set key 0 0 SIZE",), CLASSIC, META)]
if found != [[False], [True] * 4, [False] * 4]:
    sys.exit("CHANGED: other commands delete the item.")
print("As described: of the classic commands only set deletes the item, of the meta commands each.")
PYTHON
timeout 110 python3 check.py
