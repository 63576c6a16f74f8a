// A client with gomemcache.
package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

// Slot is the address of a slot. It is resolved for each new connection.
type Slot string

func (s Slot) Network() string { return "tcp" }
func (s Slot) String() string  { return string(s) }

// Slots distributes keys by rendezvous hashing: a new slot takes 1/n of the keys of each other slot.
type Slots []Slot

func (s Slots) PickServer(key string) (net.Addr, error) {
	var found Slot
	var most uint64
	for _, slot := range s {
		sum := sha256.Sum256([]byte(string(slot) + " " + key))
		if score := binary.BigEndian.Uint64(sum[:8]); found == "" || score > most {
			found, most = slot, score
		}
	}
	if found == "" {
		return nil, memcache.ErrNoServers
	}
	return found, nil
}

func (s Slots) Each(call func(net.Addr) error) error {
	for _, slot := range s {
		if err := call(slot); err != nil {
			return err
		}
	}
	return nil
}

func connect(servers string) *memcache.Client {
	var slots Slots
	for _, server := range strings.Split(servers, ",") {
		slots = append(slots, Slot(server))
	}
	client := memcache.NewFromSelector(slots)
	client.Timeout = 250 * time.Millisecond // for connecting with DNS, and again for the request
	client.MaxIdleConns = 16                // as many as concurrent requests
	var failed sync.Map                     // when connecting to an address failed: no attempt for a second
	client.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if at, ok := failed.Load(address); ok && time.Since(at.(time.Time)) < time.Second {
			return nil, fmt.Errorf("%s failed less than a second ago", address)
		}
		connection, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			failed.Store(address, time.Now())
		}
		return connection, err
	}
	return client
}

// report sends the requests; it prints how many succeeded and failed, and the seconds of the slowest one.
func report(name string, count int, request func(key string) (bool, error)) {
	succeeded, failed, slowest := 0, 0, time.Duration(0)
	for number := range count {
		started := time.Now()
		ok, err := request(fmt.Sprintf("gomemcache-%d", number))
		if err != nil {
			failed++
		} else if ok {
			succeeded++
		}
		slowest = max(slowest, time.Since(started))
	}
	fmt.Printf("%s %d errors %d slowest %.3f\n", name, succeeded, failed, slowest.Seconds())
}

// reportMany gets all keys at once; it prints how many were found, whether the call failed, and its seconds.
func reportMany(client *memcache.Client, count int) {
	keys := make([]string, count)
	for number := range keys {
		keys[number] = fmt.Sprintf("gomemcache-%d", number)
	}
	started, found, failed := time.Now(), 0, 0
	items, err := client.GetMulti(keys)
	if err != nil {
		failed = 1
	}
	for key, item := range items {
		if string(item.Value) == key {
			found++
		}
	}
	fmt.Printf("hits %d errors %d slowest %.3f\n", found, failed, time.Since(started).Seconds())
}

func main() {
	client := connect(os.Getenv("MEMCACHED_SERVERS"))
	if os.Getenv("MEMCACHED_TLS") == "true" {
		secure(client)
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var command string
		var count int
		if _, err := fmt.Sscan(lines.Text(), &command, &count); err != nil {
			panic(err)
		}
		if command == "get-many" {
			reportMany(client, count)
			continue
		}
		if command == "set" {
			report("stored", count, func(key string) (bool, error) {
				err := client.Set(&memcache.Item{Key: key, Value: []byte(key)})
				return err == nil, err
			})
			continue
		}
		report("hits", count, func(key string) (bool, error) {
			item, err := client.Get(key)
			if err == memcache.ErrCacheMiss {
				return false, nil
			}
			return err == nil && string(item.Value) == key, err
		})
	}
}
