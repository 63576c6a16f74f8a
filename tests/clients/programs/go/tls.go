package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

// secure lets a client use TLS and log in. It reads the files again for each connection, so it picks up renewed ones.
func secure(client *memcache.Client) {
	connect := client.DialContext
	client.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		config, err := tlsConfig(address)
		if err != nil {
			return nil, err
		}
		connection, err := connect(ctx, network, address)
		if err != nil {
			return nil, err
		}
		secured := tls.Client(connection, config)
		if err := login(ctx, secured); err != nil {
			connection.Close()
			return nil, err
		}
		return secured, nil
	}
}

func tlsConfig(address string) (*tls.Config, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(os.Getenv("MEMCACHED_CERTIFICATE"), os.Getenv("MEMCACHED_KEY"))
	if err != nil {
		return nil, err
	}
	authorities := x509.NewCertPool()
	if file, err := os.ReadFile(os.Getenv("MEMCACHED_CA")); err != nil || !authorities.AppendCertsFromPEM(file) {
		return nil, fmt.Errorf("MEMCACHED_CA: no certificates: %v", err)
	}
	return &tls.Config{ServerName: host, RootCAs: authorities, Certificates: []tls.Certificate{pair}}, nil
}

func login(ctx context.Context, connection net.Conn) error {
	deadline, _ := ctx.Deadline() // also of the handshake, which begins with the first bytes
	connection.SetDeadline(deadline)
	words := os.Getenv("MEMCACHED_USER") + " " + os.Getenv("MEMCACHED_PASSWORD")
	if _, err := fmt.Fprintf(connection, "set auth 0 0 %d\r\n%s\r\n", len(words), words); err != nil {
		return err
	}
	reply := make([]byte, len("STORED\r\n"))
	if _, err := io.ReadFull(connection, reply); err != nil {
		return err
	}
	if string(reply) != "STORED\r\n" {
		return errors.New("memcached denied the login")
	}
	return connection.SetDeadline(time.Time{})
}
