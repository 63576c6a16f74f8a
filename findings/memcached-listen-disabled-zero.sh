#!/usr/bin/env bash
# A memcached that rejects clients reports listen_disabled_num 0.
#
# Versions:   memcached 1.6.45, from the sources in Debian. 1.6.18 does the same.
# Guess:      listen_disabled_num is the counter to alert on: it grows whenever the connection limit is reached.
# Behaviour:  Since maxconns_fast became the default, memcached accepts a connection above the limit, answers `ERROR
#             Too many open connections` and closes it. It never stops listening, so listen_disabled_num and
#             time_in_listen_disabled_us stay 0. They grow only with `-o no_maxconns_fast`, where clients wait
#             instead.
# Matters:    Old dashboards and rules alert on listen_disabled_num (memcached_connections_listener_disabled_total in
#             exporters) and stay green while two thirds of the clients are rejected. Alert on rejected_connections.
#
# Output, seen on 2026-11-30:
#   memcached 1.6.45
#   61 clients, 43 of them rejected
#   max_connections 32
#   rejected_connections 43
#   listen_disabled_num 0
#   time_in_listen_disabled_us 0
#   As described: with its defaults, only rejected_connections counts rejected clients.
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
"$memcached" -u "$(id -un)" -s "$folder/memcached.socket" -c 32 -t 1 &
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
            if line.startswith("ERROR") or not line:
                raise EOFError(line)
            answer.append(line)
        return answer


def show(text: str, answer: list[str]) -> list[str]:
    print(f"{text:40} -> {' | '.join(answer)}")
    return answer


memcached = Client()
clients = [Client() for _ in range(60)]
rejected = 0
for client in clients:
    try:
        client.ask()
    except (OSError, EOFError):
        rejected += 1
print(f"{len(clients) + 1} clients, {rejected} of them rejected")
memcached = clients[0]
counters = dict(line.split()[1:] for line in memcached.ask("stats") if line.startswith("STAT"))
for name in ("max_connections", "rejected_connections", "listen_disabled_num", "time_in_listen_disabled_us"):
    print(f"{name} {counters[name]}")
same = rejected > 20 and int(counters["rejected_connections"]) == rejected and counters["listen_disabled_num"] == "0"

if not same:
    sys.exit("CHANGED: listen_disabled_num or rejected_connections counts something else.")
print("As described: with its defaults, only rejected_connections counts rejected clients.")
PYTHON
timeout 90 python3 check.py
