// A closed loop of requests over several connections: `load ADDRESS CONNECTIONS SECONDS`. Each connection sends its next
// request after the answer to the last one: 9 of 10 are gets, of 10,000 keys with values of 100 bytes. It prints the number
// of requests, of errors, and the median and the 99th percentile of the latency in µs.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"sort"
	"strconv"
	"sync"
	"time"
)

const keys = 10_000

var value = bytes.Repeat([]byte("v"), 100)

// ask sends a request and reads the whole answer; it returns false for an error of the server.
func ask(connection net.Conn, lines *bufio.Reader, number int) bool {
	key := number * 7919 % keys
	if number%10 == 0 {
		fmt.Fprintf(connection, "set key-%d 0 0 %d\r\n%s\r\n", key, len(value), value)
	} else {
		fmt.Fprintf(connection, "get key-%d\r\n", key)
	}
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			panic(err)
		}
		switch {
		case bytes.HasPrefix(line, []byte("VALUE")):
			if _, err := lines.Discard(len(value) + 2); err != nil {
				panic(err)
			}
		case bytes.Equal(line, []byte("END\r\n")), bytes.Equal(line, []byte("STORED\r\n")):
			return true
		default:
			return false
		}
	}
}

func connect(address string) (net.Conn, *bufio.Reader) {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		panic(err)
	}
	return connection, bufio.NewReader(connection)
}

func main() {
	count, _ := strconv.Atoi(os.Args[2])
	seconds, _ := strconv.Atoi(os.Args[3])
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	found, errors := make([][]time.Duration, count), make([]int, count)
	var all sync.WaitGroup
	for each := range count {
		all.Go(func() {
			connection, lines := connect(os.Args[1])
			defer connection.Close()
			for number := each * 1000; time.Now().Before(end); number++ {
				started := time.Now()
				if !ask(connection, lines, number) {
					errors[each]++
				}
				found[each] = append(found[each], time.Since(started))
			}
		})
	}
	all.Wait()
	var latencies []time.Duration
	failed := 0
	for each := range count {
		latencies, failed = append(latencies, found[each]...), failed+errors[each]
	}
	sort.Slice(latencies, func(a, b int) bool { return latencies[a] < latencies[b] })
	at := func(share float64) int64 { return latencies[int(share*float64(len(latencies)-1))].Microseconds() }
	fmt.Println(len(latencies), failed, at(0.5), at(0.99))
}
