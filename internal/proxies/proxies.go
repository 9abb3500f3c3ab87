// Package proxies keeps what is on this machine off the proxies that the environment names.
//
// Go asks no proxy for localhost and the loopback addresses, git and curl do; none of them knows
// the machine's other names and addresses. A proxy elsewhere cannot reach them, or reaches another
// machine by them.
package proxies

import (
	"cmp"
	"context"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// patience is how long the address of a server is looked up to learn whether it is this machine.
const patience = 2 * time.Second

// SpareThisMachine has this process, and those that get its environment, reach this machine without
// a proxy: it adds its names and addresses to NO_PROXY and no_proxy, which curl, git and Go read. It
// does nothing if the environment names no proxy. It has to be called before the first call over
// HTTP, since net/http reads the environment once.
func SpareThisMachine() {
	if !named() {
		return
	}
	hosts := []string{"localhost", "127.0.0.1", "::1", "127.0.0.0/8"}
	if name, err := os.Hostname(); err == nil {
		hosts = append(hosts, name)
	}
	for _, own := range addresses() {
		hosts = append(hosts, own.String())
	}
	spare(hosts)
}

// SpareServer is SpareThisMachine for the host of a server's address, if each of its addresses is
// one of this machine. A server elsewhere is reached as the environment says.
func SpareServer(ctx context.Context, address string) {
	if !named() {
		return
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return
	}
	if _, known := asked.LoadOrStore(u.Hostname(), true); known {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found, err := net.DefaultResolver.LookupIPAddr(ctx, u.Hostname())
	if err != nil || len(found) == 0 {
		return
	}
	own := addresses()
	for _, at := range found {
		if !at.IP.IsLoopback() && !slices.ContainsFunc(own, at.IP.Equal) {
			return
		}
	}
	spare([]string{u.Hostname()})
}

var asked sync.Map // hosts that SpareServer has looked at

// named tells whether the environment names a proxy.
func named() bool {
	return slices.ContainsFunc([]string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"},
		func(name string) bool { return os.Getenv(name) != "" })
}

// addresses are those of this machine's interfaces.
func addresses() (own []net.IP) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok {
			own = append(own, n.IP)
		}
	}
	return own
}

// spare adds hosts to both variables: curl reads the small one first, Go the large one.
func spare(hosts []string) {
	set := cmp.Or(os.Getenv("NO_PROXY"), os.Getenv("no_proxy"))
	if lower := os.Getenv("no_proxy"); lower != set && lower != "" {
		set += "," + lower
	}
	var all []string
	for _, host := range append(strings.Split(set, ","), hosts...) {
		if host = strings.TrimSpace(host); host != "" && !slices.Contains(all, host) {
			all = append(all, host)
		}
	}
	os.Setenv("NO_PROXY", strings.Join(all, ","))
	os.Setenv("no_proxy", strings.Join(all, ","))
}
