// A client with xmemcached.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.IntStream;
import net.rubyeye.xmemcached.HashAlgorithm;
import net.rubyeye.xmemcached.MemcachedClient;
import net.rubyeye.xmemcached.XMemcachedClientBuilder;
import net.rubyeye.xmemcached.impl.KetamaMemcachedSessionLocator;
import net.rubyeye.xmemcached.utils.AddrUtil;

public final class Client {
  interface Call<T> {
    /** Returns how many keys succeeded. */
    int make(T request) throws Exception;
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

  static int hits(Map<String, String> found) {
    return (int) found.entrySet().stream().filter(each -> each.getKey().equals(each.getValue())).count();
  }

  /** Makes a call for each request; prints how many keys succeeded, how many calls failed, and the seconds of the slowest one. */
  static <T> void report(String name, List<T> requests, Call<T> call) {
    int succeeded = 0;
    int failed = 0;
    long slowest = 0;
    for (T request : requests) {
      long started = System.nanoTime();
      try {
        succeeded += call.make(request);
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
      var keys = IntStream.range(0, count).mapToObj(number -> "xmemcached-" + number).toList();
      switch (words[0]) {
        case "set" -> report("stored", keys, key -> client.set(key, 0, key) ? 1 : 0);
        case "get" -> report("hits", keys, key -> key.equals(client.get(key)) ? 1 : 0);
        default -> report("hits", List.of(keys), all -> hits(client.get(all)));
      }
    }
    client.shutdown();
  }
}
