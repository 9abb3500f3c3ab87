package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"yardmaster/internal/child"
	"yardmaster/internal/proof/odd"
)

const (
	countedTasks  = 10_000
	countedRounds = 21

	copiedTasks  = 400_000
	copiedGit    = 700 << 20
	copyRounds   = 3
	copiedPart   = 500 * time.Millisecond
	copiedApart  = 8 * time.Second // of load without a backup
	firstTries   = 3
	quickest     = 10 * time.Second
	joinedWithin = time.Minute
)

// counted compares a list call of a server that counts with one of a server that does not.
func counted(ctx context.Context, b *bench) error {
	address, err := freePort()
	if err != nil {
		return err
	}
	side := func(name string, args ...string) (*world, func() (outcome, error), error) {
		w, err := b.settle(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		w.stop()
		if err := w.fill(ctx, 0, countedTasks); err != nil {
			return nil, nil, err
		}
		if w.process, _, err = b.serve(ctx, w.data, args...); err != nil {
			return nil, nil, err
		}
		var n atomic.Int64
		l := load{clients: 4, method: http.MethodGet, url: w.url + "/v1/tasks?per_page=50", token: w.pat, status: http.StatusOK}
		return w, func() (outcome, error) { return l.run(ctx, w.process, round, 0, &n) }, nil
	}
	with, a, err := side("counts", "--metrics-listen", address)
	if err != nil {
		return err
	}
	defer with.stop()
	without, o, err := side("counts-not")
	if err != nil {
		return err
	}
	defer without.stop()
	ours, theirs, err := duel(countedRounds, a, o)
	if err != nil {
		return err
	}
	if err := counts(ctx, address); err != nil {
		return err
	}
	r := ratio(costs(ours), costs(theirs))
	b.add(row{what: "GET /v1/tasks?per_page=50, processor time of the server a call", value: us(costs(ours)),
		baseline: us(costs(theirs)), ratio: r, target: "≤ 1.03 of no metrics", met: r <= 1.03})
	b.add(row{what: "the same, 4 clients", value: rate(rates(ours)), baseline: rate(rates(theirs)),
		ratio: ratio(rates(ours), rates(theirs))})
	return nil
}

// counts fails if a server has not counted the calls.
func counts(ctx context.Context, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && !strings.Contains(string(text), `yardmaster_request_seconds_count{capability="task.list"`) {
		err = errors.New("the calls were not counted")
	}
	return err
}

// copied compares the filing of tasks while a backup is made with the same beside it.
func copied(ctx context.Context, b *bench) error {
	w, err := b.settle(ctx, "copied")
	if err != nil {
		return err
	}
	w.stop()
	if err := w.fill(ctx, 0, copiedTasks); err != nil {
		return err
	}
	if _, err := b.restart(ctx, w); err != nil {
		return err
	}
	defer w.stop()
	dir, err := b.folder("copied-source")
	if err == nil {
		dir, err = odd.Large(copiedGit).Make(ctx, dir)
	}
	if err == nil {
		err = w.api.AddRepo(ctx, dir, account, "large")
	}
	if err := errors.Join(err, os.RemoveAll(dir)); err != nil {
		return err
	}
	var n atomic.Int64
	l := load{clients: 16, method: http.MethodPost, url: w.url + "/v1/tasks", token: w.pat, body: filing, status: http.StatusAccepted}
	var took []time.Duration
	during := func() (sum outcome, err error) {
		to := filepath.Join(b.dir, "copied-backup")
		begin, done := time.Now(), make(chan error, 1)
		cmd := exec.CommandContext(ctx, b.bin, "backup", to, "--data", w.data)
		go func() {
			out, err := cmd.CombinedOutput()
			if err != nil {
				err = fmt.Errorf("the backup: %w\n%s", err, out)
			}
			took = append(took, time.Since(begin))
			done <- err
		}()
		for {
			o, err := l.run(ctx, w.process, copiedPart, 0, &n)
			if err != nil {
				return sum, errors.Join(err, <-done)
			}
			sum.calls, sum.took, sum.busy = sum.calls+o.calls, sum.took+o.took, sum.busy+o.busy
			select {
			case err := <-done:
				return sum, errors.Join(err, os.RemoveAll(to))
			default:
			}
		}
	}
	alone := func() (outcome, error) { return l.run(ctx, w.process, copiedApart, 0, &n) }
	ours, theirs, err := duel(copyRounds, during, alone)
	if err != nil {
		return err
	}
	r := ratio(rates(ours), rates(theirs))
	b.add(row{what: "POST /v1/tasks, 16 clients, while a backup is made", value: rate(rates(ours)), baseline: rate(rates(theirs)), ratio: r,
		target: "≥ 0.80 of none", met: r >= 0.8})
	size, err := bytesIn(w.data)
	b.add(row{what: fmt.Sprintf("the backup, of %d MB", size>>20), value: ms(median(took))})
	return err
}

func bytesIn(dir string) (sum int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	return sum, err
}

// first measures what one who is new waits for.
func first(ctx context.Context, b *bench) error {
	var demos, joins []time.Duration
	for range firstTries {
		took, err := timed(func() error {
			out, err := exec.CommandContext(ctx, b.bin, "demo", "--once").CombinedOutput()
			if err != nil {
				err = fmt.Errorf("the demo: %w\n%s", err, out)
			}
			return err
		})
		if err != nil {
			return err
		}
		demos = append(demos, took)
	}
	w, err := b.settle(ctx, "first")
	if err != nil {
		return err
	}
	defer w.stop()
	for i := range firstTries {
		took, err := w.joins(ctx, b, fmt.Sprint("first-", i))
		if err != nil {
			return err
		}
		joins = append(joins, took)
	}
	b.add(row{what: "the demo, from its start to the merge and its end", value: ms(median(demos)),
		target: fmt.Sprintf("≤ %.0f s", quickest.Seconds()), met: median(demos) <= quickest})
	b.add(row{what: "the one line of box.enroll until the box is online", value: ms(median(joins)),
		target: fmt.Sprintf("≤ %.0f s", joinedWithin.Seconds()), met: median(joins) <= joinedWithin})
	return nil
}

// joins runs the one line as a user with an empty home, on a machine whose program is that which
// was built: one of a release is fetched as well.
func (w *world) joins(ctx context.Context, b *bench, name string) (took time.Duration, err error) {
	home, err := b.folder(name)
	if err != nil {
		return 0, err
	}
	before, err := w.online(ctx)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	var minted struct{ Join string }
	if err := w.api.Call(ctx, http.MethodPost, "/v1/runners/enrollments", map[string]any{"name": name}, &minted); err != nil {
		return 0, err
	}
	cmd := exec.Command("sh", "-c", minted.Join)
	cmd.Dir, cmd.Env = home, []string{"HOME=" + home, "PATH=" + b.dir + ":" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	gone := make(chan struct{})
	if err := child.Start(cmd, func(error) { close(gone) }); err != nil {
		return 0, err
	}
	defer func() {
		err = errors.Join(err, syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL))
		<-gone
	}()
	for {
		now, err := w.online(ctx)
		if err != nil {
			return 0, err
		}
		if slices.ContainsFunc(now, func(id string) bool { return !slices.Contains(before, id) }) {
			break
		}
		if time.Since(begin) > 2*joinedWithin {
			return 0, errors.New("the box does not come online")
		}
		time.Sleep(20 * time.Millisecond)
	}
	return time.Since(begin), nil
}

// online are the ids of the boxes that are there.
func (w *world) online(ctx context.Context) (out []string, err error) {
	var boxes struct {
		Data []struct {
			ID       string
			Presence struct{ Status string }
		}
	}
	err = w.api.Call(ctx, http.MethodGet, "/v1/runners", nil, &boxes)
	for _, x := range boxes.Data {
		if x.Presence.Status == "online" {
			out = append(out, x.ID)
		}
	}
	return out, err
}
