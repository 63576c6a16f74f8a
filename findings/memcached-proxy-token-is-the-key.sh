#!/usr/bin/env bash
# In a route of memcached's proxy, `r:token(n)` returns the key of the request for each n, and not its nth word.
#
# Versions:   memcached 1.6.45 with its proxy, from the sources in Debian.
# Guess:      `r:token(n)` returns the nth word of the request, as its name and its counterpart `r:ntokens()` say:
#             of `set KEY 0 60 2`, token(4) is the TTL.
# Behaviour:  It returns the key for each n up to ntokens(), also for 1, the command, and nil for others. The counterpart
#             `r:token(n, text)` does replace the nth word. For meta commands, `r:flag_token` returns the right text.
# Matters:    A route that selects by TTL, size or command compares the key with them, and takes the wrong branch without
#             an error. The words of a request are in `r:raw_line()`, and its command is `r:command()`.
#
# Output, seen on 2026-12-01:
#   memcached 1.6.45
#   add KEY 0 60 2     r:token(1), (2), … -> KEY KEY KEY KEY KEY
#   get KEY            r:token(1), (2), … -> KEY KEY
#   mg KEY v t         r:token(1), (2), … -> KEY KEY KEY KEY
#   set KEY 0 60 2     after r:token(4, "5") -> set KEY 0 5 2
#   As described: the proxy returns the key for each word.
set -euo pipefail
folder=$(mktemp -d)
trap 'jobs -p | xargs -r kill 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
# memcached 1.6.45 with its proxy, built in the folder, or the program that the variable MEMCACHED names
memcached=${MEMCACHED:-}
if [ -z "$memcached" ]; then
  mirror=$(apt-get indextargets --format "\$(SITE)" 'Created-By: Packages' | awk '!/security/ && !found++')
  timeout 60 curl -fsSo memcached.tar.xz "${mirror%/}/pool/main/m/memcached/memcached_1.6.45.orig.tar.xz"
  sha256sum --quiet -c <<<'c383a2ad8f973b627c3de472702f46ee33b402750de4fd2d25cef65a00140110  memcached.tar.xz'
  timeout 120 apt-get -qq download libevent-dev 2>download.log || { cat download.log; exit 1; }
  dpkg-deb -x libevent-dev_*.deb . && rm usr/lib/*/*.so # the static library remains
  mkdir source && tar -C source --strip-components=1 -xf memcached.tar.xz
  machine=$(gcc -dumpmachine)
  (cd source && timeout 240 ./configure --quiet --disable-docs --enable-proxy --disable-dependency-tracking CFLAGS=-O0 \
    --with-libevent="$folder/usr" CPPFLAGS="-I$folder/usr/include -I$folder/usr/include/$machine" \
    LDFLAGS="-L$folder/usr/lib/$machine" && timeout 240 make -s -C vendor && timeout 240 make -s -j2 memcached) >build.log 2>&1 || { tail build.log; exit 1; }
  memcached=$folder/source/memcached
fi
"$memcached" -V
cat >routes.lua <<'LUA'
function mcp_config_pools()
  return mcp.pool({ mcp.backend("unused", "127.0.0.1", "1") })
end

local function route(pool, answer)
  local generator = mcp.funcgen_new()
  generator:new_handle(pool)
  generator:ready({ n = "answer", f = function() return answer end })
  return generator
end

function mcp_config_routes(pool)
  local words = route(pool, function(r)
    local found = {}
    for n = 1, r:ntokens() do found[n] = tostring(r:token(n)) end
    return "SERVER_ERROR " .. table.concat(found, " ") .. "\r\n"
  end)
  for _, command in ipairs({ mcp.CMD_ADD, mcp.CMD_GET, mcp.CMD_MG }) do mcp.attach(command, words) end
  mcp.attach(mcp.CMD_SET, route(pool, function(r)
    r:token(4, "5")
    return "SERVER_ERROR " .. r:raw_line() .. "\r\n"
  end))
end
LUA
"$memcached" -u "$(id -un)" -s "$folder/memcached.socket" -o proxy_config="$folder/routes.lua" &
cat >check.py <<'PYTHON'
import socket
import sys
import time

for _ in range(100):
    proxy = socket.socket(socket.AF_UNIX)
    try:
        proxy.connect("memcached.socket")
        break
    except OSError:
        time.sleep(0.1)
stream = proxy.makefile("rwb")


def answer(line: str, value: str = "") -> str:
    """The words that the route has seen."""
    stream.write(f"{line}\r\n{value}".encode())
    stream.flush()
    return stream.readline().decode().strip().removeprefix("SERVER_ERROR ")


found = {
    "add KEY 0 60 2": answer("add KEY 0 60 2", "hi\r\n"),
    "get KEY": answer("get KEY"),
    "mg KEY v t": answer("mg KEY v t"),
}
for line, words in found.items():
    print(f"{line:<18} r:token(1), (2), … -> {words}")
changed = answer("set KEY 0 60 2", "hi\r\n")
print(f'{"set KEY 0 60 2":<18} after r:token(4, "5") -> {changed}')
if any(words.split() != ["KEY"] * len(line.split()) for line, words in found.items()) or changed != "set KEY 0 5 2":
    sys.exit("CHANGED: the proxy returns another word")
print("As described: the proxy returns the key for each word.")
PYTHON
timeout 60 python3 check.py
