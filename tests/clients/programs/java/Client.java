// A client with xmemcached.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Locale;
import net.rubyeye.xmemcached.HashAlgorithm;
import net.rubyeye.xmemcached.MemcachedClient;
import net.rubyeye.xmemcached.XMemcachedClientBuilder;
import net.rubyeye.xmemcached.impl.KetamaMemcachedSessionLocator;
import net.rubyeye.xmemcached.utils.AddrUtil;

public final class Client {
  interface Request {
    boolean send(String key) throws Exception;
  }

  static MemcachedClient connect() throws Exception {
    // The fixed addresses of `service.perPod`: while a name does not resolve, reconnection attempts of xmemcached 2.4.8 pile up.
    var servers = System.getenv("MEMCACHED_FIXED_SERVERS").replace(',', ' ');
    var builder = new XMemcachedClientBuilder(AddrUtil.getAddresses(servers));
    // `true`: the ring uses the names, not the addresses.
    builder.setSessionLocator(new KetamaMemcachedSessionLocator(HashAlgorithm.KETAMA_HASH, false, true));
    builder.setFailureMode(true); // a failed slot keeps its keys; its requests fail at once
    builder.setConnectTimeout(500); // ms
    builder.setOpTimeout(500); // ms
    builder.setHealSessionInterval(1000); // ms between attempts to reconnect
    var client = builder.build();
    return client;
  }

  /** Sends the requests; prints how many succeeded and failed, and the seconds of the slowest one. */
  static void report(String name, int count, Request request) {
    int succeeded = 0;
    int failed = 0;
    long slowest = 0;
    for (int number = 0; number < count; number++) {
      long started = System.nanoTime();
      try {
        succeeded += request.send("xmemcached-" + number) ? 1 : 0;
      } catch (Exception error) {
        failed++;
      }
      slowest = Math.max(slowest, System.nanoTime() - started);
    }
    System.out.printf(Locale.ROOT, "%s %d errors %d slowest %.3f%n", name, succeeded, failed, slowest / 1e9);
  }

  public static void main(String[] arguments) throws Exception {
    var client = connect();
    var lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] words = line.split(" ");
      int count = Integer.parseInt(words[1]);
      if (words[0].equals("set")) {
        report("stored", count, key -> client.set(key, 0, key));
      } else {
        report("hits", count, key -> key.equals(client.get(key)));
      }
    }
    client.shutdown();
  }
}
