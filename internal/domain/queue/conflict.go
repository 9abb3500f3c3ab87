package queue

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
)

// What the policy of a repository says about a task that would conflict with
// open work: it waits until that is merged or ends, it begins on top of it, or
// it goes ahead all the same.
const (
	ConflictsHold   = "hold"
	ConflictsStack  = "stack"
	ConflictsIgnore = "ignore"
)

// Bounds of what one look ahead may cost.
const (
	maxOpen      = 50   // open works of a repository that a task is held against
	maxQuestions = 8    // put to the code host at a time
	maxHeldBack  = 16   // tasks that one claim holds back
	maxForeseen  = 4096 // answers kept in memory
	maxNamed     = 3    // paths that a hold names
)

// Foresight asks the code host. Both are called outside of transactions.
type Foresight interface {
	// Changes lists the paths that a commit changes since it left the default
	// branch.
	Changes(ctx context.Context, repoID, sha string) (paths []string, err error)
	// Conflicts tries a merge of two commits and lists the paths in conflict.
	// Two that have nothing in common conflict nowhere.
	Conflicts(ctx context.Context, repoID, a, b string) (paths []string, err error)
}

// A question about one commit (B is empty), or about two. The commits decide
// the answer, with the one they have in common, so that it stays true.
type question struct{ repoID, a, b string }

// foreseen keeps the answers.
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

// Ask puts the questions of an Outlook to the code host. One that it cannot
// answer keeps no task back.
func (s *Service) Ask(ctx context.Context, o Outlook) error {
	for _, q := range o.questions {
		if _, known := s.foreseen.get(q); known {
			continue
		}
		var paths []string
		var err error
		if q.b == "" {
			paths, err = s.Foresight.Changes(ctx, q.repoID, q.a)
		} else {
			paths, err = s.Foresight.Conflicts(ctx, q.repoID, q.a, q.b)
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

// A forecast is what a task that is about to start would run into.
type forecast struct {
	with  *task.Row // open work that it would conflict with
	paths []string  // where
	tip   string    // of that work, if it is to begin there
	ask   []question
}

// forecast looks at the open work of the task's repository. It reads rows and
// answers that are known; what is not known is asked for.
func (s *Service) forecast(tx *db.Tx, f *facts, t *task.Row) (out forecast, err error) {
	mode := f.Conflicts[t.RepoID]
	if mode == "" || mode == ConflictsIgnore || !hands(t.Kind) {
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
		if b.ID == t.ID || !hands(b.Kind) || t.StackedOn != nil && *t.StackedOn == b.ID {
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
		out.tip = "" // it cannot begin on two at once, nor has one that began elsewhere
	}
	return out, nil
}

// work is the newest commit of an open task and the paths it changes, or is
// expected to while there is none.
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

// hands tells whether tasks of a kind hand in commits.
func hands(kind string) bool {
	return kind != task.KindCI && kind != task.KindScout && kind != task.KindReview && kind != task.KindKB
}
