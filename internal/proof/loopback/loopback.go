// Package loopback finds addresses for servers of tests that are stopped and started
// again.
package loopback

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Address returns an address of 127.0.0.1 on which nothing listens. Its port is from
// 10,000 to 29,999, below those that the kernel gives to sockets that ask for any: it
// is still free after a restart. It panics after 100 ports that are taken.
func Address() string {
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	panic("100 ports of 127.0.0.1 are taken")
}
