package ci

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
)

// Results of the checks that a host has of a commit.
const (
	HostNone    = "none"
	HostPending = "pending"
	HostPassed  = "passed"
	HostFailed  = "failed"
)

// Times of the checks at hosts. A head without any check, of a branch that demands
// none, has passed after settle: programs begin their checks some seconds after a
// push. A head whose checks have not ended is read again after lookAgain, in case its
// deliveries were lost.
const (
	settle      = 30 * time.Second
	lookAgain   = 2 * time.Minute
	lookHold    = time.Minute // for which a node has a head to read
	lastBytes   = 64 << 10    // of the log of a failed check that are kept
	headsAtOnce = 20
)

// HostEnd is what a host's checks say of a commit.
type HostEnd struct {
	RepoID, SHA, Result, Why string
}

// HostChecked is sent when the result of the checks that a host has of a commit is
// another one.
var HostChecked = event.DeclareSignal[HostEnd]("ci.host_checked", "The checks of a commit at its host have another result.")

// Follow has the checks read that the host of a repository has of a head, from now on.
func (s *Service) Follow(tx *db.Tx, r repo.Ref, sha string) error {
	_, err := follow.Exec(tx, followArgs{
		RepoID: r.ID, SHA: sha, AccountID: tx.Account, BaseRef: r.DefaultBranch, SettleAt: tx.Now.Add(settle), Now: tx.Micros(),
	})
	s.Hub.Notify(tx, event.PullTopic)
	return err
}

// HostChanged has the checks of a commit read again, if they are followed: the host
// says that they have changed.
func (s *Service) HostChanged(ctx context.Context, r repo.Ref, sha string) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		n, err := want.Exec(tx, r.ID, sha, tx.Micros())
		if n > 0 {
			s.Hub.Notify(tx, event.PullTopic)
		}
		return err
	})
}

// HostFailure is what a host says of the failed checks of a commit.
type HostFailure struct {
	Names []string
	Log   string
}

// AtHost answers what the host says of the failed checks of a commit; false if none has
// failed.
func AtHost(tx *db.Tx, repoID, sha string) (HostFailure, bool, error) {
	rows, err := checksOf.All(tx, repoID, sha)
	var f HostFailure
	for _, c := range rows {
		if c.State != codehost.CheckFailed || c.Own {
			continue
		}
		f.Names = append(f.Names, c.Name)
		if f.Log == "" && c.Log != nil {
			f.Log = *c.Log
		}
	}
	return f, len(f.Names) > 0, err
}

// readHeads reads the checks of the heads that are due.
func (s *Service) readHeads(ctx context.Context) {
	for ctx.Err() == nil {
		var due []headRow
		some := false
		err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
			some, err = anyHeadDue.One(tx, tx.Micros())
			return err
		})
		if err == nil && some {
			err = s.DB.Write(ctx, func(tx *db.Tx) (err error) {
				due, err = takeHeads.All(tx, tx.Micros(), db.Micros(tx.Now.Add(lookHold)), headsAtOnce)
				return err
			})
		}
		if err != nil {
			s.complain(ctx, "take the heads that are due", err)
		}
		if err != nil || len(due) == 0 {
			return
		}
		for _, h := range due {
			if err := s.readHead(db.WithAccount(ctx, h.AccountID), h); err != nil {
				s.complain(ctx, "read the checks of a head", err, slog.String("sha", h.SHA))
			}
		}
	}
}

// readHead reads the checks of one head, and records their result.
func (s *Service) readHead(ctx context.Context, h headRow) error {
	var r repo.Ref
	reachable := false
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		r, reachable, err = repo.Reachable(tx, h.RepoID)
		return err
	})
	if err != nil {
		return err
	}
	if !reachable {
		return s.leave(ctx, h)
	}
	forge, err := s.Hosts.Forge(r.HostRepo())
	if err != nil {
		return err
	}
	rules, _, err := forge.BranchRules(ctx, r.HostRepo(), h.BaseRef, "")
	if err != nil {
		return err
	}
	set, tag, err := forge.ChecksOf(ctx, r.HostRepo(), h.SHA, codehost.Tag(h.Tag))
	same := errors.Is(err, codehost.ErrNotModified)
	if errors.Is(err, codehost.ErrNotFound) {
		return s.leave(ctx, h) // the commit is gone
	}
	if err != nil && !same {
		return err
	}
	logs, err := s.logs(ctx, forge, r, h, set)
	if err != nil {
		return err
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		if !same {
			if err := store(tx, h, set, rules, logs); err != nil {
				return err
			}
		} else {
			tag = codehost.Tag(h.Tag)
		}
		checks, err := checksOf.All(tx, h.RepoID, h.SHA)
		if err != nil {
			return err
		}
		result, why := verdict(checks, rules, tx.Now.Before(h.SettleAt))
		var next *int64
		if result == HostPending {
			at := db.Micros(tx.Now.Add(lookAgain))
			if len(checks) == 0 && tx.Now.Before(h.SettleAt) {
				at = db.Micros(h.SettleAt)
			}
			next = &at
		}
		if _, err := setHead.Exec(tx, setHeadArgs{
			RepoID: h.RepoID, SHA: h.SHA, Tag: string(tag), Result: result, Why: why, DueAt: next, Have: h.Want, Now: tx.Micros(),
		}); err != nil || result == HostPending && h.Result == HostPending {
			return err
		}
		return HostChecked.Send(tx, HostEnd{RepoID: h.RepoID, SHA: h.SHA, Result: result, Why: why})
	})
}

// leave follows a head no more.
func (s *Service) leave(ctx context.Context, h headRow) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		_, err := setHead.Exec(tx, setHeadArgs{
			RepoID: h.RepoID, SHA: h.SHA, Tag: h.Tag, Result: h.Result, Why: h.Why, Have: h.Want, Now: tx.Micros(),
		})
		return err
	})
}

// logs reads the ends of the logs of checks that have failed since the last look, by
// the name and source of the check.
func (s *Service) logs(ctx context.Context, forge codehost.Forge, r repo.Ref, h headRow, set codehost.CheckSet,
) (map[string]string, error) {
	out := map[string]string{}
	var known []checkRow
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		known, err = checksOf.All(tx, h.RepoID, h.SHA)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, c := range set.Checks {
		if c.State != codehost.CheckFailed || c.Own || c.Job == "" {
			continue
		}
		if i := slices.IndexFunc(known, func(k checkRow) bool { return k.HostID == c.ID && k.Log != nil }); i >= 0 {
			out[c.Source+"/"+c.Name] = *known[i].Log
			continue
		}
		text, err := readLog(ctx, forge, r, c.Job)
		if errors.Is(err, codehost.ErrNoLog) || errors.Is(err, codehost.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out[c.Source+"/"+c.Name] = text
	}
	return out, nil
}

func readLog(ctx context.Context, forge codehost.Forge, r repo.Ref, job string) (string, error) {
	log, err := forge.CheckLog(ctx, r.HostRepo(), job, lastBytes)
	if err != nil {
		return "", err
	}
	defer log.Close()
	b, err := io.ReadAll(io.LimitReader(log, 4*lastBytes))
	text := strings.ToValidUTF8(strings.ReplaceAll(string(b[max(0, len(b)-lastBytes):]), "\x00", ""), "")
	return text, err
}

// verdict is the result of the checks of a commit together. The checks of ours do not
// count: what they say is known here. early says that checks may yet begin.
func verdict(checks []checkRow, rules codehost.BranchRules, early bool) (result, why string) {
	var failed, pending []string
	counted := 0
	for _, c := range checks {
		if c.Own {
			continue
		}
		counted++
		switch {
		case c.State == codehost.CheckFailed && (c.Required || len(rules.Required) == 0):
			failed = append(failed, c.Name)
		case c.State == codehost.CheckPending && (c.Required || len(rules.Required) == 0):
			pending = append(pending, c.Name)
		}
	}
	for _, must := range rules.Required {
		if !slices.ContainsFunc(checks, func(c checkRow) bool { return meets(must, c.Name, c.Source) }) {
			pending = append(pending, must.Name)
		}
	}
	switch {
	case len(failed) > 0:
		return HostFailed, "these checks failed: " + strings.Join(failed, ", ")
	case len(pending) > 0:
		return HostPending, "these checks have not ended: " + strings.Join(pending, ", ")
	case counted == 0 && early:
		return HostPending, ""
	case counted == 0:
		return HostNone, ""
	}
	return HostPassed, ""
}

// meets tells whether a check is the one that a rule demands.
func meets(must codehost.RequiredCheck, name, source string) bool {
	return must.Name == name && (must.Source == "" || must.Source == source)
}

// store replaces the checks of a commit.
func store(tx *db.Tx, h headRow, set codehost.CheckSet, rules codehost.BranchRules, logs map[string]string) error {
	if _, err := dropChecks.Exec(tx, h.RepoID, h.SHA); err != nil {
		return err
	}
	for _, c := range set.Checks {
		a := checkRow{
			RepoID: h.RepoID, SHA: h.SHA, Source: c.Source, Name: c.Name, HostID: c.ID, Own: c.Own, State: c.State,
			Conclusion: c.Conclusion, Job: c.Job, Workflow: c.Workflow, Attempt: int64(c.Attempt), URL: c.URL,
			StartedAt: c.StartedAt, EndedAt: c.EndedAt,
			Required: slices.ContainsFunc(rules.Required, func(m codehost.RequiredCheck) bool { return meets(m, c.Name, c.Source) }),
		}
		if text, ok := logs[c.Source+"/"+c.Name]; ok {
			a.Log = &text
		}
		if _, err := insertCheck.Exec(tx, a); err != nil {
			return err
		}
	}
	return nil
}
