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

// Makes one call; prints how many keys succeeded, whether the call failed, and its seconds. null: the call failed.
function reportCall(string $name, callable $call): void
{
    $started = hrtime(true);
    $succeeded = $call();
    $failed = $succeeded === null ? 1 : 0;
    printf("%s %d errors %d slowest %.3f\n", $name, $succeeded ?? 0, $failed, (hrtime(true) - $started) / 1e9);
    flush();
}

while (($line = fgets(STDIN)) !== false) {
    [$command, $count] = explode(' ', trim($line));
    $keys = array_map(fn (int $number): string => "php-memcached-$number", range(0, (int) $count - 1));
    match ($command) {
        'set' => report('stored', (int) $count, $client, fn (string $key): bool => $client->set($key, $key)),
        'get' => report('hits', (int) $count, $client, fn (string $key): bool => $client->get($key) === $key),
        'set-many' => reportCall('stored', fn (): ?int => $client->setMulti(array_combine($keys, $keys)) ? (int) $count : null),
        'get-many' => reportCall('hits', function () use ($client, $keys): ?int {
            $found = $client->getMulti($keys);
            return $found === false ? null : count(array_intersect_assoc($found, array_combine($keys, $keys)));
        }),
        // deleteMulti returns true or an error code for each key.
        default => reportCall('deleted', fn (): int => count(array_keys($client->deleteMulti($keys), true, true))),
    };
}
