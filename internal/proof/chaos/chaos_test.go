package chaos

import (
	"bytes"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestSameSeedSamePlan(t *testing.T) {
	const length = 5 * time.Minute
	one, other := plan(7, length, 3, 1, true), plan(7, length, 3, 1, true)
	if !reflect.DeepEqual(one, other) {
		t.Error("two plans of one seed differ")
	}
	if reflect.DeepEqual(one, plan(8, length, 3, 1, true)) {
		t.Error("the plans of two seeds are the same")
	}
	used := map[action]int{}
	for i, s := range one {
		used[s.what]++
		if s.at >= length || i > 0 && s.at < one[i-1].at {
			t.Errorf("step %d is at %s", i, s.at)
		}
		if s.what == boxFrozen && s.length < lease*5/4 {
			t.Errorf("a box is frozen for %s, too short to lose its work", s.length)
		}
	}
	if len(used) != 14 {
		t.Errorf("the plan uses %v", used)
	}
	harmed := map[action]int{}
	for _, s := range plan(7, 30*time.Second, 3, 3, true) {
		harmed[s.what] |= 1 << s.node
	}
	for _, what := range []action{serverKilled, serverFrozen, serverCut, databaseCut, databaseLost} {
		if harmed[what] == 0 || harmed[lineCut] != 0 {
			t.Errorf("half a minute of three nodes has %v", harmed)
		}
	}
	for _, s := range plan(7, length, 3, 1, false) {
		if s.what == databaseLost {
			t.Error("a plan for SQLite loses connections to a database")
		}
	}
}

// stored is a folder with a database and a bare repository whose main branch has the
// given files.
func stored(t *testing.T, files map[string]string, statements ...string) (dir string, r Record) {
	t.Helper()
	dir = t.TempDir()
	work := filepath.Join(t.TempDir(), "work")
	git := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "--quiet", "--initial-branch=main", work)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git("-C", work, "add", "--all")
	git("-C", work, "-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false", "commit", "--quiet",
		"--allow-empty", "--message=Begin")
	bare := filepath.Join(dir, "widgets.git")
	git("clone", "--quiet", "--bare", work, bare)
	d, err := sql.Open("sqlite", filepath.Join(dir, "test.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	for _, s := range statements {
		if _, err := d.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	return dir, Record{DB: d, Repo: bare}
}

func TestScanSeesEverything(t *testing.T) {
	const secret = "s3cret+value/of=20"
	wide := strings.Repeat("x", 20_000) // no value of the row fits into one page
	dir, r := stored(t, map[string]string{"leaked": secret},
		`CREATE TABLE t (a TEXT)`, `INSERT INTO t VALUES ('`+wide+secret+wide+`')`)
	for i, trace := range Traces(secret) {
		name := filepath.Join(dir, "deep", string(rune('a'+i)))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, append([]byte("before "), trace...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	err := Scan(t.Context(), dir, r.DB, func(where string, text []byte) {
		if contains(text, Traces(secret)) >= 0 {
			seen[strings.TrimPrefix(where, dir)] = true
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range Traces(secret) {
		if where := "/deep/" + string(rune('a'+i)); !seen[where] {
			t.Errorf("nothing was seen in %s", where)
		}
	}
	for _, where := range []string{"table t", "objects of " + r.Repo} {
		if !seen[where] {
			t.Errorf("nothing was seen in %s", where)
		}
	}
}

func TestLedgerNoticesWhatIsWrong(t *testing.T) {
	_, r := stored(t, map[string]string{"done-a": "", "done-b": "", "done-g": ""},
		`CREATE TABLE pulls (task_id TEXT, state TEXT)`,
		`INSERT INTO pulls VALUES ('2', 'closed'), ('7', 'merged')`,
		`CREATE TABLE tasks (title TEXT, status TEXT, branch TEXT, id TEXT)`,
		`INSERT INTO tasks VALUES ('kept', 'merged', 'svc/a', '1'), ('stopped', 'cancelled', 'svc/b', '2'),
			('hollow', 'merged', 'svc/c', '3'),
			('twin', 'failed', 'svc/d', '4'), ('twin', 'failed', 'svc/e', '5'), ('idle', 'completed', 'svc/f', '6'),
			('late', 'cancelled', 'svc/g', '7')`)
	var out bytes.Buffer
	w := &world{Options: Options{Out: &out}, found: map[Fault][]string{},
		filed: []string{"kept", "stopped", "hollow", "twin", "gone", "idle", "late"}}
	states, err := w.tasks(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if states["merged"] != 2 || states["failed"] != 2 || states["cancelled"] != 2 {
		t.Errorf("the states: %v", states)
	}
	want := map[Fault][]string{
		TaskLost: {"task 6 is completed without a pull request", "gone was acknowledged and is not stored",
			"a task is merged, and the main branch lacks done-c"},
		TaskDoubled:   {"twin is stored 2 times"},
		Contradiction: {"done-b is on the main branch, and its task is not merged"},
	}
	if !reflect.DeepEqual(w.found, want) {
		t.Errorf("found %v", w.found)
	}
	if err := w.print(ledger{states: states}); !errors.Is(err, ErrFound) {
		t.Errorf("a ledger with violations ends as %v", err)
	}
	if !strings.Contains(out.String(), "done-b is on the main branch") {
		t.Errorf("the ledger does not show them:\n%s", &out)
	}
	clean := &world{Options: Options{Out: &out}, found: map[Fault][]string{}}
	if err := clean.print(ledger{}); err != nil {
		t.Errorf("a clean ledger ends as %v", err)
	}
}
