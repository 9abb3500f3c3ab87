package app

import (
	"net"
	"net/url"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/meta"
	"yardmaster/internal/proof/loopback"
)

// The port of the bus is the kernel's if nobody names it: it stays over restarts, since boxes keep
// the address, and another is found where a program has taken it meanwhile.
func TestUnnamedPortOfTheBusMayChange(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e db.Engine, flags []string) {
		flags = append(flags, "--nats-listen", "127.0.0.1:0")
		run := func() (address string) {
			y := boot(t, e, flags...)
			u, err := url.Parse(y.NATSURL())
			if err != nil {
				t.Fatal(err)
			}
			y.stop()
			return u.Host
		}
		picked, kept := run(), loopback.Address() // which no other test takes
		behind(t, flags[3], func(tx *db.Tx) error {
			if was, err := meta.Replace(tx, natsAddress, picked, kept); err != nil || !was {
				t.Errorf("%s is not what is kept: %v", picked, err)
			}
			return nil
		})
		if now := run(); now != kept {
			t.Fatalf("%s after a restart, was %s", now, kept)
		}
		other, err := net.Listen("tcp", kept)
		if err != nil {
			t.Fatal(err)
		}
		moved := run()
		if moved == kept {
			t.Fatalf("%s is another program's", moved)
		}
		other.Close()
		behind(t, flags[3], func(tx *db.Tx) error {
			if now, _, err := meta.Read(tx, natsAddress); err != nil || now != moved {
				t.Errorf("%s is kept, want %s: %v", now, moved, err)
			}
			return nil
		})
	})
}
