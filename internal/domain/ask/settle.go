package ask

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/escalation"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/reach"
)

// gather reads the facts against which a verdict is checked. All of them belong
// to tx.Account.
func (s *Service) gather(tx *db.Tx, r *row, v *verdict) (f facts, err error) {
	f = facts{repos: map[string]Repo{}, tasks: map[string]TaskRef{}, within: r.within, priority: r.maxPriority()}
	f.span = r.span()
	names, ids := v.names()
	for _, full := range names {
		owner, name, _ := strings.Cut(full, "/")
		if repo, ok, err := repoByName.Maybe(tx, tx.Account, owner, name); err != nil {
			return f, err
		} else if ok {
			f.repos[full] = repo
		}
	}
	for _, taskID := range ids {
		if !id.Valid(taskID) {
			continue
		}
		if t, ok, err := s.Queue.Task(tx, taskID); err != nil {
			return f, err
		} else if ok {
			f.tasks[taskID] = t
		}
	}
	f.scopes, err = r.rights(tx)
	return f, err
}

// span returns the repositories for which plan.start asked for one plan; nil
// for every other ask.
func (r *row) span() []string {
	if r.Source != FromPlan || len(r.Reach.V) < 2 {
		return nil
	}
	return r.Reach.V
}

// within tells whether the ask reaches a repository of its account.
func (r *row) within(repoID string) bool {
	return len(r.Reach.V) == 0 || slices.Contains(r.Reach.V, repoID)
}

func (r *row) maxPriority() int64 {
	if r.person() != nil {
		return maxPriorityOfPeople
	}
	return maxPriorityOfPrograms
}

// person is who approved the ask, or else who filed it; nil for nobody.
func (r *row) person() *string {
	if r.ApprovedBy != nil {
		return r.ApprovedBy
	}
	return r.FilerID
}

// unasked tells whether the ask came from a run, and no person has approved it.
func (r *row) unasked() bool {
	return (r.Source == FromRun || r.Source == FromBlocker) && r.person() == nil
}

// rights returns the rights that the person of the ask had at filing, or at approving it,
// and still has. A person who has left the account gives a verdict none.
func (r *row) rights(tx *db.Tx) (policy.Set, error) {
	scopes, _ := policy.ParseScopes(r.Scopes.V)
	person := r.person()
	if person == nil {
		return scopes, nil
	}
	role, ok, err := people.Role(tx, tx.Account, *person)
	if err != nil || !ok {
		return 0, err
	}
	return scopes & role.Ceiling(), nil
}

// carryOut carries out a verdict, whole, in tx. It returns a refusal if the
// verdict breaks a rule.
func (s *Service) carryOut(tx *db.Tx, r *row, v *verdict) error {
	f, err := s.gather(tx, r, v)
	if err != nil {
		return err
	}
	if wrong := check(v, f); len(wrong) > 0 {
		return wrong
	}
	out := Verdict{Reason: strings.TrimSpace(v.Reason), TaskIDs: []string{}}
	switch v.Kind {
	case doMint:
		var each *int64
		var left bool
		if each, left, err = share(tx, r, len(v.Tasks)); err == nil && !left {
			return s.spent(tx, r)
		}
		if err == nil {
			out.Kind = Minted
			out.TaskIDs, err = s.mint(tx, r, v.Tasks, f, each)
		}
	case doPlan:
		var made Authored
		made, err = s.Plans.Author(tx, v.Plan.draft(r, f, out.Reason))
		out.Kind, out.PlanID, out.TaskIDs = Planned, &made.PlanID, append(out.TaskIDs, made.TaskIDs...)
	case doDrop:
		out.Kind, out.CoveringTaskID = NotNeeded, v.CoveringTaskID
		return move(tx, r, Dropped, out, "")
	case doCrossLink:
		out.Kind, out.TaskIDs = CrossLinked, v.TaskIDs
	case doEscalate:
		return escalate(tx, r, v.Category, out.Reason)
	}
	if err != nil {
		return err
	}
	return move(tx, r, Triaged, out, "")
}

// draft makes the plan of an outline, with each slice behind those it depends
// on.
func (o *outline) draft(r *row, f facts, reason string) NewPlan {
	p := NewPlan{
		AskID: r.ID, RequestedBy: deref(r.RequestedBy), Title: strings.TrimSpace(o.Title), Summary: reason, Hold: r.person() == nil,
	}
	if r.unasked() {
		p.RequestedBy = "" // who approves the plan becomes its person
	}
	sorted, _ := order(o.Slices)
	place := make([]int, len(sorted))
	for at, i := range sorted {
		place[i] = at
		slice := &o.Slices[i]
		n := NewSlice{RepoID: f.repos[slice.Repo].ID, Title: strings.TrimSpace(slice.Title), Problem: slice.Problem, Files: slice.Files}
		for _, d := range slice.DependsOn {
			n.DependsOn = append(n.DependsOn, place[d])
		}
		p.Slices = append(p.Slices, n)
	}
	return p
}

// leastShare is the least limit that is worth a task, in micro-dollars: a cent.
const leastShare = 10_000

// share is the limit of each of n tasks that are minted for an ask; nil: none. What the runs
// of a task ask for has the limit of that task once, in all: left is false if too little of
// it is left, and a person decides.
func share(tx *db.Tx, r *row, n int) (each *int64, left bool, err error) {
	if r.BudgetMicros == nil || r.FromTask == nil {
		return r.BudgetMicros, true, nil
	}
	if _, err := lockFirst.One(tx, tx.Account, *r.FromTask); err != nil {
		return nil, false, err
	}
	minted, err := mintedOf.One(tx, tx.Account, *r.FromTask)
	if err != nil {
		return nil, false, err
	}
	part := (*r.BudgetMicros - minted) / int64(n)
	if part < leastShare {
		return nil, false, nil
	}
	_, err = setMinted.Exec(tx, tx.Account, r.ID, part*int64(n))
	return &part, true, err
}

// spent asks a person about an ask whose task has nothing left of its limit.
func (s *Service) spent(tx *db.Tx, r *row) error {
	t, _, err := s.Queue.Task(tx, *r.FromTask)
	if err != nil {
		return err
	}
	return escalate(tx, r, reach.MoreRights, fmt.Sprintf("The run %s for the task %q (%s) in %s asks for work. "+
		"That task has a limit, and the tasks of the asks of its runs have all of that already.",
		deref(r.RunID), clip(oneLine(t.Title), maxTitle), *r.FromTask, deref(r.Repo)))
}

// mint makes the tasks, each after those it depends on, and returns their ids
// in the order of the verdict. each is the limit of each; nil: none.
func (s *Service) mint(tx *db.Tx, r *row, all []piece, f facts, each *int64) ([]string, error) {
	ids := make([]string, len(all))
	sorted, _ := order(all)
	for _, i := range sorted {
		p := &all[i]
		t := NewTask{AskID: r.ID, RequestedBy: deref(r.RequestedBy), RepoID: f.repos[p.Repo].ID, Kind: p.kind(),
			Title: strings.TrimSpace(p.Title), Problem: p.Problem, Priority: p.priority(), Files: p.Files, Labels: r.Labels.V,
			Unbound: r.unasked(), BudgetMicros: each}
		for _, d := range p.DependsOn {
			t.DependsOn = append(t.DependsOn, ids[d])
		}
		taskID, err := s.Queue.Mint(tx, t)
		if err != nil {
			return nil, err
		}
		ids[i] = taskID
	}
	return ids, nil
}

// escalate turns a pending ask into a question to a person.
func escalate(tx *db.Tx, r *row, category, reason string) error {
	reason = clip(reason, maxReason)
	raised, err := escalation.Raise(tx, escalation.Draft{RepoID: r.RepoID, Category: category, Title: r.Title, Body: r.Body, Reason: reason,
		AskID: &r.ID, By: r.FiledBy, IssueID: r.IssueID, URL: r.IssueURL})
	if err != nil {
		return err
	}
	v := Verdict{Kind: ToPerson, Reason: reason, TaskIDs: []string{}}
	r.EscalationReason = &category
	return move(tx, r, Escalated, v, raised)
}

// move takes an ask out of triage and records the event.
func move(tx *db.Tx, r *row, to State, v Verdict, escalationID string) error {
	n, err := settle.Exec(tx, settleArgs{
		AccountID: tx.Account, ID: r.ID, State: to, Verdict: db.JSON[Verdict]{V: v},
		EscalationReason: r.EscalationReason, TriagedAt: tx.Now,
	})
	if err != nil {
		return err
	}
	if n != 1 {
		return fmt.Errorf("ask %s is no longer pending", r.ID)
	}
	return settled(tx, r, to, v, escalationID)
}

// settled tells of an ask that has left triage.
func settled(tx *db.Tx, r *row, to State, v Verdict, escalationID string) error {
	if r.State = to; v.Kind == CrossLinked || v.CoveringTaskID != nil {
		if err := cover(tx, r.ID, v); err != nil {
			return err
		}
	}
	if err := Settled.Send(tx, Settlement{
		AskID: r.ID, State: to, Verdict: v, Category: deref(r.EscalationReason), EscalationID: escalationID,
	}); err != nil {
		return err
	}
	return settledEvents[to].Record(tx, event.Subject{ID: r.ID, RepoID: deref(r.RepoID)}, settledData{
		CoveringTaskID: deref(v.CoveringTaskID), EscalationID: escalationID, PlanID: deref(v.PlanID), Reason: deref(r.EscalationReason),
		TaskIDs: v.TaskIDs, Verdict: string(v.Kind),
	})
}

// refusalOf turns a fault of the platform about a verdict into a refusal. It
// returns false if the judge can do nothing about the error.
func refusalOf(err error) (refusal, bool) {
	if r, ok := err.(refusal); ok { //nolint:errorlint // it is made here and never wrapped
		return r, true
	}
	f := fault.From(err)
	switch f.Kind {
	case fault.Invalid, fault.Unprocessable, fault.Conflict, fault.NotFound:
	default:
		return nil, false
	}
	out := refusal{f.Detail}
	for _, field := range slices.Sorted(maps.Keys(f.Fields)) {
		out = append(out, field+" "+strings.Join(f.Fields[field], ", "))
	}
	return out, true
}
