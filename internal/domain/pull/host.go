package pull

import (
	"context"
	"errors"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
)

// The kinds of intents that pull requests put, and their arguments.
var (
	openAtHost  = intent.Declare[openArgs, codehost.Pull]("pull.open", false)
	closeAtHost = intent.Declare[closeArgs, codehost.Pull]("pull.close", false)
)

type (
	openArgs  struct{ Title, Body, Head, Base, HeadSHA string }
	closeArgs struct{ Number int64 }
)

// carryOut has intents about pull requests carried out.
func (s *Service) carryOut(intents *intent.Service) {
	openAtHost.Handle(intents, opener{s})
	closeAtHost.Handle(intents, closer{})
	actAtHost.Handle(intents, actor{s})
}

// opener opens pull requests at their hosts.
type opener struct{ s *Service }

// Still implements intent.Handler.
func (opener) Still(tx *db.Tx, c intent.Call[openArgs]) (bool, error) {
	pr, ok, err := record.ByID.Maybe(tx, tx.Account, c.Object)
	return ok && pr.State == record.Opening, err
}

// Do implements intent.Handler.
func (opener) Do(ctx context.Context, f codehost.Forge, c intent.Call[openArgs]) (codehost.Pull, error) {
	return f.OpenPull(ctx, c.Repo.HostRepo(), c.ID,
		codehost.NewPull{Title: c.Args.Title, Body: c.Args.Body, Head: c.Args.Head, Base: c.Args.Base})
}

// Done implements intent.Handler.
func (o opener) Done(tx *db.Tx, c intent.Call[openArgs], at codehost.Pull, failure error) error {
	return o.s.opened(tx, c, at, failure)
}

// closer closes pull requests at their hosts.
type closer struct{}

// Still implements intent.Handler.
func (closer) Still(*db.Tx, intent.Call[closeArgs]) (bool, error) { return true, nil }

// Do implements intent.Handler. A host tells of a merge that came before.
func (closer) Do(ctx context.Context, f codehost.Forge, c intent.Call[closeArgs]) (codehost.Pull, error) {
	p, err := f.EditPull(ctx, c.Repo.HostRepo(), c.ID, c.Args.Number, codehost.PullEdit{Open: new(false)})
	if errors.Is(err, codehost.ErrMerged) || errors.Is(err, codehost.ErrNotFound) {
		err = nil
	}
	return p, err
}

// Done implements intent.Handler.
func (closer) Done(*db.Tx, intent.Call[closeArgs], codehost.Pull, error) error { return nil }

// opening stores a pull request that its host is yet to open.
func (s *Service) opening(tx *db.Tx, r repo.Ref, p Proposal) (prID string, err error) {
	n, err := record.NextOpening.One(tx, r.ID)
	if err != nil {
		return "", err
	}
	prID = id.New()
	if _, err := record.Insert.Exec(tx, record.InsertArgs{
		ID: prID, AccountID: tx.Account, RepoID: r.ID, Number: n, Title: p.Title, Body: p.Body, URL: s.url(prID),
		State: record.Opening, HeadRef: p.Branch, BaseRef: r.DefaultBranch, HeadSHA: p.HeadSHA, BaseSHA: p.BaseSHA,
		TaskID: &p.TaskID, AuthorKind: record.ByAgent, CreatedAt: tx.Micros(), Babysit: record.BabysitWatching,
	}); err != nil {
		return "", err
	}
	if _, err := openAtHost.Put(tx, intent.Want[openArgs]{
		Repo: r, Object: prID, Rank: intent.ForRuns,
		Args: openArgs{Title: p.Title, Body: p.Body, Head: p.Branch, Base: r.DefaultBranch, HeadSHA: p.HeadSHA},
	}); err != nil {
		return "", err
	}
	return prID, record.TaskAwaits.Send(tx, record.Progress{TaskID: p.TaskID, PRID: prID})
}

// opened records that a host has opened a pull request, or has refused to.
func (s *Service) opened(tx *db.Tx, c intent.Call[openArgs], at codehost.Pull, failure error) error {
	pr, ok, err := record.Lock(tx, c.Object)
	switch {
	case err != nil || !ok:
		return err
	case failure != nil && pr.State == record.Opening:
		return s.close(tx, pr, refusedWhy(failure), "code-host")
	case failure != nil:
		return nil
	case pr.State != record.Opening: // the task was cancelled meanwhile
		pr.Numbered(at)
		if err := record.Save(tx, pr); err != nil {
			return err
		}
		return s.closeThere(tx, c.Repo, pr)
	}
	pr.State, pr.FactsWant = record.Open, pr.FactsWant+1
	pr.Numbered(at)
	if err := record.Save(tx, pr); err != nil {
		return err
	}
	taskID := ""
	if pr.TaskID != nil {
		taskID = *pr.TaskID
	}
	data := record.OpenedData{HeadSHA: pr.HeadSHA, Number: at.Number, TaskID: taskID}
	if err := record.OpenedEvent.Record(tx, event.Subject{ID: pr.ID, RepoID: pr.RepoID}, data); err != nil {
		return err
	}
	if at.HeadSHA != "" && at.HeadSHA != pr.HeadSHA {
		return s.moveHead(tx, c.Repo, pr, at.HeadSHA)
	}
	return s.Check(tx, c.Repo, pr)
}

// refusedWhy is the reason for which a pull request was closed that its host did not
// open.
func refusedWhy(err error) string {
	if errors.Is(err, codehost.ErrNoCommits) {
		return record.ClosedEmpty
	}
	return record.ClosedRefused
}

// closeThere closes a pull request at its host, if that keeps pull requests.
func (s *Service) closeThere(tx *db.Tx, r repo.Ref, pr *record.Pull) error {
	if !s.Kept(r) || pr.Number <= 0 {
		return nil
	}
	_, err := closeAtHost.Put(tx, intent.Want[closeArgs]{
		Repo: r, Object: pr.ID, Rank: intent.ForRuns, Args: closeArgs{Number: pr.Number},
	})
	return err
}

// watched tells whether a pull request is looked after: each of an agent, and one of people
// as the policy, its labels and its own switch say.
func watched(r repo.Ref, pr *record.Pull) bool {
	if pr.AuthorKind == record.ByAgent || pr.Fork {
		return pr.AuthorKind == record.ByAgent
	}
	return pr.Watch == record.WatchOn || pr.Watch != record.WatchOff && r.Policy.Watches(pr.AuthorKind == record.ByBot, pr.Labels.V)
}

// rewatch begins or ends the watch of a pull request of people, as the policy and its
// labels say. A round that goes on is not ended.
func (s *Service) rewatch(tx *db.Tx, r repo.Ref, pr *record.Pull) error {
	if pr.AuthorKind == record.ByAgent || pr.Fork {
		return nil
	}
	wanted := watched(r, pr)
	switch {
	case wanted && pr.Babysit == record.BabysitOff:
		pr.Arm(record.BabysitWatching, "", tx.Now)
		if err := record.Save(tx, pr); err != nil {
			return err
		}
		return s.Move(tx, pr)
	case !wanted && (pr.Babysit == record.BabysitWatching || pr.Babysit == record.BabysitSpent):
		pr.EndRound(record.BabysitOff)
		if err := record.Save(tx, pr); err != nil {
			return err
		}
		if err := s.Unask(tx, pr); err != nil {
			return err
		}
		return s.Move(tx, pr)
	}
	return nil
}

// mergedThere records a merge that the host tells of. One that the server has begun is
// left to the answer of the host.
func (s *Service) mergedThere(tx *db.Tx, pr *record.Pull, p codehost.Pull, who string) error {
	a, open, err := record.OpenAction.Maybe(tx, pr.ID)
	if err != nil {
		return err
	}
	if queued, err := s.MergedInQueue(tx, pr, a, p); err != nil || queued || open && a.State == record.ActionApproved && a.Called {
		return err
	}
	if p.MergedBy != nil {
		who = HostLabel(*p.MergedBy)
	}
	if p.HeadSHA != "" {
		pr.HeadSHA = p.HeadSHA
	}
	return s.MergedByHand(tx, pr, p.MergeSHA, who)
}

// retarget records that somebody gave a pull request another base: what was asked about
// it is of no use any more.
func (s *Service) retarget(tx *db.Tx, pr *record.Pull, base string) error {
	pr.BaseRef, pr.FactsWant = base, pr.FactsWant+1
	pr.LookedSHA, pr.Mergeable, pr.Would, pr.Had.V = "", "unknown", nil, []string{}
	if err := record.Save(tx, pr); err != nil {
		return err
	}
	if err := s.EndQuestions(tx, pr); err != nil {
		return err
	}
	if _, err := record.OtherBase.Exec(tx, pr.ID); err != nil {
		return err
	}
	s.Hub.Notify(tx, event.PullTopic)
	return nil
}

// DefaultRenamed gives the open pull requests to the default branch of a repository of
// tx.Account its new name as their base.
func (s *Service) DefaultRenamed(tx *db.Tx, c repo.Renamed) error {
	ids, err := record.OpenToBase.All(tx, tx.Account, c.Repo.ID, c.From)
	if err != nil {
		return err
	}
	for _, prID := range ids {
		pr, ok, err := record.Lock(tx, prID)
		if err != nil {
			return err
		}
		if !ok || pr.State != record.Open || pr.BaseRef != c.From {
			continue
		}
		if err := s.retarget(tx, pr, c.Repo.DefaultBranch); err != nil {
			return err
		}
	}
	return nil
}

// ByNumber finds a pull request of tx.Account by its number in a repository.
func ByNumber(tx *db.Tx, repoID string, number int64) (prID string, ok bool, err error) {
	return record.ByNumber.Maybe(tx, tx.Account, repoID, number)
}

// OfPull is the address of the page of a pull request here.
func (s *Service) OfPull(prID string) string { return s.url(prID) }

// HostPrefix begins the labels of people at code hosts.
const HostPrefix = codehost.Label + ":"

// HostLabel is the label of somebody at a code host.
func HostLabel(u codehost.User) string {
	if u.Login == "" {
		return codehost.Label
	}
	return HostPrefix + strings.ToLower(u.Login)
}
