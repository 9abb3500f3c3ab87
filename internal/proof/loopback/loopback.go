// Package loopback finds addresses for servers of tests that are stopped and started
// again.
package loopback

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// held are the locks of this process on ports. They are let go when it ends.
var held struct {
	sync.Mutex
	locks []net.Listener
}

// Address returns an address of 127.0.0.1 on which nothing listens, and which no other
// call of any process gets while this process lives. Its port is from 10,000 to 29,999,
// below those that the kernel gives to sockets that ask for any, so that it is still free
// after a restart. It panics after 100 ports that are taken.
//
// The lock on a port is a socket of Linux's abstract namespace, which ends with its
// process and is one of the network namespace, as ports are.
func Address() string {
	held.Lock()
	defer held.Unlock()
	for range 100 {
		port := 10_000 + rand.IntN(20_000)
		lock, err := net.Listen("unix", fmt.Sprintf("@yardmaster-port-%d", port))
		if err != nil {
			continue // another call has it
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			lock.Close()
			continue
		}
		l.Close()
		held.locks = append(held.locks, lock)
		return l.Addr().String()
	}
	panic("100 ports of 127.0.0.1 are taken")
}
