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
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/flake"
	"yardmaster/internal/observe"
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
	settle    = 30 * time.Second
	lookAgain = 2 * time.Minute
	lookHeld  = 30 * time.Minute // of a head that waits for a person
	readAgain = time.Minute      // after a failure
	baseLife  = 24 * time.Hour   // for which a commit of a base is read by itself
	lastBytes = 64 << 10         // of the log of a failed check that are kept
)

// Sides on which a commit is checked.
const (
	sidePull  = string(flake.OnPull)
	sideBase  = string(flake.OnBase)
	sideGroup = string(flake.OnGroup)
)

// Holds: why the checks of a head wait for a person. An agent cannot repair these.
const (
	HoldBase     = "base_broken"     // the base fails in the same way
	HoldMissing  = "check_missing"   // a check that is required has never reported
	HoldApproval = "action_required" // the host waits for a person to let the checks run
	HoldInfra    = "check_infra"     // machines failed, and the checks were run again in vain
)

// HostEnd is what a host's checks say of a commit. Hold is one of the holds; "": they
// wait for no person.
type HostEnd struct {
	RepoID, SHA, Result, Hold, Why string
}

// HostChecked is sent when the result of the checks that a host has of a commit is
// another one.
var HostChecked = event.DeclareSignal[HostEnd]("ci.host_checked", "The checks of a commit at its host have another result.")

// Follow has the checks read that the host of a repository has of the head of a pull
// request to a base, from now on.
func (s *Service) Follow(tx *db.Tx, r repo.Ref, prID, base, sha string) error {
	_, err := follow.Exec(tx, followArgs{
		RepoID: r.ID, SHA: sha, AccountID: tx.Account, BaseRef: base, Side: sidePull, PRID: prID, SettleAt: tx.Now.Add(settle),
		Now: tx.Micros(),
	})
	s.headQueue.Add(tx, headKey(r.ID, sha), due.Entry{Account: tx.Account})
	return err
}

// Pushed follows the checks of a commit that was pushed to the default branch, if the
// host of the repository keeps checks: they say which failures come and go.
func (s *Service) Pushed(tx *db.Tx, r repo.Ref, branch, sha string) error {
	if branch != r.DefaultBranch {
		return nil
	}
	return s.followSide(tx, r, sideBase, branch, sha)
}

// Grouped follows the checks of a group of the merge queue of a host, and runs the check
// of the repository on it: the queue waits for that one, too. It may be called again for
// the same group. It fails with the fault of Tasks.
func (s *Service) Grouped(ctx context.Context, r repo.Ref, base, sha string) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		if err := s.followSide(tx, r, sideGroup, base, sha); err != nil || !codehost.ValidSHA(sha) || !s.checksGroups(r) {
			return err
		}
		if err := repo.Lock(tx, r.ID); err != nil { // two deliveries queue one check
			return err
		}
		if _, known, err := newestOfGroup.Maybe(tx, tx.Account, r.ID, sha); err != nil || known {
			return err
		}
		return s.Queue(tx, r, "", sha)
	})
}

func (s *Service) checksGroups(r repo.Ref) bool {
	return r.Enabled && r.Policy.Checks.Command != "" && s.keepsChecks(r)
}

// Ungrouped ends the check of a group that the merge queue of a host has given up, or has
// merged.
func (s *Service) Ungrouped(ctx context.Context, r repo.Ref, sha string) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		c, known, err := newestOfGroup.Maybe(tx, tx.Account, r.ID, sha)
		if err != nil || !known || c.over() {
			return err
		}
		return s.Tasks.Stop(tx, c.TaskID)
	})
}

// GroupAgain runs the check of the repository on a group of the merge queue anew, if it
// was run and has ended. It fails with the fault of Tasks.
func (s *Service) GroupAgain(tx *db.Tx, r repo.Ref, sha string) error {
	if !s.checksGroups(r) {
		return nil
	}
	if err := repo.Lock(tx, r.ID); err != nil {
		return err
	}
	c, known, err := newestOfGroup.Maybe(tx, tx.Account, r.ID, sha)
	if err != nil || !known || !c.over() {
		return err
	}
	return s.Queue(tx, r, "", sha)
}

func (s *Service) followSide(tx *db.Tx, r repo.Ref, side, base, sha string) error {
	forge, err := s.Hosts.Forge(r.HostRepo())
	if err != nil || !forge.Can(codehost.KeepChecks) || !codehost.ValidSHA(sha) {
		return nil //nolint:nilerr // of a host that is not connected nothing is followed
	}
	n, err := followBase.Exec(tx, followArgs{
		RepoID: r.ID, SHA: sha, AccountID: tx.Account, BaseRef: base, Side: side, SettleAt: tx.Now.Add(settle), Now: tx.Micros(),
	})
	if n > 0 {
		s.headQueue.Add(tx, headKey(r.ID, sha), due.Entry{Account: tx.Account})
	}
	return err
}

// HostChanged has the checks of a commit read again, if they are followed: the host
// says that they have changed.
func (s *Service) HostChanged(ctx context.Context, r repo.Ref, sha string) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error { return s.wantHead(tx, r.ID, sha) })
}

// wantHead has the checks of a commit read again, if they are followed.
func (s *Service) wantHead(tx *db.Tx, repoID, sha string) error {
	account, ok, err := want.Maybe(tx, repoID, sha)
	if ok {
		s.headQueue.Add(tx, headKey(repoID, sha), due.Entry{Account: account})
	}
	return err
}

// headKey is that of a head in the queue. No id has a slash.
func headKey(repoID, sha string) string { return repoID + "/" + sha }

func loadHead(tx *db.Tx, key string) (headRow, bool, error) {
	repoID, sha, _ := strings.Cut(key, "/")
	return headByKey.Maybe(tx, repoID, sha)
}

// HostFailure is what a host says of the failed checks of a commit that are to be
// repaired.
type HostFailure struct {
	Names  []string
	Log    string
	Repair []string // the failures, as far as they are known
	Leave  []string // failures that come and go, and are to be left alone
}

// AtHost answers what the host says of the failed checks of a commit; false if none has
// failed that can be repaired.
func AtHost(tx *db.Tx, repoID, sha string) (HostFailure, bool, error) {
	rows, err := checksOf.All(tx, repoID, sha)
	if err != nil {
		return HostFailure{}, false, err
	}
	judged, err := endsOf.All(tx, repoID, sha)
	var f HostFailure
	for _, c := range rows {
		if c.State != codehost.CheckFailed || c.Own || c.Conclusion == codehost.EndHeld {
			continue
		}
		e, ok := endOf(judged, c)
		if ok && e.spared() {
			continue
		}
		f.Names = append(f.Names, c.Name)
		f.Repair, f.Leave = append(f.Repair, e.Told.V.Repair...), append(f.Leave, e.Told.V.Leave...)
		if f.Log == "" && c.Log != nil {
			f.Log = *c.Log
		}
	}
	return f, len(f.Names) > 0, err
}

// errOvertaken ends the reading of a head of which a later one was recorded: its checks had
// changed while the first one went on.
var errOvertaken = errors.New("ci: a later reading of the head was recorded")

// readHead reads the checks of one head, and records their result.
func (s *Service) readHead(ctx context.Context, j due.Job[headRow]) due.Outcome {
	o, err := s.readChecks(ctx, j.Row)
	if err == nil {
		return o
	}
	if !errors.Is(err, errOvertaken) {
		observe.Complain(ctx, s.Logger, "read the checks of a head", err, slog.String("sha", j.Row.SHA))
	}
	return due.Again(err)
}

func (s *Service) readChecks(ctx context.Context, h headRow) (out due.Outcome, err error) {
	var r repo.Ref
	reachable := false
	err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		r, reachable, err = repo.Reachable(tx, h.RepoID)
		return err
	})
	if err != nil {
		return out, err
	}
	if !reachable {
		return leave(h), nil
	}
	forge, err := s.Hosts.Forge(r.HostRepo())
	if err != nil {
		return out, err
	}
	rules, _, err := forge.BranchRules(ctx, r.HostRepo(), h.BaseRef, "")
	if err != nil {
		return out, err
	}
	set, tag, err := forge.ChecksOf(ctx, r.HostRepo(), h.SHA, codehost.Tag(h.Tag))
	same := errors.Is(err, codehost.ErrNotModified)
	if errors.Is(err, codehost.ErrNotFound) {
		return leave(h), nil // the commit is gone
	}
	if err != nil && !same {
		return out, err
	}
	logs, err := s.logs(ctx, forge, r, h, set)
	if err != nil {
		return out, err
	}
	if same {
		tag = codehost.Tag(h.Tag)
	} else if err := s.DB.Write(ctx, func(tx *db.Tx) error {
		if err := store(tx, h, set, rules, logs); err != nil {
			return err
		}
		return s.record(tx, h, set, logs)
	}); err != nil {
		return out, err
	}
	trials, err := s.trials(ctx, r, h, rules)
	if err != nil {
		return out, err
	}
	// The locks of decide come before those of pull requests in no other transaction, so
	// it has one of its own. The head stays due until the next one.
	if len(trials) > 0 {
		if err := s.DB.Write(ctx, func(tx *db.Tx) error { return s.decide(tx, r, h, trials) }); err != nil {
			return out, err
		}
	}
	return due.Decide(func(tx *db.Tx) (due.Outcome, error) {
		checks, err := checksOf.All(tx, h.RepoID, h.SHA)
		if err != nil {
			return out, err
		}
		judged, err := endsOf.All(tx, h.RepoID, h.SHA)
		if err != nil {
			return out, err
		}
		late := tx.Now.Sub(h.SettleAt)+settle >= r.Policy.MissingAfter()
		v := verdict(checks, judged, rules, tx.Now.Before(h.SettleAt), late)
		again, open := next(tx.Now, h, v, len(checks))
		n, err := setHead.Exec(tx, setHeadArgs{
			RepoID: h.RepoID, SHA: h.SHA, Tag: string(tag), Result: v.result, Why: v.why, Hold: v.hold, Open: open, Have: h.Want,
		})
		if err != nil || n == 0 || h.Side == sideBase || v.result == HostPending && h.Result == HostPending && v.hold == h.Hold {
			return again, err
		}
		return again, HostChecked.Send(tx, HostEnd{RepoID: h.RepoID, SHA: h.SHA, Result: v.result, Hold: v.hold, Why: v.why})
	}), nil
}

// next is when a head is read again; unless it is open, when its host says that its checks
// have changed.
func next(now time.Time, h headRow, v standing, checks int) (again due.Outcome, open bool) {
	age := now.Sub(h.SettleAt)
	switch {
	case v.result != HostPending, h.Side != sidePull && age > baseLife:
		return due.Done(nil), false
	case checks == 0 && age < 0:
		return due.Wait(-age), true
	case v.hold != "":
		return due.Wait(lookHeld), true
	}
	return due.Wait(lookAgain), true
}

// leave follows a head no more.
func leave(h headRow) due.Outcome {
	return due.Done(func(tx *db.Tx) error {
		_, err := setHead.Exec(tx, setHeadArgs{
			RepoID: h.RepoID, SHA: h.SHA, Tag: h.Tag, Result: h.Result, Why: h.Why, Hold: h.Hold, Have: h.Want,
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
	log, err := forge.CheckLog(ctx, r.HostRepo(), job, flake.MaxLog)
	if err != nil {
		return "", err
	}
	defer log.Close()
	b, err := io.ReadAll(io.LimitReader(log, 4*flake.MaxLog))
	text := strings.ToValidUTF8(strings.ReplaceAll(string(b[max(0, len(b)-flake.MaxLog):]), "\x00", ""), "")
	return text, err
}

// standing is what the checks of a commit say together.
type standing struct{ result, hold, why string }

// verdict is the result of the checks of a commit together, with what was judged of them.
// The checks of ours do not count: what they say is known here. early says that checks
// may yet begin, and late that those which have not begun are missing.
func verdict(checks []checkRow, judged []endRow, rules codehost.BranchRules, early, late bool) standing {
	var failed, pending, again, missing, kept []string
	held := map[string][]string{}
	counted := 0
	for _, c := range checks {
		if c.Own {
			continue
		}
		counted++
		if !c.Required && len(rules.Required) > 0 {
			if c.Conclusion == codehost.EndHeld && c.State == codehost.CheckFailed {
				kept = append(kept, c.Name) // a required check may be among its jobs
			}
			continue
		}
		e, _ := endOf(judged, c)
		switch {
		case c.State == codehost.CheckPending:
			pending = append(pending, c.Name)
		case c.State != codehost.CheckFailed:
		case c.Conclusion == codehost.EndHeld:
			held[HoldApproval] = append(held[HoldApproval], c.Name)
		case e.Verdict == string(flake.Rerun) || e.Verdict == verdictWaits:
			again = append(again, c.Name)
		case e.Verdict == string(flake.BaseBroken):
			held[HoldBase] = append(held[HoldBase], c.Name)
		case e.Verdict == string(flake.Infra):
			held[HoldInfra] = append(held[HoldInfra], c.Name)
		default:
			failed = append(failed, c.Name)
		}
	}
	for _, must := range rules.Required {
		if !slices.ContainsFunc(checks, func(c checkRow) bool { return meets(must, c.Name, c.Source) }) {
			missing = append(missing, must.Name)
		}
	}
	list := func(what string, names []string) string { return what + ": " + strings.Join(names, ", ") }
	switch {
	case len(failed) > 0:
		return standing{HostFailed, "", list("these checks failed", failed)}
	case len(pending) > 0:
		return standing{HostPending, "", list("these checks have not ended", pending)}
	case len(again) > 0:
		return standing{HostPending, "", list("these checks failed and are run again", again)}
	case len(held[HoldBase]) > 0:
		return standing{HostPending, HoldBase, list("these checks fail at the base in the same way", held[HoldBase])}
	case len(held[HoldApproval]) > 0:
		return standing{HostPending, HoldApproval, list("these checks wait for a person to let them run", held[HoldApproval])}
	case len(held[HoldInfra]) > 0:
		return standing{HostPending, HoldInfra, list("the machines of these checks failed", held[HoldInfra])}
	case len(missing) > 0 && len(kept) > 0:
		return standing{HostPending, HoldApproval, list("these checks wait for a person to let them run", kept)}
	case len(missing) > 0 && late:
		return standing{HostPending, HoldMissing, list("these required checks have never reported", missing)}
	case len(missing) > 0:
		return standing{HostPending, "", list("these checks have not begun", missing)}
	case counted == 0 && early:
		return standing{result: HostPending}
	case counted == 0:
		return standing{result: HostNone}
	}
	return standing{result: HostPassed}
}

// meets tells whether a check is the one that a rule demands.
func meets(must codehost.RequiredCheck, name, source string) bool {
	return must.Name == name && (must.Source == "" || must.Source == source)
}

// store replaces the checks of a commit. It fails with errOvertaken.
func store(tx *db.Tx, h headRow, set codehost.CheckSet, rules codehost.BranchRules, logs map[string]string) error {
	switch have, err := lockHead.One(tx, h.RepoID, h.SHA); {
	case err != nil:
		return err
	case have > h.Want:
		return errOvertaken
	}
	if _, err := dropChecks.Exec(tx, h.RepoID, h.SHA); err != nil {
		return err
	}
	for _, c := range set.Checks {
		a := checkRow{
			RepoID: h.RepoID, SHA: h.SHA, Source: c.Source, Name: c.Name, HostID: c.ID, Own: c.Own, State: c.State,
			Conclusion: c.End, Job: c.Job, Workflow: c.Workflow, Attempt: int64(c.Attempt), URL: c.URL,
			StartedAt: c.StartedAt, EndedAt: c.EndedAt,
			Required: slices.ContainsFunc(rules.Required, func(m codehost.RequiredCheck) bool { return meets(m, c.Name, c.Source) }),
		}
		if text, ok := logs[c.Source+"/"+c.Name]; ok {
			a.Log = new(strings.ToValidUTF8(text[max(0, len(text)-lastBytes):], ""))
		}
		if _, err := insertCheck.Exec(tx, a); err != nil {
			return err
		}
	}
	return nil
}
