package ci

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/proof/seed"
)

// checked gives the repository a check, and the account pull requests.
func (b *bench) checked(prs ...string) {
	b.t.Helper()
	b.write(func(tx *db.Tx) error {
		for n, prID := range prs {
			if err := seed.Add(tx, seed.Pull{ID: prID, Account: "acme", Repo: b.repo.ID, Number: n + 1, Head: commit(n + 1)}); err != nil {
				return err
			}
		}
		return nil
	})
	b.repo.Policy.Checks.Command = "make"
}

// queue queues the check of a head, and answers its task.
func (b *bench) queue(prID, sha string) string {
	b.t.Helper()
	b.write(func(tx *db.Tx) error { return b.nodes[0].Queue(tx, b.repo, prID, sha) })
	return b.tasks.queued[len(b.tasks.queued)-1]
}

func (b *bench) moved(task string, running bool) {
	b.t.Helper()
	b.write(func(tx *db.Tx) error { return b.nodes[0].Moved(tx, task, running) })
}

func (b *bench) finish(o Outcome) {
	b.t.Helper()
	b.write(func(tx *db.Tx) error { return b.nodes[0].Finish(tx, o) })
}

// told compares the states that the host was told.
func (b *bench) told(want ...string) {
	b.t.Helper()
	var got []string
	for _, c := range b.own {
		if c.Name != CheckName {
			b.t.Errorf("%+v", c)
		}
		got = append(got, c.State)
	}
	if !slices.Equal(got, want) {
		b.t.Errorf("the host was told %q, want %q", got, want)
	}
}

// later is pass at the other node.
func (b *bench) later(d time.Duration) {
	b.clock.Add(d.Microseconds())
	duetest.Pass(b.t.Context(), b.t, b.kernels[1])
	duetest.Pass(b.t.Context(), b.t, b.intents.Due)
}

// The host is told each state of a check, and at the end how it ended.
func TestReport(t *testing.T) {
	t.Parallel()
	judging(t, func(t *testing.T, b *bench) {
		b.checked("pr")
		task := b.queue("pr", commit(1))
		b.pass(0)
		b.moved(task, true)
		b.pass(0)
		b.told("queued", "running")
		b.finish(Outcome{TaskID: task, RunID: "r", ExitCode: &two, Output: strings.Repeat("x", reportBytes) + "```\nno rule"})
		b.pass(0)
		b.told("queued", "running", "failure")
		last := b.own[2]
		if last.SHA != commit(1) || last.Title != "Failed with exit code 2" || last.DetailsURL != "https://yard.example/pr" ||
			!strings.HasSuffix(last.Summary, "````\n") && !strings.HasSuffix(last.Summary, "no rule\n````") || len(last.Summary) > 65535 {
			t.Errorf("%.200q … %q, %s", last.Title, last.Summary[len(last.Summary)-40:], last.DetailsURL)
		}
		b.later(reportEvery)
		b.later(reportEvery)
		b.told("queued", "running", "failure")

		// A person has it run again.
		task = b.queue("pr", commit(1))
		b.pass(0)
		b.finish(Outcome{TaskID: task, RunID: "r", ExitCode: &zero})
		b.pass(0)
		b.told("queued", "running", "failure", "queued", "success")
	})
}

// While the host does not answer, only the newest state waits.
func TestReportNewestOnly(t *testing.T) {
	t.Parallel()
	judging(t, func(_ *testing.T, b *bench) {
		b.checked("pr")
		b.silent = &codehost.BusyError{After: time.Minute, Limit: true}
		task := b.queue("pr", commit(1))
		b.pass(0)
		b.moved(task, true)
		b.pass(0)
		b.finish(Outcome{TaskID: task, RunID: "r", ExitCode: &zero})
		b.pass(0)
		b.silent = nil
		for range 3 {
			b.pass(2 * time.Minute)
		}
		b.told("success")
	})
}

// A check that no box brings to its end is ended at the host: its task failed or was
// cancelled, or its repository was switched off.
func TestLostIsEndedAtTheHost(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*testing.T, *bench, string){
		"failed":    func(_ *testing.T, b *bench, task string) { b.task(task, "failed") },
		"cancelled": func(_ *testing.T, b *bench, task string) { b.task(task, "cancelled") },
		"switched off": func(_ *testing.T, b *bench, task string) {
			b.task(task, "running")
			b.write(func(tx *db.Tx) error { _, err := seed.SetEnabled.Exec(tx, b.repo.ID, false); return err })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			judging(t, func(t *testing.T, b *bench) {
				b.checked("pr")
				task := b.queue("pr", commit(1))
				b.pass(0)
				lose(t, b, task)
				b.nodes[0].Pass(t.Context())
				b.later(reportEvery)
				b.later(reportEvery)
				b.told("queued", "cancelled")
			})
		})
	}
}

// task stores the task of a check.
func (b *bench) task(taskID, status string) {
	b.t.Helper()
	b.write(func(tx *db.Tx) error {
		return seed.Add(tx, seed.Task{ID: taskID, Account: "acme", Repo: b.repo.ID, Status: status, Branch: new("")})
	})
}

// A node that dies between the end of a check and the answer of the host leaves the rest
// to another one; so does a host that was silent for too long.
func TestReportOutlivesItsIntent(t *testing.T) {
	t.Parallel()
	judging(t, func(t *testing.T, b *bench) {
		b.checked("pr")
		task := b.queue("pr", commit(1))
		b.pass(0)
		b.finish(Outcome{TaskID: task, RunID: "r", ExitCode: &zero})
		b.write(func(tx *db.Tx) error { return intent.Drop(tx, b.repo.ID, "pr/check") })
		b.pass(0)
		b.told("queued")
		b.later(reportEvery)
		b.told("queued", "success")

		b.silent = errors.New("no permission")
		task = b.queue("pr", commit(1))
		b.pass(0)
		b.finish(Outcome{TaskID: task, RunID: "r", ExitCode: &two})
		b.pass(0)
		b.silent = nil
		b.later(reportEvery)
		b.told("queued", "success") // it refused: the intent has told people
	})
}

// The check runs on groups of the merge queue, too, once for each; a group that is given
// up needs it no more.
func TestGroupIsChecked(t *testing.T) {
	t.Parallel()
	judging(t, func(t *testing.T, b *bench) {
		b.checked()
		ctx := db.WithAccount(t.Context(), "acme")
		for range 2 {
			if err := b.nodes[0].Grouped(ctx, b.repo, "main", commit(1)); err != nil {
				t.Fatal(err)
			}
		}
		b.pass(0)
		b.told("queued")
		if err := b.nodes[0].Ungrouped(ctx, b.repo, commit(1)); err != nil || len(b.tasks.stopped) != 1 {
			t.Errorf("%v, %q", err, b.tasks.stopped)
		}
		task := b.tasks.queued[0]
		b.finish(Outcome{TaskID: task, Cancelled: true})
		b.pass(0)
		b.told("queued", "cancelled")
		b.write(func(tx *db.Tx) error { return b.nodes[0].GroupAgain(tx, b.repo, commit(1)) })
		b.write(func(tx *db.Tx) error { return b.nodes[0].GroupAgain(tx, b.repo, commit(1)) }) // it waits already
		b.write(func(tx *db.Tx) error { return b.nodes[0].GroupAgain(tx, b.repo, commit(2)) }) // no group
		b.finish(Outcome{TaskID: b.tasks.queued[len(b.tasks.queued)-1], RunID: "r", ExitCode: &zero})
		b.pass(0)
		b.told("queued", "cancelled", "success")
		if len(b.tasks.queued) != 2 || b.own[0].DetailsURL != "" {
			t.Errorf("%d checks, %+v", len(b.tasks.queued), b.own[0])
		}
		if err := b.nodes[0].Ungrouped(ctx, b.repo, commit(1)); err != nil || len(b.tasks.stopped) != 1 {
			t.Errorf("a check that has ended was stopped: %v, %q", err, b.tasks.stopped)
		}
	})
}

// A check of ours does not hold up the head that it is of; a rule that asks for it is met
// by it.
func TestOwnCheckIsNoHostCheck(t *testing.T) {
	t.Parallel()
	judging(t, func(_ *testing.T, b *bench) {
		b.rules.Required = []codehost.RequiredCheck{{Name: CheckName, Source: "7"}}
		b.head(commit(1))
		b.pass(time.Minute)
		b.wants(commit(1), HostPending, "") // it has not begun there
		b.sets[commit(1)] = []codehost.HostCheck{{ID: "1", Name: CheckName, Source: "7", Own: true, State: codehost.CheckPending}}
		b.pass(lookAgain)
		b.wants(commit(1), HostNone, "")
		b.head(commit(2))
		b.sets[commit(2)] = []codehost.HostCheck{{
			ID: "2", Name: CheckName, Source: "7", Own: true, State: codehost.CheckFailed, Job: "2",
		}}
		b.pass(time.Minute)
		b.wants(commit(2), HostNone, "")
		if _, ok := b.failure(commit(2)); ok {
			b.t.Error("our own check would be repaired as one of the host")
		}
		b.asked(0)
	})
}
