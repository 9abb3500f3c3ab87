package e2e

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"yardmaster/internal/minisign"
)

// publisher signs the programs of a test.
var publisher = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))

func publisherKey() string { return minisign.KeyOf(publisher.Public().(ed25519.PublicKey)).String() }

// smallBox is a build of the small box program; broken is what is wrong with it, if anything.
var smallBox = func() func(t *testing.T, version, broken string) string {
	var mu sync.Mutex
	built := map[string]string{}
	return func(t *testing.T, version, broken string) string {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if path := built[version+broken]; path != "" {
			return path
		}
		path := filepath.Join(root, "smallbox-"+version+broken)
		build := exec.CommandContext(t.Context(), "go", "build", "-ldflags", "-s -w -X main.version="+version+" -X main.broken="+broken,
			"-o", path, "yardmaster/internal/proof/smallbox")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", build, err, out)
		}
		built[version+broken] = path
		return path
	}
}()

// release signs a program and has the operator import it.
func (st *stack) release(program, version, oldest string) {
	st.t.Helper()
	text, err := os.ReadFile(program)
	if err != nil {
		st.t.Fatal(err)
	}
	digest, err := minisign.Digest(bytes.NewReader(text))
	if err != nil {
		st.t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	said := fmt.Sprintf("yardmaster channel:stable version:%s target:%s/%s sha256:%s", version, runtime.GOOS, runtime.GOARCH,
		hex.EncodeToString(sum[:]))
	if oldest != "" {
		said += " oldest:" + oldest
	}
	file := st.path("release-" + version)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		st.t.Fatal(err)
	}
	if err := os.WriteFile(file+".minisig", []byte(minisign.Sign(publisher, digest, said)), 0o600); err != nil {
		st.t.Fatal(err)
	}
	p := start(st.t, st.path("import.log"), nil, binary, "release", "import", file, "--data", st.path("server"),
		"--release-keys", publisherKey())
	p.goes()
	if !strings.Contains(p.output(), version+" of the channel stable") {
		st.t.Fatal(p.output())
	}
}

type rollout struct {
	State  string
	Why    string
	Counts map[string]int
	Boxes  []struct{ ID, State, Why, Says, Step string }
}

// rolled starts a rollout and waits for its end. Each look at it is also given to watch.
func (st *stack) rolled(watch func(rollout)) (out rollout) {
	st.t.Helper()
	var started struct{ Kind string }
	st.call(http.MethodPost, "/v1/runners/update", map[string]any{"soak_s": 0}, &started)
	if started.Kind != "started" {
		st.t.Fatalf("%+v", started)
	}
	st.until("the rollout has ended", func() bool {
		var newest struct{ Rollout rollout }
		st.call(http.MethodGet, "/v1/runners/rollout", nil, &newest)
		out = newest.Rollout
		if watch != nil {
			watch(out)
		}
		return out.State == "done" || out.State == "halted"
	})
	return out
}

// updatable is a box of the small program.
type updatable struct {
	*machine
	program string
}

func (st *stack) updatable(name, program string) *updatable {
	st.t.Helper()
	b := &updatable{st.enroll(name, nil), program}
	b.run()
	return b
}

func (b *updatable) run() {
	b.st.t.Helper()
	b.process = start(b.st.t, b.st.path(b.name+".log"), nil, b.program, "--data", b.data)
	b.st.until("box "+b.name+" is online", func() bool {
		if b.ended() {
			b.st.t.Fatalf("it ended:\n%s", b.output())
		}
		return b.presence() == "online"
	})
}

func (b *updatable) presence() string { return b.seen().Presence.Status }

type seenBox struct {
	Presence struct {
		Status, Version string
		Update          *struct{ State, Why, Version string }
	}
}

func (b *updatable) seen() (out seenBox) {
	b.st.t.Helper()
	b.st.call(http.MethodGet, "/v1/runners/"+b.id, nil, &out)
	return out
}

// programs are the versions in the folder of a box, and its state.
func (b *updatable) programs() (files int, state map[string]json.RawMessage) {
	b.st.t.Helper()
	entries, err := filepath.Glob(filepath.Join(b.data, "programs", "*", "yardmaster"))
	if err != nil {
		b.st.t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(b.data, "programs", "state.json"))
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err != nil && !os.IsNotExist(err) {
		b.st.t.Fatal(err)
	}
	return len(entries), state
}

func follow(st *stack) {
	st.t.Helper()
	st.call(http.MethodPut, "/v1/runners/pins", map[string]any{"scope": "account", "channel": "stable", "pinned": nil}, nil)
}

// A fleet is updated over the wire by real programs: a canary, then the others, each after it has
// done a test run; then by steps, from far behind; a release that does not come up halts its
// rollout at the canary, which goes back by itself and works on.
func TestBoxesAreUpdated(t *testing.T) {
	first := smallBox(t, "v1.0.0", "")
	st := newStack(t, "--release-keys", publisherKey())
	follow(st)
	boxes := []*updatable{st.updatable("one", first), st.updatable("two", first), st.updatable("three", first)}
	st.release(smallBox(t, "v1.1.0", ""), "v1.1.0", "")
	if got := st.rolled(nil); got.State != "done" || got.Counts["good"] != 3 {
		t.Fatalf("%+v", got)
	}
	for _, b := range boxes {
		if seen := b.seen(); seen.Presence.Version != "v1.1.0" || seen.Presence.Update == nil {
			t.Errorf("%s: %+v", b.name, seen)
		}
	}
	// Version 1.3.0 follows 1.2.0, and that follows any: the ledger has the steps.
	st.release(smallBox(t, "v1.2.0", ""), "v1.2.0", "")
	st.release(smallBox(t, "v1.3.0", ""), "v1.3.0", "v1.2.0")
	if got := st.rolled(nil); got.State != "done" || got.Counts["good"] != 3 {
		t.Fatalf("%+v", got)
	}
	for _, b := range boxes {
		if files, _ := b.programs(); files != 2 || b.seen().Presence.Version != "v1.3.0" {
			t.Errorf("%s: %d programs, %+v", b.name, files, b.seen())
		}
	}
	st.release(smallBox(t, "v1.4.0", "ends"), "v1.4.0", "")
	got := st.rolled(nil)
	if got.State != "halted" || got.Counts["failed"] != 1 || got.Counts["waits"] != 2 || !strings.Contains(got.Why, "1 of 1 boxes") {
		t.Fatalf("%+v", got)
	}
	for _, b := range boxes {
		st.until(b.name+" is online with the program of before", func() bool {
			seen := b.seen()
			return seen.Presence.Status == "online" && seen.Presence.Version == "v1.3.0"
		})
	}
	// A machine that starts again runs what it was given, not what is installed.
	boxes[0].kill()
	boxes[0].run()
	st.until("the killed box is back", func() bool { return boxes[0].seen().Presence.Version == "v1.3.0" })
}

// Whenever a box is killed in an update, what is there afterwards works, and gets there.
func TestBoxesKilledInAnUpdate(t *testing.T) {
	first := smallBox(t, "v1.0.0", "")
	second := smallBox(t, "v1.1.0", "")
	for _, step := range []string{"wanted", "ready", "trial", "current"} {
		t.Run(step, func(t *testing.T) {
			st := newStack(t, "--release-keys", publisherKey())
			follow(st)
			b := st.updatable("box", first)
			st.release(second, "v1.1.0", "")
			killed := false
			got := st.rolled(func(rollout) {
				_, state := b.programs()
				if _, there := state[step]; there && !killed {
					killed = true
					b.kill()
					b.process = start(st.t, st.path(b.name+".log"), nil, b.program, "--data", b.data)
				}
			})
			if got.State != "done" || got.Counts["good"] != 1 {
				t.Errorf("%+v\n%s", got, b.output())
			}
			st.until("it runs the release", func() bool { return b.seen().Presence.Version == "v1.1.0" })
		})
	}
}

// What nobody signed whom the server's operator trusts, is not imported; a box trusts the keys of
// its enrolment, whatever the server says later.
func TestNothingUnsigned(t *testing.T) {
	first := smallBox(t, "v1.0.0", "")
	st := newStack(t)
	follow(st)
	b := st.updatable("box", first) // which was told the server's own key alone
	st.release(smallBox(t, "v1.1.0", ""), "v1.1.0", "")
	got := st.rolled(nil)
	if got.State != "halted" || got.Counts["failed"] != 1 || !strings.Contains(got.Why, "signature") {
		t.Errorf("%+v", got)
	}
	if files, _ := b.programs(); files != 0 || b.seen().Presence.Version != "v1.0.0" {
		t.Errorf("%d programs, %+v", files, b.seen())
	}
	forged := st.path("forged")
	if err := os.WriteFile(forged, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(st.path("release-v1.1.0.minisig"))
	if err == nil {
		err = os.WriteFile(forged+".minisig", text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, st.path("forged.log"), nil, binary, "release", "import", forged, "--data", st.path("server"),
		"--release-keys", publisherKey())
	p.goes()
	if !strings.Contains(p.output(), "signature") || strings.Contains(p.output(), "is in the ledger") {
		t.Error(p.output())
	}
}
