#!/usr/bin/env bash
# append makes an item that was marked as stale fresh again, and so does incr, from 9 to 10.
#
# Versions:   memcached 1.6.45, from the sources in Debian. 1.6.18 does the same.
# Guess:      After `md KEY I`, the item is stale (flag X) until a client stores a new value. Commands that change a part
#             of the old value, such as append and incr, leave it stale.
# Behaviour:  touch leaves it stale. append, prepend, and ms with the modes A and P remove the mark: no client is asked to
#             compute the value any more, and all clients get the old one with something appended. incr and ma leave the
#             mark, unless the number gets longer: 1 + 1 stays stale, 9 + 1 is fresh.
# Matters:    Lists and counters are what clients change in place. What was invalidated comes back and stays until the
#             TTL, for counters once in a while, so no test sees it.
#
# Output, seen on 2026-11-30:
#   memcached 1.6.45
#   1, stale, then touch key 200     -> TOUCHED  mg key v -> VA 1 X W | 1
#   1, stale, then incr key 1        -> 2        mg key v -> VA 1 X W | 2
#   1, stale, then ma key            -> HD       mg key v -> VA 1 X W | 2
#   1, stale, then append key 0 0 1  -> STORED   mg key v -> VA 2 | 12
#   1, stale, then prepend key 0 0 1 -> STORED   mg key v -> VA 2 | 21
#   1, stale, then ms key 1 MA       -> HD       mg key v -> VA 2 | 12
#   9, stale, then incr key 1        -> 10       mg key v -> VA 2 | 10
#   9, stale, then ma key            -> HD       mg key v -> VA 2 | 10
#   As described: append removes the mark of a stale item, and incr does if the number gets longer.
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


def flags(old: str, command: str, *data: str) -> list[str]:
    """The flags of an item that was marked as stale before this command."""
    memcached.ask("set key 0 100 1", old)
    memcached.ask("md key I")
    answer = memcached.ask(command, *data)[0]
    values = memcached.ask("mg key v")
    print(f"{old}, stale, then {command:17} -> {answer:7}  mg key v -> {' | '.join(values)}")
    return values[0].split()[2:]


kept = [flags("1", "touch key 200"), flags("1", "incr key 1"), flags("1", "ma key")]
cleared = [flags("1", "append key 0 0 1", "2"), flags("1", "prepend key 0 0 1", "2"), flags("1", "ms key 1 MA", "2")]
cleared += [flags("9", "incr key 1"), flags("9", "ma key")]
if any("X" not in each for each in kept) or any(cleared):
    sys.exit("CHANGED: other commands remove the mark.")
print("As described: append removes the mark of a stale item, and incr does if the number gets longer.")
PYTHON
timeout 110 python3 check.py
