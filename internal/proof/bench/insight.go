package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"yardmaster/internal/blob"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/whatif"
	"yardmaster/internal/seal"
)

// knowledge searches 10,000 pages, by the benchmark of their package, which alone can fill a base
// at once.
func knowledge(ctx context.Context, b *bench) error {
	out, err := exec.CommandContext(ctx, "go", "test", "yardmaster/internal/domain/kb", "-run", "^$", "-bench", "BenchmarkSearch",
		"-benchtime", "5x").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	engines := 0
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) == 0 || !strings.HasPrefix(f[0], "BenchmarkSearch/") {
			continue
		}
		engines++
		engine, _, _ := strings.Cut(strings.TrimPrefix(f[0], "BenchmarkSearch/"), "-")
		took := map[string]time.Duration{}
		for i := 2; i+1 < len(f); i += 2 {
			if v, err := strconv.ParseFloat(f[i], 64); err == nil {
				took[f[i+1]] = time.Duration(v * float64(time.Millisecond))
			}
		}
		for _, r := range []struct {
			what, unit string
			most       time.Duration
		}{
			{"a search in 10000 pages with ten excerpts, p50, ", "p50-ms", 0},
			{"the same, p99, ", "p99-ms", 30 * time.Millisecond},
			{"a page is replaced, ", "replace-ms", 10 * time.Millisecond},
		} {
			v, base := took[r.unit], took["bare-"+r.unit]
			if v == 0 || base == 0 {
				return fmt.Errorf("the benchmark does not say %s: %s", r.unit, line)
			}
			n := row{what: r.what + engine, value: ms(v), baseline: ms(base), ratio: ratio(v, base)}
			if r.most > 0 {
				n.target, n.met = "≤ "+ms(r.most), v <= r.most
			}
			b.add(n)
		}
	}
	if engines < 2 {
		return fmt.Errorf("%d engines were measured:\n%s", engines, out)
	}
	return nil
}

const (
	boardRounds = 15
	fewTasks    = 1000
	aYear       = 365 * 24 * time.Hour
)

// spreadTasks has the tasks of fill, numbered by their times, end in the year before $1, each $2 after the other.
var spreadTasks = db.S(`UPDATE tasks SET created_at = $1 + (created_at - 1700000000000000) / 1000000 * $2,
	finished_at = CASE WHEN finished_at IS NULL THEN NULL ELSE $1 + (created_at - 1700000000000000) / 1000000 * $2 END`)

// board reads a board of 20 widgets over a year of a million tasks.
func board(ctx context.Context, b *bench) error {
	var sides [2]*world
	var paths [2]string
	for i, n := range []int{many, fewTasks} {
		w, err := b.settle(ctx, fmt.Sprintf("board-%d", n))
		if err != nil {
			return err
		}
		w.stop()
		if err := errors.Join(w.fill(ctx, 0, n), w.spread(ctx, n)); err != nil {
			return err
		}
		if _, err := b.restart(ctx, w); err != nil {
			return err
		}
		defer w.stop()
		var made struct {
			ID string `json:"id"`
		}
		if err := w.api.Call(ctx, http.MethodPost, "/v1/dashboards", twentyWidgets(), &made); err != nil {
			return err
		}
		sides[i], paths[i] = w, "/v1/dashboards/"+made.ID
	}
	var took, busy [2][]time.Duration
	for range boardRounds {
		for i, w := range sides {
			had, begin := w.busy(), time.Now()
			var out struct {
				Widgets []struct{} `json:"widgets"`
			}
			if err := w.api.Call(ctx, http.MethodGet, paths[i], nil, &out); err != nil || len(out.Widgets) != 20 {
				return fmt.Errorf("%d widgets: %w", len(out.Widgets), err)
			}
			took[i], busy[i] = append(took[i], time.Since(begin)), append(busy[i], w.busy()-had)
		}
	}
	m, few := median(took[0]), median(took[1])
	b.add(row{what: fmt.Sprintf("a board of 20 widgets over %d tasks", many), value: ms(m), baseline: ms(few), ratio: ratio(m, few),
		target: "< 300.0 ms", met: m < 300*time.Millisecond})
	b.add(row{what: "the same, processor time of the server", value: ms(median(busy[0])), baseline: ms(median(busy[1]))})
	return nil
}

func (w *world) spread(ctx context.Context, n int) error {
	d, err := db.Open(ctx, "sqlite:"+w.database(), db.Options{})
	if err != nil {
		return err
	}
	err = d.Write(ctx, func(tx *db.Tx) error {
		if _, err := spreadTasks.Exec(tx, time.Now().Add(-aYear).UnixMicro(), aYear.Microseconds()/int64(n)); err != nil {
			return err
		}
		_, err := analyze.Exec(tx)
		return err
	})
	return errors.Join(err, d.Close())
}

// twentyWidgets is a board with every source, and most of them more than once.
func twentyWidgets() map[string]any {
	var all []map[string]string
	add := func(kind, source, window string) {
		w := map[string]string{"kind": kind, "source": source}
		if window != "" {
			w["window"] = window
		}
		all = append(all, w)
	}
	for _, source := range []string{"tasks_filed", "tasks_ended", "tasks_failed", "pulls_merged"} {
		add("stat", source, "7d")
		add("series", source, "30d")
		add("table", source, "90d")
	}
	add("feed", "tasks_failed", "30d")
	add("stat", "tasks_running", "")
	add("stat", "waiting", "")
	add("feed", "waiting", "")
	add("table", "health", "30d")
	add("stat", "boxes_online", "")
	add("series", "cost", "30d")
	add("series", "checks_ended", "30d")
	return map[string]any{"name": "Everything", "widgets": all}
}

const (
	objectBytes  = 16 << 20
	objectRounds = 9
)

// objects stores files and reads them by the addresses that a folder of objects signs.
func objects(ctx context.Context, b *bench) error {
	dir := filepath.Join(b.dir, "objects")
	f := blob.NewFolder(filepath.Join(dir, "blob"), "", seal.New(), time.Now)
	ours := httptest.NewServer(f)
	defer ours.Close()
	bare := httptest.NewServer(bareFiles(dir))
	defer bare.Close()
	text := make([]byte, objectBytes)
	for i := range text {
		text[i] = byte(i * 7 >> 3)
	}
	var took [2][2][]time.Duration // up and down, ours and theirs
	for i := range objectRounds {
		name := fmt.Sprintf("acme/%d", i)
		up, err := f.PresignPut(ctx, name, objectBytes, "text/plain", time.Hour)
		if err != nil {
			return err
		}
		down, err := f.PresignGet(ctx, name, "a.txt", time.Hour)
		if err != nil {
			return err
		}
		file := bare.URL + "/" + strconv.Itoa(i)
		for k, call := range []struct{ method, ours, theirs string }{
			{http.MethodPut, ours.URL + up, file}, {http.MethodGet, ours.URL + down, file},
		} {
			for side, address := range []string{call.ours, call.theirs} {
				d, err := transfer(ctx, call.method, address, text)
				if err != nil {
					return err
				}
				took[k][side] = append(took[k][side], d)
			}
		}
	}
	for k, what := range []string{"16 MB up", "16 MB down"} {
		m, base := median(took[k][0]), median(took[k][1])
		r := ratio(base, m) // of the rates
		b.add(row{what: what, value: ms(m), baseline: ms(base), ratio: r, target: "≥ 0.90 of the baseline", met: r >= 0.9})
	}
	return nil
}

// transfer sends or fetches a text.
func transfer(ctx context.Context, method, address string, text []byte) (time.Duration, error) {
	var body io.Reader
	if method == http.MethodPut {
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "text/plain")
	begin := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	took := time.Since(begin)
	if err == nil && (resp.StatusCode != http.StatusOK || method == http.MethodGet && n != int64(len(text))) {
		err = fmt.Errorf("%s %s: %s, %d bytes", method, address, resp.Status, n)
	}
	return took, err
}

// bareFiles keeps files durably, under a name of their own until they are whole.
func bareFiles(dir string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := filepath.Join(dir, filepath.Base(r.URL.Path))
		if r.Method == http.MethodGet {
			http.ServeFile(w, r, at)
			return
		}
		if err := keepFile(at, r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
}

func keepFile(at string, from io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	f, err := os.Create(at + ".part")
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(at+".part", at)
}

const simulated = 10_000

// simulation plays a week of tasks under another policy.
func simulation(_ context.Context, b *bench) error {
	rnd := rand.New(rand.NewPCG(3, 4))
	begin := time.Now().Add(-7 * 24 * time.Hour)
	var record []whatif.Try
	for i := range simulated {
		at := begin.Add(time.Duration(rnd.Int64N(int64(7 * 24 * time.Hour))))
		claimed := at.Add(time.Duration(rnd.IntN(600)) * time.Second)
		ended, cost := claimed.Add(time.Duration(rnd.IntN(3600))*time.Second), "0.42"
		record = append(record, whatif.Try{
			RunID: strconv.Itoa(i), TaskID: strconv.Itoa(i), Repo: strconv.Itoa(rnd.IntN(40)), Kind: "work", Template: "default",
			Priority: int64(rnd.IntN(101)), CreatedAt: at, ReadyAt: at, ClaimedAt: claimed, EndedAt: &ended, CostUSD: &cost,
		})
	}
	slices.SortFunc(record, func(a, b whatif.Try) int { return a.ClaimedAt.Compare(b.ClaimedAt) })
	var took, base []time.Duration
	for range 5 {
		began := time.Now()
		sorted := slices.SortedStableFunc(slices.Values(record), func(a, b whatif.Try) int {
			return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.ReadyAt.Compare(b.ReadyAt))
		})
		base = append(base, time.Since(began))
		began = time.Now()
		found, wrong := whatif.Simulate(sorted, []byte("version: 1\nmerge: {mode: auto}\n"), whatif.Machines{Slots: 4}, time.Now())
		if took = append(took, time.Since(began)); len(wrong) > 0 || found.Tries != simulated {
			return fmt.Errorf("%d tries: %v", found.Tries, wrong)
		}
	}
	m := median(took)
	b.add(row{what: fmt.Sprintf("a week of %d tasks, played with 4 slots", simulated), value: ms(m), baseline: ms(median(base)),
		ratio: ratio(m, median(base)), target: "< 10000.0 ms", met: m < 10*time.Second})
	return nil
}
