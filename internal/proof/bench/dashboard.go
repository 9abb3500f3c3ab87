package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"time"

	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/parts"
)

// faces measures the dashboard in a real browser, and the command line as a process.
func faces(ctx context.Context, b *bench) (err error) {
	w, err := b.settle(ctx, "faces")
	if err != nil {
		return err
	}
	defer w.stop()
	defer browser.Close()
	var d parts.Drawing
	var v parts.Visit
	err = watched(func(t browser.T) {
		d = parts.Draw(t)
		tab := browser.Open(t, w.url, 1440, 900)
		tab.SignIn("ada@example.com", "correct horse battery")
		v = parts.See(tab, account+"/"+project)
	})
	if err != nil {
		return err
	}
	b.add(row{what: "the first load of Home, as it travels", value: fmt.Sprintf("%.1f kB", v.Bytes/1e3),
		target: "≤ 60 kB", met: v.Bytes <= 60e3})
	for _, r := range []struct {
		what  string
		took  parts.Took
		limit float64
	}{
		{"until Home is painted first", v.Paint, 500},
		{"from the answer to a filed task to its row, the median", v.Change, 100},
		{"a patch of 500 rows among 5,000", d.Patch, 4},
		{"50,000 lines of a transcript", d.Lines, 1500},
	} {
		b.add(row{what: r.what, value: fmt.Sprintf("%.1f ms", r.took.MS), baseline: fmt.Sprintf("%.1f ms", r.took.Plain),
			ratio: r.took.MS / r.took.Plain, target: fmt.Sprintf("≤ %.0f ms", r.limit), met: r.took.MS <= r.limit})
	}
	b.add(row{what: "what these lines keep", value: fmt.Sprintf("%.1f MB", d.Heap/1e6), target: "≤ 25 MB", met: d.Heap <= 25e6})

	environ := append(os.Environ(), "YARDMASTER_URL="+w.url, "YARDMASTER_TOKEN="+w.pat)
	plain := []string{b.self, "baseline", "--fetch", w.url + "/v1/tasks"}
	ours, theirs, err := commands(ctx, environ, []string{b.bin, "task", "list"}, plain)
	if err != nil {
		return err
	}
	b.add(row{what: "yardmaster task list, a process of its own", value: ms(ours), baseline: ms(theirs),
		ratio: ratio(ours, theirs), target: "≤ 40 ms", met: ours <= 40*time.Millisecond})
	return nil
}

// commands returns the median times of two commands that take turns, from the start of a
// process to its end.
func commands(ctx context.Context, environ, one, other []string) (a, z time.Duration, err error) {
	const times = 21
	var took [2][]time.Duration
	for range times {
		for i, args := range [][]string{one, other} {
			cmd := exec.CommandContext(ctx, args[0], args[1:]...)
			cmd.Env = environ
			begin := time.Now()
			if out, err := cmd.CombinedOutput(); err != nil {
				return 0, 0, fmt.Errorf("%v: %w\n%s", args, err, out)
			}
			took[i] = append(took[i], time.Since(begin))
		}
	}
	return median(took[0]), median(took[1]), nil
}

// fetch asks for an address, with the token of the environment, and prints the answer.
func fetch(url string) error {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+os.Getenv("YARDMASTER_TOKEN"))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, resp.Status)
	}
	_, err = io.Copy(os.Stdout, resp.Body)
	return err
}

// watch stands in for a test: the first failure ends what is watched.
type watch struct{ undo []func() }

// failure is what a watch ends with.
type failure struct{ error }

func (w *watch) Helper()                           {}
func (w *watch) Cleanup(f func())                  { w.undo = append(w.undo, f) }
func (w *watch) Fatal(args ...any)                 { panic(failure{fmt.Errorf("%s", fmt.Sprint(args...))}) }
func (w *watch) Fatalf(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }
func (w *watch) Errorf(format string, args ...any) { w.Fatalf(format, args...) }

// watched runs do, and returns its first failure.
func watched(do func(browser.T)) (err error) {
	w := &watch{}
	defer func() {
		for i := len(w.undo) - 1; i >= 0; i-- {
			w.undo[i]()
		}
	}()
	defer func() {
		if f := recover(); f != nil {
			failed, is := f.(failure)
			if !is {
				panic(f)
			}
			err = failed.error
		}
	}()
	do(w)
	return nil
}
