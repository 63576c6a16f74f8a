#!/usr/bin/env bash
# A CAS token from before a restart of memcached matches another value after it.
#
# Versions:   memcached 1.6.45, from the sources in Debian. 1.6.18 does the same.
# Guess:      A token is unique: after a restart, a cas with an old token answers EXISTS or NOT_FOUND.
# Behaviour:  Tokens are a counter of the process that starts at the same number each time. The same key, written at
#             the same position after a restart, has the same token, and the cas of a client that read another value
#             before the restart is STORED.
# Matters:    Pods are replaced at each rollout and eviction, and a client can hold a token across that (a retry, a
#             slow computation). Its cas overwrites the newer value, which it has never seen. After a lost connection,
#             read again before a cas, or let the clients choose tokens (meta flag E).
#
# Output, seen on 2026-11-30:
#   memcached 1.6.45
#   client A: gets stock                     -> VALUE stock 0 2 2 | 10 | END
#   memcached is replaced by an empty one
#   client B: set stock 9                    -> STORED
#   client B: gets stock                     -> VALUE stock 0 1 2 | 9 | END
#   client A: cas stock 8, token 2           -> STORED
#   As described: tokens start again after a restart, so an old one matches a new value.
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
import getpass
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


def show(text: str, answer: list[str]) -> list[str]:
    print(f"{text:40} -> {' | '.join(answer)}")
    return answer


def start() -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.argv[1], "-u", getpass.getuser(), "-s", "memcached.socket"])


process = start()
memcached = Client()
memcached.ask("set stock 0 0 2", "10")
first = show("client A: gets stock", memcached.ask("gets stock"))
token = first[0].split()[-1]
print("memcached is replaced by an empty one")
process.terminate()
process.wait()
process = start()
memcached = Client()
show("client B: set stock 9", memcached.ask("set stock 0 0 1", "9"))
second = show("client B: gets stock", memcached.ask("gets stock"))
answer = show(f"client A: cas stock 8, token {token}", memcached.ask(f"cas stock 0 0 1 {token}", "8"))
process.terminate()
same = (second[0].split()[-1], answer) == (token, ["STORED"])

if not same:
    sys.exit("CHANGED: an old token no longer matches.")
print("As described: tokens start again after a restart, so an old one matches a new value.")
PYTHON
timeout 90 python3 check.py "$memcached"
