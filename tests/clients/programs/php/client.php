<?php
// A client with php-memcached.
declare(strict_types=1);

$client = new Memcached();
$client->setOptions([
    Memcached::OPT_LIBKETAMA_COMPATIBLE => true,
    Memcached::OPT_TCP_NODELAY => true,
    Memcached::OPT_CONNECT_TIMEOUT => 500, // ms
    Memcached::OPT_POLL_TIMEOUT => 500, // ms
    Memcached::OPT_SEND_TIMEOUT => 500_000, // µs
    Memcached::OPT_RECV_TIMEOUT => 500_000, // µs
    Memcached::OPT_RETRY_TIMEOUT => 1, // seconds without requests to a slot that refused a connection: they are misses
]);
foreach (explode(',', getenv('MEMCACHED_SERVERS')) as $server) {
    [$host, $port] = explode(':', $server);
    $client->addServer($host, (int) $port);
}

// Sends the requests; prints how many succeeded and failed, and the seconds of the slowest one.
function report(string $name, int $count, Memcached $client, callable $request): void
{
    [$succeeded, $failed, $slowest] = [0, 0, 0.0];
    for ($number = 0; $number < $count; $number++) {
        $started = hrtime(true);
        $done = $request("php-memcached-$number");
        $slowest = max($slowest, (hrtime(true) - $started) / 1e9);
        $succeeded += $done ? 1 : 0;
        $miss = [Memcached::RES_SUCCESS, Memcached::RES_NOTFOUND];
        $failed += $done || in_array($client->getResultCode(), $miss, true) ? 0 : 1;
    }
    printf("%s %d errors %d slowest %.3f\n", $name, $succeeded, $failed, $slowest);
    flush();
}

while (($line = fgets(STDIN)) !== false) {
    [$command, $count] = explode(' ', trim($line));
    if ($command === 'set') {
        report('stored', (int) $count, $client, fn (string $key): bool => $client->set($key, $key));
    } else {
        report('hits', (int) $count, $client, fn (string $key): bool => $client->get($key) === $key);
    }
}
