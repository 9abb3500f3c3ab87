package box

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"yardmaster/internal/protocol"
	"yardmaster/internal/seal"
)

// answers is a connection whose calls a test answers, in the time of its bubble.
type answers struct {
	link
	call   func(ctx context.Context, method string, in any) (out any, err error)
	opened []string // addresses of Reconnect
}

func (a *answers) Call(ctx context.Context, method string, in, out any) error {
	reply, err := a.call(ctx, method, in)
	if err == nil && out != nil {
		reflect.ValueOf(out).Elem().Set(reflect.ValueOf(reply))
	}
	return err
}

func (a *answers) Wait(ctx context.Context) error { return ctx.Err() }

func (a *answers) Reconnect(url string) error {
	a.opened = append(a.opened, url)
	return nil
}

// boxAt is a box with a connection, and without all else.
func boxAt(t *testing.T, l link) *box {
	t.Helper()
	dir := t.TempDir()
	m, err := openMemory(dir)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := seal.NewRecipient()
	if err != nil {
		t.Fatal(err)
	}
	return &box{
		cfg:  Config{DataDir: dir, Timing: Timing{}.withDefaults(), clock: realClock{}},
		conn: l, log: slog.New(slog.DiscardHandler), memory: m, secret: secret,
		keys: &keyring{dataDir: dir, id: Identity{Box: "box-1", NATSURL: "nats://bus"}}, rotate: make(chan struct{}, 1),
	}
}

// attempt is an attempt of the box that is on its disk and has a lease.
func (b *box) attempt(t *testing.T, sent time.Time, lease time.Duration) *attempt {
	t.Helper()
	on := &setup{data: b.cfg.DataDir, work: b.cfg.DataDir}
	a := newAttempt(t.Context(), on, protocol.Start{Run: "r", Attempt: 1, Agent: "command"}, b.log)
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := a.openSpool(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.spool.Close() })
	a.lease = newLease(b.cfg.Timing, sent, lease)
	return a
}

// claimAt claims a run of a lease, whose answer comes after a while. It tells whether the
// box has taken the run up.
func (b *box) claimAt(t *testing.T, l *answers, lease, after time.Duration) (taken bool, claim string, err error) {
	t.Helper()
	l.call = func(ctx context.Context, _ string, in any) (any, error) {
		claim = in.(protocol.Claim).ID
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(after):
		}
		sealed, err := seal.SealTo(b.secret.Public(), protocol.TokensPurpose("/"), []byte("{}"))
		// The box refuses the id of the run, once it has taken it up.
		return protocol.ClaimReply{Run: &protocol.Start{Run: "/", Attempt: 1, LeaseMS: lease.Milliseconds()}, Sealed: sealed}, err
	}
	err = b.claimRun(t.Context(), 1)
	return b.memory.data.Claim == "" && b.late == 0, claim, err
}

// An answer to a claim that comes when little of its lease is left is dropped, and the
// same claim brings the run again: what is taken up so late could be killed before its
// lease is renewed.
func TestAnswerThatIsTooOldIsDropped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lease, after time.Duration
		taken        bool
	}{
		"at once":                        {6 * time.Second, 0, true},
		"as late as it may be given":     {6 * time.Second, protocol.ClaimAnswer(6 * time.Second), true},
		"and some time under way":        {6 * time.Second, 3125 * time.Millisecond, true},
		"too late":                       {6 * time.Second, 3126 * time.Millisecond, false},
		"when the lease is over":         {6 * time.Second, 5 * time.Second, false},
		"much later":                     {6 * time.Second, 30 * time.Second, false},
		"long ago, of a long lease":      {protocol.LeaseTTL, 31 * time.Second, true},
		"too long ago for any":           {protocol.LeaseTTL, 32 * time.Second, false},
		"never":                          {time.Hour, time.Hour, false},
		"held as long as any can be":     {protocol.LeaseTTL, protocol.ClaimAnswer(protocol.LeaseTTL), true},
		"of no lease, whenever it comes": {0, time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &answers{}
				b := boxAt(t, l)
				taken, claim, err := b.claimAt(t, l, c.lease, c.after)
				if taken != c.taken || taken != (err != nil) && c.after < time.Hour {
					t.Errorf("taken up: %v, %v", taken, err)
				}
				if _, again, _ := b.claimAt(t, l, time.Hour, 0); (again == claim) == c.taken {
					t.Errorf("it claims with %s after %s", again, claim)
				}
			})
		})
	}
}

// A claim whose run comes too late three times in a row is given up.
func TestClaimThatIsAlwaysAnsweredTooLateIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &answers{}
		b := boxAt(t, l)
		var claims []string
		for range 4 {
			_, claim, err := b.claimAt(t, l, 6*time.Second, 4*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			claims = append(claims, claim)
		}
		if claims[0] != claims[1] || claims[1] != claims[2] || claims[2] == claims[3] {
			t.Errorf("it claims with %q", claims)
		}
	})
}

// A lease is renewed in each third of it. A box that is leaving renews no leases of runs
// that have ended.
func TestNoLeaseForWhatIsHandedIn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		leaving, ended bool
		want           int // renewals within three minutes
	}{
		"it works":                      {false, false, 9},
		"its run has ended":             {false, true, 9},
		"it leaves while the run works": {true, false, 9},
		"it leaves, and the run's over": {true, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				b := boxAt(t, &answers{call: func(_ context.Context, method string, _ any) (any, error) {
					if method == protocol.CallRenew {
						n++
					}
					return protocol.Renewal{OK: true, LeaseMS: protocol.LeaseTTL.Milliseconds()}, nil
				}})
				b.leaving = c.leaving
				a := b.attempt(t, time.Now(), protocol.LeaseTTL)
				if c.ended {
					close(a.ended)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute+time.Second)
				defer cancel()
				b.keepLease(ctx, a)
				if n != c.want {
					t.Errorf("renewed %d times", n)
				}
			})
		})
	}
}

// A credential is renewed over the connection when half of its life is over, and again
// soon after that has failed.
func TestCredentialIsRenewedAtHalfOfItsLife(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var asked []time.Duration
		l := &answers{}
		b := boxAt(t, l)
		l.call = func(_ context.Context, method string, _ any) (any, error) {
			if asked = append(asked, time.Since(began)); method != protocol.CallCredential {
				t.Errorf("it calls %s", method)
			}
			if len(asked) == 2 {
				return protocol.CredentialReply{}, errors.New("not now")
			}
			return protocol.CredentialReply{JWT: "new", ExpiresMS: (4 * time.Hour).Milliseconds()}, nil
		}
		b.keys.id.RunToken = Credential{From: began, Until: began.Add(30 * 24 * time.Hour)}
		b.keys.id.NATSJWT = Credential{Value: "old", From: began, Until: began.Add(24 * time.Hour)}
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Hour)
		defer cancel()
		b.keepCredentials(ctx)
		want := []time.Duration{12 * time.Hour, 14 * time.Hour, 14*time.Hour + 2*time.Second}
		if !reflect.DeepEqual(asked, want) {
			t.Errorf("asked after %v, want %v", asked, want)
		}
		if id := b.keys.get(); id.NATSJWT.Value != "new" || len(l.opened) != 2 || l.opened[0] != "nats://bus" {
			t.Errorf("it has %q and has connected to %q", id.NATSJWT.Value, l.opened)
		}
	})
}
