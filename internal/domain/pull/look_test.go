package pull

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/proof/seed"
)

const (
	strictAuto = "version: 1\nagent: {isolation: bubblewrap}\nchecks: {command: make check}\nmerge: {mode: auto}\n"
	laxAuto    = "version: 1\nagent: {isolation: none}\nchecks: {command: \"true\"}\nmerge: {mode: auto}\ninstructions: Push to main.\n"
)

// rules puts a policy file on main, where it is in force.
func (y *yard) rules(yml string) {
	y.t.Helper()
	y.branch("main", func() { y.file(".svc/policy.yml", yml) })
	y.policy(yml)
}

func (y *yard) floors(json string) {
	y.t.Helper()
	y.write(func(tx *db.Tx) error { _, err := seed.PutFloors.Exec(tx, "acme", json); return err })
}

func (y *yard) file(path, text string) {
	y.t.Helper()
	path = filepath.Join(y.work, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		y.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) link(target, path string) {
	y.t.Helper()
	if err := os.Symlink(target, filepath.Join(y.work, path)); err != nil {
		y.t.Fatal(err)
	}
}

// branch changes a branch, which begins at main, and pushes it.
func (y *yard) branch(name string, change func()) (sha string) {
	y.t.Helper()
	if y.git("branch", "--list", name) == "" {
		y.git("branch", name, "main")
	}
	y.git("checkout", "--quiet", name)
	defer y.git("checkout", "--quiet", "main")
	change()
	y.git("add", "--all")
	y.git("commit", "--quiet", "--allow-empty", "--message", "Change it")
	y.push(name)
	return y.git("rev-parse", "HEAD")
}

// green proposes a head and passes its check.
func (y *yard) green(branch, sha string) (prID string) {
	y.t.Helper()
	n := len(y.check)
	prID = y.propose(branch, sha)
	if len(y.check) > n {
		y.checked(y.check[n], &zero)
	}
	y.pass(0)
	return prID
}

// wantQuestion holds that the question about a head names the weaker fields.
func (y *yard) wantQuestion(prID, sha string, paths, weaker string) *record.Protected {
	y.t.Helper()
	pr := y.pr(prID)
	if pr.State != record.Open || pr.PendingAction == nil || pr.PendingAction.State != record.ActionPending ||
		pr.PendingAction.HeadSHA != sha ||
		pr.PendingAction.Protected == nil {
		y.t.Fatalf("the pull request waits for nobody: %+v, %+v", pr, pr.PendingAction)
	}
	p := pr.PendingAction.Protected
	var fields []string
	for _, w := range p.Weaker {
		fields = append(fields, w.Field)
		if !strings.Contains(pr.PendingAction.Question, w.Field+" from "+w.Was+" to "+w.Would) {
			y.t.Errorf("the question %q does not name %s", pr.PendingAction.Question, w.Field)
		}
	}
	if got := strings.Join(p.Paths, " "); got != paths || strings.Join(fields, " ") != weaker {
		y.t.Errorf("asked about %q and %q, want %q and %q", got, fields, paths, weaker)
	}
	return p
}

// A person is asked about a change of the policy file, although the policy in force lets
// the rest be merged unasked.
func TestWeakerRulesAreAskedAbout(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.rules(strictAuto)
		sha := y.branch("svc/a", func() { y.file(".svc/policy.yml", laxAuto); y.file("work", "1") })
		pr := y.green("svc/a", sha)
		y.wantQuestion(pr, sha, ".svc/policy.yml", "agent.isolation checks.command instructions")
		y.wantActions(pr, "stale pending")
		y.wantTold("task-svc/a", "awaits review")

		// Another push is another question.
		second := y.branch("svc/a", func() { y.file(".svc/policy.yml", strings.Replace(strictAuto, "bubblewrap", "landlock", 1)) })
		y.moved("svc/a", second)
		y.refused("head_moved", pr, "approve", sha)
		y.checked(y.check[1], &zero)
		y.pass(0)
		y.wantQuestion(pr, second, ".svc/policy.yml", "agent.isolation")
		y.approve(pr, second)
		y.pass(0)
		if got := y.pr(pr); got.State != record.Merged || *got.MergedBy != "user:ada" {
			t.Errorf("after a person approved: %+v", got)
		}

		// Work that does not change the policy file is merged unasked.
		sha = y.branch("svc/b", func() { y.file("other", "1") })
		pr = y.green("svc/b", sha)
		if got := y.pr(pr); got.State != record.Merged || *got.MergedBy != record.ByPolicy {
			t.Errorf("ordinary work: %+v", got)
		}
	})
}

// What a lent box has had a hand in is merged by nobody but a person, although the policy lets
// the rest be merged unasked.
func TestWorkOfLentBoxesIsAskedAbout(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.rules(strictAuto)
		y.lent = true
		sha := y.branch("svc/a", func() { y.file("work", "1") })
		pr := y.green("svc/a", sha)
		y.pass(0)
		y.wantActions(pr, "pending")
		y.approve(pr, sha)
		y.pass(0)
		if got := y.pr(pr); got.State != record.Merged || *got.MergedBy != "user:ada" {
			t.Errorf("after a person approved: %+v", got)
		}
	})
}

// A branch may change the policy in force without a change of the file itself.
func TestWaysAroundTheRules(t *testing.T) {
	t.Parallel()
	y := open(t, db.SQLite)
	y.floors(`{"protected_paths": ["deploy/", "**/Dockerfile"]}`)
	y.rules(strictAuto)
	for name, c := range map[string]struct {
		change        func()
		paths, weaker string
		problem       string
	}{
		"removed": {func() { y.git("rm", "-q", ".svc/policy.yml") }, ".svc/policy.yml", "agent.isolation checks.command", ""},
		"moved":   {func() { y.git("mv", ".svc", "svc") }, ".svc/policy.yml", "agent.isolation checks.command", ""},
		"a link in its place": {func() {
			y.git("mv", ".svc", "rules")
			y.link("rules", ".svc")
		}, ".svc .svc/policy.yml", "agent.isolation checks.command", ""},
		"the file as a link": {func() {
			y.git("rm", "-q", ".svc/policy.yml")
			y.file(".svc/keep", "")
			y.link("../README", ".svc/policy.yml")
		}, ".svc/keep .svc/policy.yml", "agent.isolation checks.command", "line 1: a text `../README` cannot stand here"},
		"a repository in its place": {func() {
			y.git("rm", "-q", "-r", ".svc")
			y.git("update-index", "--add", "--cacheinfo", "160000,"+y.git("rev-parse", "main")+",.svc")
			y.git("commit", "--quiet", "--message", "A repository")
			if err := os.MkdirAll(filepath.Join(y.work, ".svc"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, ".svc .svc/policy.yml", "agent.isolation checks.command", ""},
		"letters of another case": {func() { y.file(".SVC/policy.yml", laxAuto) }, ".SVC/policy.yml", "", ""},
		"letters that look alike": {func() { y.file(".\u017fvc/x", "") }, ".\u017fvc/x", "", ""},
		"bytes":                   {func() { y.file(".svc/\xff\n", "") }, `".svc/\xff\n"`, "", ""},
		"a file beside it":        {func() { y.file(".svc/more.yml", "x") }, ".svc/more.yml", "", ""},
		"a mode": {func() { y.git("update-index", "--chmod=+x", ".svc/policy.yml"); y.chmod(".svc/policy.yml") },
			".svc/policy.yml", "", ""},
		"not valid": {func() { y.file(".svc/policy.yml", "version: [1\n") }, ".svc/policy.yml",
			"agent.isolation checks.command", "line 1: "},
		"too large": {func() { y.file(".svc/policy.yml", "#"+strings.Repeat("x", 2<<20)) }, ".svc/policy.yml",
			"agent.isolation checks.command", "larger than"},
		"stricter": {func() { y.file(".svc/policy.yml", strictAuto+"conflicts: hold\nbudget: {run_usd: 1}\n") },
			".svc/policy.yml", "", ""},
		"a path of the account":    {func() { y.file("Deploy/x", "") }, "Deploy/x", "", ""},
		"a name of the account":    {func() { y.file("a/dockerfile", "") }, "a/dockerfile", "", ""},
		"a link in a folder's way": {func() { y.link("..", "deploy") }, "deploy", "", ""},
	} {
		branch := "svc/" + strings.ReplaceAll(name, " ", "-")
		sha := y.branch(branch, c.change)
		pr := y.green(branch, sha)
		t.Log(name)
		p := y.wantQuestion(pr, sha, c.paths, c.weaker)
		switch {
		case c.problem == "" && p.Problem != nil:
			t.Errorf("%s: would not be valid: %s", name, *p.Problem)
		case c.problem != "" && (p.Problem == nil || !strings.Contains(*p.Problem, c.problem)):
			t.Errorf("%s: the problem is %v, want %q", name, p.Problem, c.problem)
		}
	}
}

func (y *yard) chmod(path string) {
	y.t.Helper()
	if err := os.Chmod(filepath.Join(y.work, path), 0o755); err != nil {
		y.t.Fatal(err)
	}
}

// In every mode a person is asked about protected changes, and only about those. Each question
// that is asked before the trial of its merge is told of it.
func TestModesAskAboutTheRules(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"ask", "never", "auto"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, y *yard) {
				y.rules("version: 1\nmerge: {mode: " + mode + "}\n")
				tried := ""
				record.MergeTried.On(y.DB, func(_ *db.Tx, actionID string) error { tried = actionID; return nil })
				sha := y.branch("svc/a", func() { y.file(".svc/x", "1") })
				prID := y.green("svc/a", sha)
				y.wantQuestion(prID, sha, ".svc/x", "")
				if a := y.pr(prID).PendingAction; mode != "auto" && tried != a.ID {
					t.Errorf("the merge of %q was tried, and its question is %q", tried, a.ID)
				}
				sha = y.branch("svc/b", func() { y.file("x", "1") })
				pr := y.pr(y.green("svc/b", sha))
				if a := pr.PendingAction; a != nil && tried != a.ID {
					t.Errorf("the merge of %q was tried, and its question is %q", tried, a.ID)
				}
				switch a := pr.PendingAction; {
				case mode == "auto" && pr.State != record.Merged, mode == "never" && a != nil:
					t.Errorf("%+v, %+v", pr, a)
				case mode == "ask" && (a == nil || a.Protected != nil || a.Question != "Merge this head?"):
					t.Errorf("%+v, %+v", pr, a)
				}
			})
		})
	}
}

// An approval covers the changes that the question named. If the base has moved, so that
// the merge would change more, a person is asked again.
func TestApprovalCoversWhatWasSaid(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.rules("version: 1\n")
		sha := y.branch("svc/a", func() { y.file(".svc/policy.yml", "version: 1\nmerge: {mode: auto}\n") })
		pr := y.green("svc/a", sha)
		y.wantQuestion(pr, sha, ".svc/policy.yml", "merge.mode")
		y.approve(pr, sha)
		// Meanwhile a push made the policy on main stricter, elsewhere in the file.
		y.rules("version: 1\nmerge: {mode: never}\n")
		y.pass(0)
		if got := y.pr(pr); got.State == record.Merged {
			t.Fatalf("merged: %+v", got)
		}
		y.wantQuestion(pr, sha, ".svc/policy.yml", "merge.mode")
		y.wantActions(pr, "stale stale pending") // before the trial of the merge, approved, the present one

		// An approval before the trial of the merge does not cover protected changes.
		y.rules("version: 1\n")
		sha = y.branch("svc/b", func() { y.file(".svc/other", "1") })
		pr = y.propose("svc/b", sha)
		y.approve(pr, sha)
		y.pass(0)
		y.wantQuestion(pr, sha, ".svc/other", "")
		y.approve(pr, sha)
		y.pass(0)
		if got := y.pr(pr); got.State != record.Merged {
			t.Errorf("approved twice: %+v", got)
		}
	})
}

// The base moves between the trial and the merge, so that the merge would change the
// policy file, which the trial did not.
func TestBaseMovesBehindTheLook(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.rules("version: 1\nmerge: {mode: auto}\n")
		// The branch has undone the stricter policy that another branch brings.
		strict := y.branch("tight", func() {
			y.file(".svc/policy.yml",
				"version: 1\nmerge: {mode: auto}\nagent: {isolation: bubblewrap}\n")
		})
		y.git("checkout", "--quiet", "-b", "svc/a", "tight")
		y.git("checkout", "--quiet", "main")
		sha := y.branch("svc/a", func() { y.file(".svc/policy.yml", "version: 1\nmerge: {mode: auto}\n"); y.file("work", "1") })
		y.host.during = func() {
			y.host.during = nil
			if _, err := y.host.Host.Merge(context.Background(), webRepo, codehost.MergeOptions{
				Base: "main", Head: "tight", HeadSHA: strict, Method: codehost.MethodMerge, Title: "Tighten", Author: y.Bot,
				Committer: y.Bot}); err != nil {
				t.Error(err)
			}
		}
		pr := y.green("svc/a", sha)
		y.wantQuestion(pr, sha, ".svc/policy.yml", "agent.isolation")
	})
}

// The floors of the account are read again right before a merge.
func TestFloorsTakeAnOrderBack(t *testing.T) {
	t.Parallel()
	// The order is taken back; with mode ask a question replaces it.
	for floor, want := range map[string]string{"ask": "stale pending", "never": "stale"} {
		onBoth(t, func(t *testing.T, y *yard) {
			y.rules("version: 1\nmerge: {mode: auto}\n")
			sha := y.branch("svc/a", func() { y.file("x", "1") })
			pr := y.propose("svc/a", sha)
			y.wantActions(pr, "approved")
			y.floors(`{"merge_mode": "` + floor + `"}`)
			y.pass(0)
			y.wantActions(pr, want)
			if got := y.pr(pr); got.State != record.Open || got.MergeSHA != nil {
				t.Errorf("%s: merged: %+v", floor, got)
			}
			second := y.propose("svc/b", y.branch("svc/b", func() { y.file("y", "1") }))
			y.write(func(tx *db.Tx) error {
				states, err := actions.All(tx, second)
				if slices.Contains(states, record.ActionApproved) {
					t.Errorf("%s: the file ordered %v", floor, states)
				}
				return err
			})
		})
	}
}
