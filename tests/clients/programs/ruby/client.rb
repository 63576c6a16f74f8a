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

# Sends the requests; prints how many succeeded and failed, and the seconds of the slowest one.
def report(name, count)
  succeeded = failed = 0
  slowest = 0.0
  count.times do |number|
    started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    begin
      succeeded += 1 if yield "dalli-#{number}"
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
  if command == 'set'
    report('stored', count.to_i) { |key| client.set(key, key) }
  else
    report('hits', count.to_i) { |key| client.get(key) == key }
  end
end
