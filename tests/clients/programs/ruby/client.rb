# frozen_string_literal: true

# A client with dalli.

require 'dalli'

Dalli.logger.level = Logger::ERROR # dalli logs each failed connection

client = Dalli::Client.new(
  ENV.fetch('MEMCACHED_SERVERS').split(','),
  failover: false, # a failed slot keeps its keys
  socket_timeout: 0.5, # seconds, for connecting with DNS, and again for the response
  socket_max_failures: 1, # one attempt
  socket_failure_delay: nil,
  down_retry_delay: 1 # seconds without requests to a failed slot: they raise Dalli::RingError
)

# Makes a call for each of `requests`; prints how many keys succeeded, how many calls failed, and the seconds of the
# slowest one.
def report(name, requests)
  succeeded = failed = 0
  slowest = 0.0
  requests.each do |request|
    started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    begin
      succeeded += yield request
    rescue Dalli::DalliError
      failed += 1
    end
    slowest = [slowest, Process.clock_gettime(Process::CLOCK_MONOTONIC) - started].max
  end
  puts format('%s %d errors %d slowest %.3f', name, succeeded, failed, slowest)
end

$stdout.sync = true
$stdin.each_line do |line|
  command, count = line.split
  keys = Array.new(count.to_i) { |number| "dalli-#{number}" }
  case command
  when 'set' then report('stored', keys) { |key| client.set(key, key) ? 1 : 0 }
  when 'get' then report('hits', keys) { |key| client.get(key) == key ? 1 : 0 }
  else report('hits', [keys]) { |all| client.get_multi(*all).count { |key, value| key == value } }
  end
end
