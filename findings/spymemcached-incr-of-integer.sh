#!/usr/bin/env bash
# With spymemcached, incr of the stored number 53 returns 6, and a get then returns 54.
#
# Versions:   spymemcached 2.12.3 (of Debian bookworm), memcached 1.6.45.
# Guess:      set("n", 0, 53) stores a number, and incr("n", 1) returns 54. Those who know that numbers are stored as
#             objects expect that incr of any of them fails.
# Behaviour:  An Integer or Long is stored as its bytes without leading zeros, and memcached increments decimal text. 42
#             is the byte `*`, and incr returns -1. But 48 to 57, and 12336 and more, can be bytes that are digits: 53
#             is the byte `5`, so incr returns 6 and stores the byte `6`, which get decodes as 54. 57 becomes the text
#             `10`, which get decodes as 12592.
# Matters:    A counter that is created with set of an Integer fails nearly always, so clients handle -1 by setting
#             it again. It counts wrongly only near such numbers, which tests rarely have. Create counters with a String,
#             or with incr(key, by, default).
#
# Output, seen on 2026-12-01:
#   memcached 1.6.45
#   Package: libspymemcached-java
#   Version: 2.12.3+dfsg-3
#   set Integer 42     incr 1 -> -1  get -> 42
#   set Integer 53     incr 1 -> 6   get -> 54
#   set Integer 57     incr 1 -> 10  get -> 12592
#   set Integer 12345  incr 1 -> 10  get -> 12592
#   set Long    53     incr 1 -> 6   get -> 54
#   set String  53     incr 1 -> 54  get -> 54
#   As described: incr of an Integer works on its bytes, when these are digits.
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
timeout 120 apt-get -qq download libspymemcached-java=2.12.3+dfsg-3 2>download.log || { cat download.log; exit 1; }
dpkg-deb -x libspymemcached-java_*.deb .
dpkg-deb -f libspymemcached-java_*.deb Package Version
port=$(python3 -c 'import socket; print(socket.create_server(("127.0.0.1", 0)).getsockname()[1])')
"$memcached" -u "$(id -un)" -l 127.0.0.1 -p "$port" &
cat >Check.java <<'JAVA'
import java.net.InetSocketAddress;
import java.util.logging.Level;
import java.util.logging.Logger;
import net.spy.memcached.MemcachedClient;

public class Check {
  record Case(Object value, long incremented, Object read) {}

  public static void main(String[] arguments) throws Exception {
    System.setProperty("net.spy.log.LoggerImpl", "net.spy.memcached.compat.log.SunLogger");
    Logger.getLogger("").setLevel(Level.OFF);
    var client = new MemcachedClient(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])));
    var cases =
        new Case[] {
          new Case(42, -1, 42), new Case(53, 6, 54), new Case(57, 10, 12592), new Case(12345, 10, 12592),
          new Case(53L, 6, 54L), new Case("53", 54, "54"),
        };
    var changed = false;
    for (var each : cases) {
      client.set("n", 0, each.value()).get();
      var incremented = client.incr("n", 1);
      var read = client.get("n");
      var type = each.value().getClass().getSimpleName();
      System.out.printf("set %-7s %-5s  incr 1 -> %-2d  get -> %s%n", type, each.value(), incremented, read);
      changed |= incremented != each.incremented() || !read.equals(each.read());
    }
    client.shutdown();
    System.out.println(
        changed
            ? "CHANGED: numbers are stored in another way."
            : "As described: incr of an Integer works on its bytes, when these are digits.");
    System.exit(changed ? 1 : 0);
  }
}
JAVA
for _ in $(seq 100); do if (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then break; fi; sleep 0.1; done
timeout 60 java -cp usr/share/java/spymemcached.jar Check.java "$port"
