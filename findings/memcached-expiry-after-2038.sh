#!/usr/bin/env bash
# An absolute expiry time after January 2038 is answered with STORED, and the item does not exist.
#
# Versions:   memcached 1.6.45, from the sources in Debian. `set` of 1.6.18 does the same.
# Guess:      Expiry times are 32 bits without a sign or 64 bits inside memcached, so 2040 works like any other year.
# Behaviour:  The last absolute time is 2038-01-19 03:14:07 UTC. One second later, `set` answers STORED and the item
#             is expired at once, while touch, gat and the meta commands answer CLIENT_ERROR.
# Matters:    Clients must send times to live of more than 30 days as absolute times. A TTL of 12 years, chosen as
#             `practically never`, is such a time today; later, 30 days are. A write that says STORED then never hits.
#             Use 0 for `never`.
#
# Output, seen on 2026-11-30:
#   memcached 1.6.45
#   set text 0 2147483647 1                  -> STORED
#   mg text v                                -> VA 1 | x
#   touch old 2147483647                     -> TOUCHED
#   mg old T2147483647                       -> HD
#   set text 0 2147483648 1                  -> STORED
#   mg text v                                -> EN
#   touch old 2147483648                     -> CLIENT_ERROR invalid exptime argument
#   mg old T2147483648                       -> CLIENT_ERROR bad token in command line format
#   As described: from 2^31 on, set stores nothing and says STORED; touch and meta commands reject the time.
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
LAST = 2**31 - 1  # 2038-01-19 03:14:07 UTC
answers: list[list[str]] = []
for expiry in (LAST, LAST + 1):
    answers.append(show(f"set text 0 {expiry} 1", memcached.ask(f"set text 0 {expiry} 1", "x")))
    answers.append(show("mg text v", memcached.ask("mg text v")))
    memcached.ask("set old 0 0 1", "x")
    answers.append(show(f"touch old {expiry}", memcached.ask(f"touch old {expiry}")))
    answers.append(show(f"mg old T{expiry}", memcached.ask(f"mg old T{expiry}")))
same = answers == [
    ["STORED"], ["VA 1", "x"], ["TOUCHED"], ["HD"],
    ["STORED"], ["EN"], ["CLIENT_ERROR invalid exptime argument"], ["CLIENT_ERROR bad token in command line format"],
]

if not same:
    sys.exit("CHANGED: times from 2^31 on are handled in another way.")
print("As described: from 2^31 on, set stores nothing and says STORED; touch and meta commands reject the time.")
PYTHON
timeout 90 python3 check.py
