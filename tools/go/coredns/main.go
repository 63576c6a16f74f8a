// CoreDNS with only the plugins a test cluster needs: building all of them takes three times as long.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/ready"
)

// The order is the one in which a query passes the plugins; CoreDNS generates it, here it is written down.
func init() {
	dnsserver.Directives = []string{"bind", "health", "ready", "errors", "loadbalance", "cache", "kubernetes"}
}

func main() {
	coremain.Run()
}
