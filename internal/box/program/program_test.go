package program

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"yardmaster/internal/minisign"
	"yardmaster/internal/proof/executable"
	"yardmaster/internal/protocol"
)

var here = runtime.GOOS + "/" + runtime.GOARCH

func signer(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

func keyOf(seed byte) minisign.Key { return minisign.KeyOf(signer(seed).Public().(ed25519.PublicKey)) }

// signed is a program with what is said of it.
func signed(t *testing.T, text, version string, by byte) protocol.Update {
	t.Helper()
	sum := sha256.Sum256([]byte(text))
	u := protocol.Update{
		Release: "r-" + version, Channel: "stable", Version: version, Target: here, Size: int64(len(text)),
		SHA256: hex.EncodeToString(sum[:]), IdleMS: 1000, TrialMS: 60_000,
	}
	return sign(t, u, text, by)
}

func sign(t *testing.T, u protocol.Update, text string, by byte) protocol.Update {
	t.Helper()
	digest, err := minisign.Digest(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	u.Signature = minisign.Sign(signer(by), digest, u.Statement())
	return u
}

func serve(text string) Source {
	return func(context.Context, protocol.Update) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(text)), nil
	}
}

// files are the names in the folder that are programs, or parts of one.
func (s *Store) files(t *testing.T) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "state.json" && e.Name() != lockName {
			out = append(out, e.Name())
		}
	}
	return out
}

func (s *Store) now(t *testing.T) State {
	t.Helper()
	out, err := s.State()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// give has a program wanted, fetched and put on trial.
func (s *Store) give(t *testing.T, own, text, version string) protocol.Update {
	t.Helper()
	u := signed(t, text, version, 1)
	must(t, s.Want("c-"+version, u))
	must(t, s.Fetch(t.Context(), own, []minisign.Key{keyOf(1)}, serve(text)))
	must(t, s.Try())
	return u
}

// Nothing but the signed bytes, said as they are, comes to its place. What was refused leaves no
// file behind, and what ran before goes on.
func TestNothingForged(t *testing.T) {
	t.Parallel()
	const text = "#!/bin/sh\nexit 0\n"
	good := signed(t, text, "v1.1.0", 1)
	known := []minisign.Key{keyOf(1)}
	change := func(f func(*protocol.Update)) protocol.Update { u := good; f(&u); return u }
	for _, c := range []struct {
		what    string
		u       protocol.Update
		text    string
		keys    []minisign.Key
		refused bool
	}{
		{"itself", good, text, known, false},
		{"changed bytes", good, strings.Replace(text, "0", "1", 1), known, true},
		{"more bytes", good, text + "\n", known, true},
		{"fewer bytes", good, text[:5], known, true},
		{"no bytes", good, "", known, true},
		{"no key", good, text, nil, true},
		{"another key", good, text, []minisign.Key{keyOf(2)}, true},
		{"signed by another", signed(t, text, "v1.1.0", 2), text, known, true},
		{"no signature", change(func(u *protocol.Update) { u.Signature = "" }), text, known, true},
		{"said to be of another version", change(func(u *protocol.Update) { u.Version = "v1.2.0" }), text, known, true},
		{"said to be of another channel", change(func(u *protocol.Update) { u.Channel = "builtin" }), text, known, true},
		{"said to follow any version", change(func(u *protocol.Update) { u.Oldest = "v0.1.0" }), text, known, true},
		{"for another machine", signedFor(t, text, "plan9/mips"), text, known, true},
		{"the version that runs", signed(t, text, "v1.0.0", 1), text, known, true},
		{"an earlier one", signed(t, text, "v0.9.0", 1), text, known, true},
		{"no version", signed(t, text, "latest", 1), text, known, true},
		{"too far ahead", after(t, text, "v1.0.1"), text, known, true},
		{"a path for a digest", change(func(u *protocol.Update) { u.SHA256 = "../" + u.SHA256[3:] }), text, known, true},
		{"too large", change(func(u *protocol.Update) { u.Size = MostBytes + 1 }), text, known, true},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			s := Open(t.TempDir())
			must(t, s.Want("c", c.u))
			err := s.Fetch(t.Context(), "v1.0.0", c.keys, serve(c.text))
			if c.refused != (err != nil) {
				t.Fatalf("%v", err)
			}
			now := s.now(t)
			if ready := now.Ready != nil; ready == c.refused {
				t.Errorf("ready: %v", ready)
			}
			if c.refused && len(s.files(t)) > 0 {
				t.Errorf("left behind: %q", s.files(t))
			}
			if !c.refused && (s.Whole(*now.Ready) != nil || now.Report(1).State != protocol.UpdateReady) {
				t.Errorf("%+v", now.Report(1))
			}
		})
	}
}

func signedFor(t *testing.T, text, target string) protocol.Update {
	u := signed(t, text, "v1.1.0", 1)
	u.Target = target
	return sign(t, u, text, 1)
}

func after(t *testing.T, text, oldest string) protocol.Update {
	u := signed(t, text, "v1.1.0", 1)
	u.Oldest = oldest
	return sign(t, u, text, 1)
}

// Of many updates, two programs are on the disk: the one that runs, and the one of before or the
// one to come.
func TestTwoAreKept(t *testing.T) {
	t.Parallel()
	s := Open(t.TempDir())
	own := "v1.0.0"
	for i := 1; i <= 5; i++ {
		v := fmt.Sprintf("v1.%d.0", i)
		u := s.give(t, own, "#!/bin/sh\n# "+v+"\n", v)
		if files := s.files(t); len(files) > 2 || !slices.Contains(files, u.SHA256) {
			t.Fatalf("on trial: %q", files)
		}
		must(t, s.Good())
		now := s.now(t)
		if files := s.files(t); len(files) > 2 || now.Current.Of.Version != v || i > 1 && now.Previous.Of.Version != own {
			t.Fatalf("%q, %+v", s.files(t), now)
		}
		own = v
	}
}

// The wait after a program that was not taken grows, up to a day, and what was wanted is given up.
func TestBacksOff(t *testing.T) {
	t.Parallel()
	s := Open(t.TempDir())
	at := time.Unix(1_800_000_000, 0).UTC()
	last := time.Duration(0)
	for try := 1; try <= 8; try++ {
		c := Copy{Command: "c", Of: signed(t, "x", "v1.1.0", 1)}
		must(t, s.Want(c.Command, c.Of))
		must(t, s.Fail(c, "it is broken", at))
		f := s.now(t).Failed
		d := f.Again.Sub(at)
		if f.Tries != try || d < last || d > mostWait || try < 4 && d == last || s.now(t).Wanted != nil {
			t.Fatalf("%d: %+v after %s", try, f, last)
		}
		last = d
	}
	if r := s.now(t).Report(1); r.State != protocol.UpdateFailed || r.Why != "it is broken" || r.Command != "c" {
		t.Errorf("%+v", r)
	}
}

// States are told as they are; no two are set at once.
func TestStates(t *testing.T) {
	t.Parallel()
	s := Open(t.TempDir())
	is := func(want string) {
		t.Helper()
		if got := s.now(t).Report(1).State; got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	}
	is(protocol.UpdateNone)
	u := signed(t, "one", "v1.1.0", 1)
	must(t, s.Want("a", u))
	is(protocol.UpdateFetching)
	must(t, s.Forget())
	is(protocol.UpdateNone)
	if s.Try() == nil {
		t.Error("what is not ready was tried")
	}
	must(t, s.Want("b", u))
	must(t, s.Fetch(t.Context(), "v1.0.0", []minisign.Key{keyOf(1)}, serve("one")))
	is(protocol.UpdateReady)
	must(t, s.Try())
	is(protocol.UpdateTrying)
	if s.Want("c", u) == nil {
		t.Error("another one took the place of the one on trial")
	}
	must(t, s.Forget())
	must(t, s.Refuse(Copy{Command: "d", Of: u}, "no", time.Now()))
	is(protocol.UpdateTrying)
	must(t, s.Good())
	is(protocol.UpdateGood)
	must(t, s.Refuse(Copy{Command: "d", Of: u}, "no", time.Now()))
	is(protocol.UpdateFailed)
}

// supervised runs a box whose installed program notes that it ran, and answers those that did.
func supervised(t *testing.T, s *Store, installed string, here func(ran []string) error) (ran []string, err error) {
	t.Helper()
	v := Supervision{
		Store: s, Installed: installed, Logger: slog.New(slog.DiscardHandler), Free: func() error { return nil },
		Here: func(context.Context) error { ran = append(ran, "installed"); return here(ran) },
	}
	err = v.Run(t.Context())
	return ran, err
}

var errStopped = errors.New("stopped")

// A program that ends, or does nothing, is not good: the box goes back by itself, also where it
// was killed in the middle, and however often.
func TestGoesBack(t *testing.T) {
	t.Parallel()
	for what, script := range map[string]string{
		"ends at once": "#!/bin/sh\nexit 3\n", "is no program": "#!/nowhere\n", "does nothing": "#!/bin/sh\nexec sleep 600\n",
		"is killed": "#!/bin/sh\nkill -9 $$\n", "ends without a word": "#!/bin/sh\nexit 0\n",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := Open(t.TempDir())
			u := s.give(t, "v1.0.0", script, "v1.1.0")
			must(t, s.change(func(now *State) error { now.Trial.Of.TrialMS = 1000; return nil }))
			ran, err := supervised(t, s, "v1.0.0", func([]string) error { return errStopped })
			now := s.now(t)
			if !errors.Is(err, errStopped) || len(ran) != 1 || now.Trial != nil || now.Current != nil ||
				now.Failed == nil || now.Failed.Of.SHA256 != u.SHA256 || now.Failed.Why == "" || len(s.files(t)) != 0 {
				t.Errorf("%q, %v, %+v, %q", ran, err, now, s.files(t))
			}
		})
	}
}

// A machine that is switched off again and again in a trial goes back to the program of before.
func TestGoesBackAfterStarts(t *testing.T) {
	t.Parallel()
	s := Open(t.TempDir())
	s.give(t, "v1.0.0", "#!/bin/sh\nexit 0\n", "v1.1.0")
	v := Supervision{Store: s, Installed: "v1.0.0", Logger: slog.New(slog.DiscardHandler)}
	for range mostStarts { // each of which is cut off
		if c, trial, err := v.next(); err != nil || !trial || c == nil {
			t.Fatalf("%v, %v, %v", c, trial, err)
		}
	}
	if c, trial, err := v.next(); err != nil || trial || c != nil || s.now(t).Failed == nil {
		t.Errorf("%v, %v, %v", c, trial, err)
	}
}

// The program of a box that was updated is started in place of the installed one; a damaged one
// is not, but the one of before; and an installed one that is newer wins.
func TestStarts(t *testing.T) {
	t.Parallel()
	s := Open(t.TempDir())
	out := filepath.Join(t.TempDir(), "ran")
	program := func(v string) string { return "#!/bin/sh\necho " + v + " >> " + out + "\nexit 7\n" }
	for _, v := range []string{"v1.1.0", "v1.2.0"} {
		s.give(t, "v1.0.0", program(v), v)
		must(t, s.Good())
	}
	stop := func([]string) error { return errStopped }
	var exit *ExitError
	if ran, err := supervised(t, s, "v1.0.0", stop); !errors.As(err, &exit) || exit.Code != 7 || len(ran) != 0 {
		t.Fatalf("%q, %v", ran, err)
	}
	must(t, executable.Write(s.Path(*s.now(t).Current), []byte("#!/bin/sh\nexit 0\n"), 0o755))
	if ran, err := supervised(t, s, "v1.0.0", stop); !errors.As(err, &exit) || len(ran) != 0 {
		t.Fatalf("%q, %v", ran, err)
	}
	if text, err := os.ReadFile(out); err != nil || string(text) != "v1.2.0\nv1.1.0\n" {
		t.Errorf("%q, %v", text, err)
	}
	if now := s.now(t); now.Current.Of.Version != "v1.1.0" || now.Previous != nil {
		t.Errorf("%+v", now)
	}
	if ran, err := supervised(t, s, "v1.3.0", stop); !errors.Is(err, errStopped) || len(ran) != 1 || len(s.files(t)) != 0 {
		t.Errorf("%q, %v, %q", ran, err, s.files(t))
	}
}

// A box that makes room runs the new program; when that is good, it is the one that runs.
func TestSwaps(t *testing.T) {
	t.Parallel()
	s := Open(t.TempDir())
	begun, good := filepath.Join(t.TempDir(), "begun"), filepath.Join(t.TempDir(), "good")
	must(t, errors.Join(syscall.Mkfifo(begun, 0o600), syscall.Mkfifo(good, 0o600)))
	ran, err := supervised(t, s, "v1.0.0", func([]string) error {
		// The program ends when its trial has succeeded, which this test sees to.
		s.give(t, "v1.0.0", "#!/bin/sh\necho > "+begun+"\ncat "+good+"\nexit 7\n", "v1.1.0")
		go func() {
			_, err := os.ReadFile(begun)
			if err = errors.Join(err, s.Good(), os.WriteFile(good, nil, 0)); err != nil {
				t.Error(err)
			}
		}()
		return ErrSwap
	})
	var exit *ExitError
	if now := s.now(t); !errors.As(err, &exit) || len(ran) != 1 || now.Current == nil || now.Failed != nil {
		t.Errorf("%q, %v, %+v", ran, err, now)
	}
}
