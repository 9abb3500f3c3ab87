package box

import (
	"testing"

	"yardmaster/internal/box/conn"
)

// Clock and Timer are what a test tells the time with.
type (
	Clock = clock
	Timer = timer
)

// WithClock is a configuration whose box asks a clock for the end of Timing.Stall, of the
// push within Timing.Wrap, and of the wait for the goodbye.
func WithClock(cfg Config, c Clock) Config {
	cfg.clock = c
	return cfg
}

// TrustNow answers how a process of a box with an identity trusts its bus, once it has
// asked its server, and before.
func TrustNow(t *testing.T, id Identity) (told, started conn.Trust) {
	t.Helper()
	k := &keyring{dataDir: t.TempDir(), id: id}
	started = k.trust()
	if err := k.reissue(t.Context()); err != nil {
		t.Fatal(err)
	}
	return k.trust(), started
}
