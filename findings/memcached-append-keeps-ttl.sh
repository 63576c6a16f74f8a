#!/usr/bin/env bash
# A meta set that appends accepts a TTL and ignores it.
#
# Versions:   memcached 1.6.45, from the sources in Debian. 1.6.18 does the same.
# Guess:      `ms KEY SIZE MA T5000` appends and sets the TTL to 5000 s, as T does in every other meta command.
# Behaviour:  The answer is HD, the data is appended, and the TTL stays what it was.
# Matters:    A list or log that each append should keep alive (recent orders, events of a session) expires at the
#             time of its first write. A `mg KEY T5000` or touch must follow. The flags that an append sends are
#             ignored in the same way.
#
# Output, seen on 2026-11-30:
#   memcached 1.6.45
#   ms log 1 MA T5000 (append)               -> HD
#   mg log t                                 -> HD t100
#   ms log 1 MP T5000 (prepend)              -> HD
#   mg log t                                 -> HD t100
#   ma log T5000                             -> HD
#   mg log t                                 -> HD t5000
#   As described: T has no effect with MA and MP, while ma, mg and the other modes of ms set it.
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
ttls: list[str] = []
for mode, name in (("A", "append"), ("P", "prepend")):
    memcached.ask("ms log 1 T100", "x")
    show(f"ms log 1 M{mode} T5000 ({name})", memcached.ask(f"ms log 1 M{mode} T5000", "y"))
    ttls += show("mg log t", memcached.ask("mg log t"))
memcached.ask("ms log 1 T100", "1")
show("ma log T5000", memcached.ask("ma log T5000"))
ttls += show("mg log t", memcached.ask("mg log t"))
same = all(ttl in ("HD t100", "HD t99", "HD t98") for ttl in ttls[:2]) and ttls[2] in ("HD t5000", "HD t4999")

if not same:
    sys.exit("CHANGED: T has another effect with MA and MP.")
print("As described: T has no effect with MA and MP, while ma, mg and the other modes of ms set it.")
PYTHON
timeout 90 python3 check.py
