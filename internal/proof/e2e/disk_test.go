package e2e

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"yardmaster/internal/box"
)

// small starts an enrolled box whose data folder is a file system of 24 MB.
func (st *stack) small(name string) *machine {
	st.t.Helper()
	b := st.enroll(name, nil)
	if os.Geteuid() != 0 {
		// Every user may mount in a namespace of their own. The box must not be root in
		// it, because it could not run its agents as another user there.
		const setUp = `mount -t tmpfs -o size=24m,mode=755 tmpfs "$1" && mv "$0" "$1/identity.json" && shift && exec unshare --user --map-user=1000 --map-group=1000 "$@"`
		identity := st.path(name + ".json")
		if err := os.Rename(filepath.Join(b.data, "identity.json"), identity); err != nil {
			st.t.Fatal(err)
		}
		b.launcher = []string{"unshare", "--user", "--map-root-user", "--mount", "sh", "-c", setUp, identity, b.data}
		return b.run()
	}
	identity, err := box.LoadIdentity(b.data)
	if err != nil {
		st.t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", b.data, "tmpfs", 0, "size=24m,mode=755"); err != nil {
		st.t.Fatalf("mount a small file system: %v", err)
	}
	st.t.Cleanup(func() {
		if err := syscall.Unmount(b.data, syscall.MNT_DETACH); err != nil {
			st.t.Errorf("unmount: %v", err)
		}
	})
	if err := identity.Save(b.data); err != nil {
		st.t.Fatal(err)
	}
	return b.run()
}

// A repository that is too large for a box's disk is no fault of the box: another try
// counts against the task, and the disk does not stay full.
func TestRepositoryThatTheDiskDoesNotHold(t *testing.T) {
	for name, size := range map[string]int{"checkout": 14 << 20, "cache": 30 << 20} {
		t.Run(name, func(t *testing.T) {
			st := newStack(t)
			st.script("work", deliver)
			text := make([]byte, size)
			if _, err := rand.Read(text); err != nil {
				t.Fatal(err)
			}
			st.push("main", map[string]string{"large": string(text)})
			small := st.small("small")
			id := st.file("work", "Work in a large repository")
			if r := st.ends(id, 1); r.FailureKind != "storage_failed" {
				t.Errorf("the first try ended as %+v", r)
			}
			if left, err := filepath.Glob(filepath.Join(small.data, "cache", "*", "objects", "*", "tmp_*")); err != nil || len(left) > 0 {
				t.Errorf("left in the cache: %v, %v", left, err)
			}
		})
	}
}

// The agent's output fills the disk until something happens.
const talk = `while :; do seq 1 2000; done`

func TestDiskFullWithTheAgentsHome(t *testing.T) {
	st := newStack(t)
	st.script("work", `[ ! -e half ] || { rm half; `+deliver+`; exit; }; echo half >half; cat /dev/zero >"$HOME/big" 2>/dev/null; `+talk)
	b := st.small("small")
	id := st.file("work", "Fill the disk of a box")
	if r := st.ends(id, 1); r.FailureKind != "resource_limit" {
		t.Errorf("the first try ended as %+v", r)
	}
	if task := st.task(id); task.Status != "pending" || task.FailureKind == nil || *task.FailureKind != "resource_limit" {
		t.Errorf("the task after it: %+v", task)
	}
	// The home was deleted, so there was room to save the work; the same box continues
	// it.
	st.merges(id)
	if got := st.outcomes(id); got != "failed(resource_limit) succeeded" {
		t.Errorf("the tries: %s", got)
	}
	if r := st.tries(id)[1]; r.ResumeSHA == "" || r.BoxID != b.id {
		t.Errorf("the second try did not go on with the saved work: %+v", r)
	}
	st.verify()
}

func TestDiskFullWithTheWork(t *testing.T) {
	st := newStack(t)
	st.script("work", `head -c 64000000 /dev/zero >big 2>/dev/null || `+talk+`; rm big; `+deliver)
	st.script("little", deliver)
	small := st.small("small")
	id := st.file("work", "Need more than a small box has")
	little := st.file("little", "Need little")
	if r := st.ends(id, 1); r.FailureKind != "resource_limit" {
		t.Errorf("the first try ended as %+v", r)
	}
	// The next task in the queue is not affected: the box waits until the run has left
	// its disk.
	st.merges(little)
	if got := st.outcomes(little); got != "succeeded" {
		t.Errorf("the tries of what needs little: %s", got)
	}
	small.stop()
	if text := small.output(); strings.Contains(text, "panic") {
		t.Errorf("the box panicked")
	}
	large := st.join("large")
	st.merges(id)
	if got := st.outcomes(id); got != "failed(resource_limit) succeeded" {
		t.Errorf("the tries: %s", got)
	}
	if r := st.tries(id)[1]; r.BoxID != large.id {
		t.Errorf("the second try was on box %s", r.BoxID)
	}
	st.verify()
}
