package queue

import (
	"cmp"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
)

// Fleet counts the boxes that could claim a task of a person, by how much of what
// a claim asks for they have.
type Fleet struct {
	Serving  int    // boxes that take that person's work in the account
	Online   int    // of those
	MayClaim int    // of those: enrolled, fit, with the agent and the isolation
	Free     int    // of those: with a slot without a task
	Hold     string // why no box may claim, as a task would say, or NoLiveAgent; empty if one may
	// Repo and Key are the holds that a task would carry whatever boxes there are: because of
	// its repository, and because of the keys of the account. Empty: there is none.
	Repo, Key string
}

// Fleet tells whether a scout that somebody files now would be claimed, by the test of a
// claim, and whether its agent can hold the live session that it needs. Without a repository
// it is one whose policy file demands nothing. That all boxes or seats are busy is no
// obstacle: it passes.
func (s *Service) Fleet(tx *db.Tx, account, createdBy string, repo *task.Repo) (out Fleet, err error) {
	t := task.Row{AccountID: account, Kind: task.KindScout, Template: s.DefaultTemplate, CreatedBy: createdBy, QueuedAt: tx.Now}
	if user, ok := strings.CutPrefix(createdBy, "user:"); ok {
		t.RequestedBy = &user
	}
	known := map[string]task.Repo{t.RepoID: {Enabled: true}}
	if repo != nil {
		t.RepoID, t.Template = repo.ID, cmp.Or(repo.Template, s.DefaultTemplate)
		known = map[string]task.Repo{repo.ID: *repo}
	}
	f, err := s.facts(tx, account, known, []task.Row{t})
	if err != nil {
		return out, err
	}
	need, ok := f.need(&t)
	for _, h := range f.own(&t) {
		switch {
		case h.Passes:
		case h.Reason == task.HoldRepo, h.Reason == task.HoldPlan:
			out.Repo = cmp.Or(out.Repo, h.Reason)
		case h.Reason == task.HoldKey, h.Reason == task.HoldModel:
			out.Key = cmp.Or(out.Key, h.Reason)
		}
	}
	for i := range f.Boxes {
		b := &f.Boxes[i]
		if !b.serves(&t) {
			continue
		}
		out.Serving++
		if !b.Online {
			continue
		}
		out.Online++
		if ok && live(need) && b.takesWork() && b.hasAgent(need) && b.isolates(need) && b.Slots > 0 {
			out.MayClaim++
			if b.Busy < b.Slots {
				out.Free++
			}
		}
		b.Busy = 0
	}
	if !ok {
		out.Hold = task.HoldTemplate
	} else if !live(need) {
		out.Hold = NoLiveAgent
	} else if h := f.fleet(&t, need); h != nil {
		out.Hold = h.Reason
	}
	return out, nil
}

// NoLiveAgent is the Hold of a Fleet whose boxes would run an agent that takes no messages.
const NoLiveAgent = "no_live_agent"

// live tells whether an agent can hold a live session: the agent command takes no messages.
func live(n Need) bool { return n.Agent != "command" }

// LiveBox tells whether an online box that serves tx.Account can hold a live session,
// in which a person talks to the agent, with the agent of a template in a repository.
// The agent command cannot, because it takes no messages. LiveBox returns false as well
// if there is no such template.
func (s *Service) LiveBox(tx *db.Tx, repo task.Repo, template string) (bool, error) {
	n, ok, err := s.Templates.Need(tx, tx.Account, template)
	if err != nil || !ok || !live(n) {
		return false, err
	}
	n.Isolation = Stricter(n.Isolation, repo.Isolation)
	fleet, err := selectFleet.All(tx, tx.Account)
	for _, r := range fleet {
		if b := r.box(); r.isBox() && b.Online && b.Enrolled && b.hasAgent(n) && b.isolates(n) {
			return true, err
		}
	}
	return false, err
}
