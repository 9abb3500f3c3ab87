package queue

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
)

// What the policy of a repository says about a task that would conflict with open
// work: the task waits until the work is merged or ends (hold), begins on top of the
// work (stack), or begins as if there were none (ignore).
const (
	ConflictsHold   = "hold"
	ConflictsStack  = "stack"
	ConflictsIgnore = "ignore"
)

// Bounds of the search for conflicts.
const (
	maxOpen      = 50   // open tasks of a repository that a task is compared with
	maxQuestions = 8    // to the code host at a time
	maxHeldBack  = 16   // tasks that one claim holds back
	maxForeseen  = 4096 // answers kept in memory
	maxNamed     = 3    // paths that a hold names
)

// Commits asks the code host. Both methods are called outside of transactions.
type Commits interface {
	// Changes lists the paths that a commit changes since it left the default
	// branch.
	Changes(ctx context.Context, repoID, sha string) (paths []string, err error)
	// Conflicts tries a merge of two commits and lists the paths in conflict.
	// Two that have nothing in common conflict nowhere.
	Conflicts(ctx context.Context, repoID, a, b string) (paths []string, err error)
}

// question is about what one commit changes (b is empty), or about the conflicts of
// two. The answer stays true, because commits do not change.
type question struct{ repoID, a, b string }

// foreseen keeps answers to questions.
type foreseen struct {
	mu      sync.Mutex
	answers map[question][]string
}

func (f *foreseen) get(q question) ([]string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	paths, ok := f.answers[q]
	return paths, ok
}

func (f *foreseen) put(q question, paths []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.answers == nil || len(f.answers) >= maxForeseen {
		f.answers = map[question][]string{}
	}
	f.answers[q] = paths
}

// Ask puts the questions of an Outlook to the code host. A question that the code host
// cannot answer is logged and holds back no task. The only error is that of ctx.
func (s *Service) Ask(ctx context.Context, o Outlook) error {
	for _, q := range o.questions {
		if _, known := s.foreseen.get(q); known {
			continue
		}
		var paths []string
		var err error
		if q.b == "" {
			paths, err = s.Commits.Changes(ctx, q.repoID, q.a)
		} else {
			paths, err = s.Commits.Conflicts(ctx, q.repoID, q.a, q.b)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			slog.WarnContext(ctx, "a conflict could not be foreseen", "repo", q.repoID, "commits", []string{q.a, q.b}, "error", err)
		}
		s.foreseen.put(q, paths)
	}
	return nil
}

// forecast is what a task that is about to start would conflict with.
type forecast struct {
	with  *task.Row // open work that it would conflict with
	paths []string  // in conflict
	tip   string    // of that work, if the task is to begin on it
	ask   []question
}

// forecast compares the task with the open work of its repository. It uses rows and
// answers that are known, and returns the questions whose answers are not.
func (s *Service) forecast(tx *db.Tx, f *facts, t *task.Row) (out forecast, err error) {
	mode := f.Conflicts[t.RepoID]
	if mode == "" || mode == ConflictsIgnore || !commits(t.Kind) {
		return out, nil
	}
	mine := slices.Concat(t.Files.V, t.WIPPaths.V)
	if len(mine) == 0 {
		return out, nil
	}
	open, err := task.Open(tx, t.RepoID, maxOpen)
	if err != nil {
		return out, err
	}
	want := compile(mine)
	var found []forecast
	for i := range open {
		b := &open[i]
		if b.ID == t.ID || !commits(b.Kind) || t.StackedOn != nil && *t.StackedOn == b.ID {
			continue
		}
		tip, theirs, ask, err := s.work(tx, b)
		if err != nil {
			return out, err
		}
		if ask != nil {
			out.ask = append(out.ask, *ask)
			continue
		}
		both := want.overlap(theirs)
		if len(both) > 0 && t.WIPSHA != nil && tip != "" {
			q := question{t.RepoID, *t.WIPSHA, tip}
			conflicts, known := s.foreseen.get(q)
			if !known {
				out.ask = append(out.ask, q)
				continue
			}
			both = conflicts
		}
		if len(both) > 0 {
			found = append(found, forecast{with: b, paths: both, tip: tip})
		}
	}
	if out.ask = out.ask[:min(len(out.ask), maxQuestions)]; len(out.ask) > 0 || len(found) == 0 {
		return out, nil
	}
	out = found[0]
	if mode != ConflictsStack || len(found) > 1 || t.WIPSHA != nil {
		out.tip = "" // a task begins on one work at most, and only once
	}
	return out, nil
}

// work returns the newest commit of an open task and the paths that the commit
// changes; without a commit, the paths that the task is expected to change.
func (s *Service) work(tx *db.Tx, b *task.Row) (tip string, paths []string, ask *question, err error) {
	if b.PRID != nil {
		if tip, err = s.Related.PullHead(tx, *b.PRID); err != nil {
			return "", nil, nil, err
		}
	}
	switch {
	case tip != "" && (b.WIPSHA == nil || *b.WIPSHA != tip):
		q := question{repoID: b.RepoID, a: tip}
		changed, known := s.foreseen.get(q)
		if !known {
			ask = &q
		}
		paths = changed
	case b.WIPSHA != nil:
		tip, paths = *b.WIPSHA, slices.Concat(b.WIPPaths.V, b.Files.V)
	default:
		paths = b.Files.V
	}
	return tip, paths, ask, nil
}

// commits tells whether tasks of a kind end in commits.
func commits(kind string) bool {
	return kind != task.KindCI && kind != task.KindScout && kind != task.KindReview && kind != task.KindKB
}
