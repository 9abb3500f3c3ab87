package op

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/api/limit"
	"yardmaster/internal/fault"
)

// TestRefusedByAddressAndPath holds that refused deliveries are counted for their address and
// what they are for together, so that a neighbour at a vendor shuts nobody out, and that who
// names ever other paths, or very long ones, comes to an end all the same.
func TestRefusedByAddressAndPath(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	p := &Pipeline{BaseURL: "http://yard", Limits: limit.New(func() time.Time { return now })}
	row := &Op{}
	row.ID = "inbound.receive"
	refuse := func(ip, path string) int {
		c := &Call{Op: row, Path: path, Request: Request{IP: ip}}
		return p.RefuseFor(c, fault.New(fault.Unauthenticated, "bad-signature", "No.")).Status
	}
	for range PerAddress {
		if got := refuse("192.0.2.1", "/a"); got != 401 {
			t.Fatalf("the first: %d", got)
		}
	}
	for at, want := range map[string]int{"192.0.2.1 /a": 429, "192.0.2.1 /b": 401, "192.0.2.2 /a": 401} {
		ip, path, _ := strings.Cut(at, " ")
		if got := refuse(ip, path); got != want {
			t.Errorf("%s: %d, want %d", at, got, want)
		}
	}
	for name, path := range map[string]func(int) string{
		"192.0.2.3": func(i int) string { return fmt.Sprint("/", i) },
		"192.0.2.4": func(i int) string { return "/" + strings.Repeat("x", 200) + fmt.Sprint(i) },
	} {
		n := 0
		for ; n < 20*PerAddress && refuse(name, path(n)) == 401; n++ {
		}
		if n != refusedPerAddress {
			t.Errorf("%s: %d are refused with the reason", name, n)
		}
	}
}
