package e2e

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"yardmaster/internal/client"
)

// confine restarts the server with its data on a file system of 24 MB, and answers
// the path at which this process finds the data.
func (st *stack) confine() (data string) {
	st.t.Helper()
	st.server.stop()
	data, old := st.path("server"), st.path("server.before")
	if err := os.Rename(data, old); err != nil {
		st.t.Fatal(err)
	}
	if err := os.Mkdir(data, 0o700); err != nil {
		st.t.Fatal(err)
	}
	if os.Geteuid() != 0 { // every user may mount in a namespace of their own
		const setUp = `mount -t tmpfs -o size=24m,mode=700 tmpfs "$1" && cp -a "$0/." "$1" && shift && exec "$@"`
		st.launcher = []string{"unshare", "--user", "--map-root-user", "--mount", "sh", "-c", setUp, old, data}
		st.serve()
		return filepath.Join("/proc", fmt.Sprint(st.server.PID()), "root", data)
	}
	if err := syscall.Mount("tmpfs", data, "tmpfs", 0, "size=24m,mode=700"); err != nil {
		st.t.Fatalf("mount a small file system: %v", err)
	}
	st.t.Cleanup(func() {
		if err := syscall.Unmount(data, syscall.MNT_DETACH); err != nil {
			st.t.Errorf("unmount: %v", err)
		}
	})
	if err := os.CopyFS(data, os.DirFS(old)); err != nil {
		st.t.Fatal(err)
	}
	st.serve()
	return data
}

// fill fills the disk of a folder, and answers the file that takes the room.
func (st *stack) fill(dir string) string {
	st.t.Helper()
	hog, err := os.OpenFile(filepath.Join(dir, "hog"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		st.t.Fatal(err)
	}
	defer hog.Close()
	for _, size := range []int{1 << 20, 4 << 10, 1} {
		for err = error(nil); err == nil; {
			_, err = hog.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			st.t.Fatal(err)
		}
	}
	return hog.Name()
}

type check struct {
	Status    string
	Detail    string
	FreeBytes *int64 `json:"free_bytes"`
}

// probe asks /healthz or /readyz.
func (st *stack) probe(path string) (status int, checks map[string]check) {
	st.t.Helper()
	resp, err := http.Get("http://" + st.listen + path)
	if err != nil {
		st.t.Fatal(err)
	}
	defer resp.Body.Close()
	var out struct{ Checks map[string]check }
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		st.t.Fatal(err)
	}
	return resp.StatusCode, out.Checks
}

// While the disk is full, writes are refused with a reason and reads continue; once
// there is room, everything works again.
func TestFullDisk(t *testing.T) {
	st := newStack(t)
	data := st.confine()
	filed := 0
	create := func() error {
		in := map[string]any{"repo": owner + "/" + repoName, "title": "Fit in", "problem": strings.Repeat("There is little room. ", 400)}
		err := st.c.Call(st.ctx, http.MethodPost, "/v1/tasks", in, nil)
		if err == nil {
			filed++
		}
		return err
	}
	if err := create(); err != nil {
		t.Fatal(err)
	}
	if status, checks := st.probe("/healthz"); status != 200 || checks["storage"].FreeBytes == nil || *checks["storage"].FreeBytes < 1<<20 {
		t.Fatalf("with room: %d %+v", status, checks)
	}

	hog := st.fill(data)
	var refusal *client.Problem
	st.until("a write is refused", func() bool { return errors.As(create(), &refusal) })
	if refusal.Status != http.StatusInsufficientStorage || refusal.Slug() != "storage-full" {
		t.Errorf("the write is refused with %d %s", refusal.Status, refusal.Slug())
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if status, checks := st.probe(path); status != 503 || checks["storage"].Status != "failed" || checks["database"].Status != "ok" {
			t.Errorf("%s: %d %+v", path, status, checks)
		}
	}
	var page struct{ Data []map[string]any }
	st.call(http.MethodGet, "/v1/tasks?per_page=200", nil, &page)
	if len(page.Data) != filed {
		t.Errorf("%d tasks are listed, %d were filed", len(page.Data), filed)
	}
	head := st.git(st.path("source"), "rev-parse", "HEAD")
	text := make([]byte, 2<<20)
	if _, err := rand.Read(text); err != nil {
		t.Fatal(err)
	}
	st.commit(map[string]string{"large": string(text)})
	push := func() error {
		_, err := client.Git(st.ctx, st.path("source"), st.c.URL, st.c.Token, "push", "--quiet",
			st.c.URL+"/git/"+owner+"/"+repoName+".git", "HEAD:refs/heads/large")
		return err
	}
	if err := push(); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("a push on a full disk: %v", err)
	}
	if _, err := client.Git(st.ctx, st.dir, st.c.URL, st.c.Token, "clone", "--quiet", st.c.URL+"/git/"+owner+"/"+repoName+".git",
		st.path("clone")); err != nil {
		t.Errorf("a clone on a full disk: %v", err)
	} else if got := st.git(st.path("clone"), "rev-parse", "HEAD"); got != head {
		t.Errorf("the clone is at %s, not %s", got, head)
	}
	st.until("the log says so", func() bool { return strings.Contains(st.server.output(), "There is no room left in the data folder") })

	if err := os.Remove(hog); err != nil {
		t.Fatal(err)
	}
	st.until("writes go on", func() bool { return create() == nil })
	if err := push(); err != nil {
		t.Errorf("a push with room again: %v", err)
	}
	st.until("it is healthy", func() bool { status, _ := st.probe("/healthz"); return status == 200 })
	if status, checks := st.probe("/readyz"); status != 200 {
		t.Errorf("/readyz: %d %+v", status, checks)
	}
	st.call(http.MethodGet, "/v1/tasks?per_page=200", nil, &page)
	if len(page.Data) != filed {
		t.Errorf("%d tasks are listed, %d were filed", len(page.Data), filed)
	}
	st.server.stop()
}
