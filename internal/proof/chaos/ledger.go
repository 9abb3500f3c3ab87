package chaos

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// read reads the ledger from the data that the stopped programs have left.
func (w *world) read(ctx context.Context) (l ledger, err error) {
	d, err := w.database()
	if err != nil {
		return l, err
	}
	defer d.Close()
	bare, err := w.bare()
	if err != nil {
		return l, err
	}
	r := Record{DB: d, Repo: bare, Found: w.report}
	if err := r.Verify(ctx); err != nil {
		return l, err
	}
	dsn := w.Database
	if dsn == "" {
		dsn = "sqlite:" + w.path("server/yardmaster.db")
	}
	astray, err := w.Astray(ctx, dsn)
	if err != nil {
		return l, err
	}
	for _, what := range astray {
		w.report(Contradiction, "what is due: "+what)
	}
	if l.states, err = w.tasks(ctx, r); err != nil {
		return l, err
	}
	for _, of := range []struct {
		table string
		n     *int
	}{{"runs", &l.runs}, {"run_events", &l.events}, {"pulls", &l.pulls}} {
		rows, err := r.rows(ctx, `SELECT COUNT(*) FROM `+of.table)
		if err != nil {
			return l, err
		}
		if _, err := fmt.Sscan(fmt.Sprint(rows[0][0]), of.n); err != nil {
			return l, err
		}
	}
	l.bytes, err = w.search(ctx, r)
	return l, err
}

// tasks compares the filed tasks with the stored ones, and the tasks stored as merged
// with the main branch.
func (w *world) tasks(ctx context.Context, r Record) (map[string]int, error) {
	rows, err := r.rows(ctx, `SELECT title, status, branch, id,
		CASE WHEN EXISTS (SELECT 1 FROM pulls p WHERE p.task_id = tasks.id AND p.state = 'merged') THEN 'merged' ELSE '' END FROM tasks`)
	if err != nil {
		return nil, err
	}
	states, stored := map[string]int{}, map[string]int{}
	merged := map[string]bool{}
	late := map[string]bool{} // cancelled after the merge of their pull requests had begun
	for _, row := range rows {
		stored[fmt.Sprint(row[0])]++
		status, branch := fmt.Sprint(row[1]), fmt.Sprint(row[2])
		name := "done-" + branch[strings.LastIndexByte(branch, '/')+1:]
		states[status]++
		switch status {
		case "completed": // every agent that succeeds has made a file
			w.report(TaskLost, fmt.Sprintf("task %s is completed without a pull request", row[3]))
		case "merged":
			merged[name] = true
		case "cancelled":
			late[name] = fmt.Sprint(row[4]) == "merged"
		}
	}
	for _, title := range w.filed {
		switch n := stored[title]; {
		case n == 0:
			w.report(TaskLost, title+" was acknowledged and is not stored")
		case n > 1:
			w.report(TaskDoubled, fmt.Sprintf("%s is stored %d times", title, n))
		}
	}
	if len(stored) > len(w.filed) {
		w.report(Contradiction, fmt.Sprintf("%d tasks are stored, %d were filed", len(stored), len(w.filed)))
	}
	names, err := r.git(ctx, "ls-tree", "--name-only", "main")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.HasPrefix(name, "done-") && !merged[name] && !late[name] {
			w.report(Contradiction, name+" is on the main branch, and its task is not merged")
		}
		delete(merged, name)
	}
	for _, name := range slices.Sorted(maps.Keys(merged)) {
		w.report(TaskLost, "a task is merged, and the main branch lacks "+name)
	}
	return states, nil
}

// search looks for the secrets in everything stored, and for the marker, which it
// must find: otherwise the search itself is faulty.
func (w *world) search(ctx context.Context, r Record) (bytes int, err error) {
	traces := map[string][][]byte{}
	for name, secret := range w.secrets {
		traces[name] = Traces(secret)
	}
	marker := Traces(w.marker)
	seen := make([]bool, len(marker))
	err = Scan(ctx, w.Data, r.DB, func(where string, text []byte) {
		bytes += len(text)
		for name, t := range traces {
			if i := contains(text, t); i >= 0 {
				w.report(SecretLeaked, fmt.Sprintf("%s is in %s, in spelling %d", name, where, i))
			}
		}
		if where == "table run_events" {
			for i, t := range marker {
				seen[i] = seen[i] || contains(text, [][]byte{t}) >= 0
			}
		}
	})
	if err == nil && (!seen[0] || !seen[1] || !seen[3] || !slices.Contains(seen[5:], true)) {
		err = fmt.Errorf("the search is blind: of what agents printed for it to find, it saw the spellings %v", seen)
	}
	return bytes, err
}
