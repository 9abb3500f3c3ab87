package loopback_test

import (
	"net"
	"strings"
	"testing"

	"yardmaster/internal/proof/loopback"
)

func TestAddressesAreHeld(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 500 {
		at := loopback.Address()
		if seen[at] {
			t.Fatalf("%s was given away twice", at)
		}
		seen[at] = true
		_, port, _ := strings.Cut(at, ":")
		if l, err := net.Listen("unix", "@yardmaster-port-"+port); err == nil {
			l.Close()
			t.Fatalf("another process may take %s", at)
		}
		for range 2 { // a server that is started again
			l, err := net.Listen("tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			l.Close()
		}
	}
}
