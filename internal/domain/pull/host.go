package pull

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/intent"
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

// kept tells whether the host of a repository keeps pull requests: then an intent opens
// and closes them there. At another host the rows here are all there is of them.
func (s *Service) kept(r repo.Ref) bool {
	forge, err := s.Hosts.Forge(r.HostRepo())
	return err == nil && forge.Can(codehost.KeepPulls)
}

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
	pr, ok, err := byID.Maybe(tx, tx.Account, c.Object)
	return ok && pr.State == Opening, err
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
	n, err := nextOpening.One(tx, r.ID)
	if err != nil {
		return "", err
	}
	prID = id.New()
	if _, err := insert.Exec(tx, insertArgs{
		ID: prID, AccountID: tx.Account, RepoID: r.ID, Number: n, Title: p.Title, Body: p.Body, URL: s.url(prID),
		State: Opening, HeadRef: p.Branch, BaseRef: r.DefaultBranch, HeadSHA: p.HeadSHA, BaseSHA: p.BaseSHA,
		TaskID: &p.TaskID, AuthorKind: ByAgent, CreatedAt: tx.Micros(), Babysit: BabysitWatching,
	}); err != nil {
		return "", err
	}
	if _, err := openAtHost.Put(tx, s.Hub, intent.Want[openArgs]{
		Repo: r, Object: prID, Rank: intent.ForRuns,
		Args: openArgs{Title: p.Title, Body: p.Body, Head: p.Branch, Base: r.DefaultBranch, HeadSHA: p.HeadSHA},
	}); err != nil {
		return "", err
	}
	return prID, TaskAwaits.Send(tx, Progress{TaskID: p.TaskID, PRID: prID})
}

// opened records that a host has opened a pull request, or has refused to.
func (s *Service) opened(tx *db.Tx, c intent.Call[openArgs], at codehost.Pull, failure error) error {
	pr, ok, err := lock(tx, c.Object)
	switch {
	case err != nil || !ok:
		return err
	case failure != nil && pr.State == Opening:
		return s.close(tx, pr, refusedWhy(failure), "code-host")
	case failure != nil:
		return nil
	case pr.State != Opening: // the task was cancelled meanwhile
		if _, err := setNumber.Exec(tx, numbered(tx, pr.ID, at)); err != nil {
			return err
		}
		pr.Number = at.Number
		return s.closeThere(tx, c.Repo, pr)
	}
	if _, err := setOpened.Exec(tx, numbered(tx, pr.ID, at)); err != nil {
		return err
	}
	taskID := ""
	if pr.TaskID != nil {
		taskID = *pr.TaskID
	}
	data := openedData{HeadSHA: pr.HeadSHA, Number: at.Number, TaskID: taskID}
	if err := openedEvent.Record(tx, event.Subject{ID: pr.ID, RepoID: pr.RepoID}, data); err != nil {
		return err
	}
	pr.State, pr.Number = Open, at.Number
	if at.HeadSHA != "" && at.HeadSHA != pr.HeadSHA {
		return s.moveHead(tx, c.Repo, pr, at.HeadSHA)
	}
	return s.check(tx, c.Repo, pr)
}

// numbered are the fields that a host gives a pull request which it opens.
func numbered(tx *db.Tx, prID string, at codehost.Pull) setNumberArgs {
	return setNumberArgs{
		ID: prID, Number: at.Number, HostURL: at.URL, HostAt: db.Micros(at.UpdatedAt), Author: at.Author.Login, Now: tx.Micros(),
	}
}

// refusedWhy is the reason for which a pull request was closed that its host did not
// open.
func refusedWhy(err error) string {
	if errors.Is(err, codehost.ErrNoCommits) {
		return ClosedEmpty
	}
	return ClosedRefused
}

// closeThere closes a pull request at its host, if that keeps pull requests.
func (s *Service) closeThere(tx *db.Tx, r repo.Ref, pr row) error {
	if !s.kept(r) || pr.Number <= 0 {
		return nil
	}
	_, err := closeAtHost.Put(tx, s.Hub, intent.Want[closeArgs]{
		Repo: r, Object: pr.ID, Rank: intent.ForRuns, Args: closeArgs{Number: pr.Number},
	})
	return err
}

// HostChanged records what a host says of a pull request. What is older than what is
// recorded changes nothing. What is as new may be older all the same, because hosts count
// whole seconds and deliveries come in any order: then the host is asked. A pull request
// of a person is recorded as well.
func (s *Service) HostChanged(ctx context.Context, r repo.Ref, e codehost.PullChanged) error {
	again, err := s.hostChanged(ctx, r, e, false)
	if err != nil || !again {
		return err
	}
	forge, err := s.Hosts.Forge(r.HostRepo())
	if err != nil {
		return err
	}
	switch now, _, err := forge.Pull(ctx, r.HostRepo(), e.Pull.Number, ""); {
	case err == nil:
		e.Pull = now
	case !errors.Is(err, codehost.ErrCannot) && !errors.Is(err, codehost.ErrNotFound):
		return err
	}
	_, err = s.hostChanged(ctx, r, e, true)
	return err
}

// hostChanged records what a host says of a pull request. It changes nothing, and answers
// true, if that may be older than what is recorded and is not of now.
func (s *Service) hostChanged(ctx context.Context, r repo.Ref, e codehost.PullChanged, ofNow bool) (again bool, err error) {
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		again = false
		known, ok, err := byNumber.Maybe(tx, tx.Account, r.ID, e.Pull.Number)
		if err != nil {
			return err
		}
		if !ok {
			return s.appeared(tx, r, e.Pull)
		}
		pr, ok, err := lock(tx, known)
		if err != nil || !ok || db.Micros(e.Pull.UpdatedAt) < pr.HostAt {
			return err
		}
		if again = db.Micros(e.Pull.UpdatedAt) == pr.HostAt && !ofNow && e.Action == "opened"; again {
			return nil
		}
		return s.mirror(tx, r, pr, e)
	})
	return again, err
}

// appeared records a pull request that the server did not open, once it is open. One
// that the server is opening is left to the answer of the host.
func (s *Service) appeared(tx *db.Tx, r repo.Ref, p codehost.Pull) error {
	if !p.Open || !r.Enabled || p.Author.Own {
		return nil
	}
	if err := repo.Lock(tx, r.ID); err != nil {
		return err
	}
	kind, babysit := ByPerson, BabysitOff
	if p.Author.Bot {
		kind = ByBot
	}
	if r.Policy.Watches(p.Author.Bot, p.Labels) && !p.Fork {
		babysit = BabysitWatching
	}
	prID := id.New()
	if _, err := insert.Exec(tx, insertArgs{
		ID: prID, AccountID: tx.Account, RepoID: r.ID, Number: p.Number, Title: p.Title, Body: p.Body, URL: s.url(prID), State: Open,
		HeadRef: headRef(p), BaseRef: p.BaseRef, HeadSHA: p.HeadSHA, BaseSHA: p.BaseSHA, AuthorKind: kind, CreatedAt: tx.Micros(),
		Babysit: babysit,
	}); err != nil {
		return err
	}
	if err := s.note(tx, prID, p); err != nil {
		return err
	}
	data := openedData{HeadSHA: p.HeadSHA, Number: p.Number}
	if err := openedEvent.Record(tx, event.Subject{ID: prID, RepoID: r.ID}, data); err != nil {
		return err
	}
	pr, err := byID.One(tx, tx.Account, prID)
	if err != nil {
		return err
	}
	if _, err := lookAgain.Exec(tx, prID); err != nil {
		return err
	}
	s.Hub.Notify(tx, event.PullTopic)
	return s.check(tx, r, pr)
}

// headRef is the branch of a pull request; that of a fork is the ref which the host
// keeps of its head in the repository.
func headRef(p codehost.Pull) string {
	if p.Fork {
		return fmt.Sprintf("refs/pull/%d/head", p.Number)
	}
	return p.HeadRef
}

// note records the fields of a pull request that decide nothing.
func (s *Service) note(tx *db.Tx, prID string, p codehost.Pull) error {
	labels := slices.Clone(p.Labels)
	if labels == nil {
		labels = []string{}
	}
	_, err := setMirror.Exec(tx, setMirrorArgs{
		ID: prID, Title: p.Title, Body: p.Body, HostURL: p.URL, HostAt: db.Micros(p.UpdatedAt), Author: p.Author.Login,
		Draft: p.Draft, Fork: p.Fork, Labels: db.JSON[[]string]{V: labels},
	})
	return err
}

// mirror brings a locked pull request up to what its host says.
func (s *Service) mirror(tx *db.Tx, r repo.Ref, pr row, e codehost.PullChanged) error {
	p, who := e.Pull, HostLabel(e.By)
	if err := s.note(tx, pr.ID, p); err != nil {
		return err
	}
	wasDraft := pr.Draft
	pr.Draft, pr.Labels.V = p.Draft, p.Labels
	switch {
	case p.Merged && pr.State == Open:
		return s.mergedThere(tx, pr, p, who)
	case !p.Open && pr.State == Open:
		return s.close(tx, pr, ClosedAtHost, who)
	case p.Open && pr.State == Closed && pr.ClosedWhy != ClosedCancelled:
		return s.reopenRow(tx, r, pr, p.HeadSHA, who)
	case !p.Open || pr.State != Open:
		return nil
	}
	if p.BaseRef != pr.BaseRef {
		if err := s.retarget(tx, pr, p.BaseRef); err != nil {
			return err
		}
		pr.BaseRef = p.BaseRef
	}
	if p.HeadSHA != pr.HeadSHA {
		if _, err := headMoved.Exec(tx, pr.ID, who); err != nil {
			return err
		}
		s.Hub.Notify(tx, event.PullTopic)
		return s.moveHead(tx, r, pr, p.HeadSHA)
	}
	if e.Action == "dequeued" {
		return s.Queue.Expelled(tx, r, pr.ID, e.Reason)
	}
	if err := s.rewatch(tx, r, &pr); err != nil {
		return err
	}
	if wasDraft && !p.Draft && passed(pr.Checks) {
		return s.green(tx, r, pr)
	}
	return nil
}

// rewatch begins or ends the watch of a pull request of people, as the policy and its
// labels say. A round that goes on is not ended.
func (s *Service) rewatch(tx *db.Tx, r repo.Ref, pr *row) error {
	if pr.AuthorKind == ByAgent || pr.Fork {
		return nil
	}
	wanted := pr.Watch == WatchOn || pr.Watch != WatchOff && r.Policy.Watches(pr.AuthorKind == ByBot, pr.Labels.V)
	switch {
	case wanted && pr.Babysit == BabysitOff:
		if _, err := rearmPull.Exec(tx,
			rearmPullArgs{ID: pr.ID, Babysit: BabysitWatching, Forgiven: pr.Forgiven, ArmedAt: tx.Micros()}); err != nil {
			return err
		}
		pr.Babysit = BabysitWatching
		s.Hub.Notify(tx, event.PullTopic)
		if passed(pr.Checks) {
			return s.green(tx, r, *pr)
		}
	case !wanted && (pr.Babysit == BabysitWatching || pr.Babysit == BabysitSpent):
		if _, err := setBabysit.Exec(tx, setBabysitArgs{ID: pr.ID, Babysit: BabysitOff, UpdatedAt: tx.Micros()}); err != nil {
			return err
		}
		pr.Babysit = BabysitOff
		if _, err := withdraw.Exec(tx, pr.ID, tx.Micros()); err != nil {
			return err
		}
		return s.needs(tx, pr.ID, "")
	}
	return nil
}

// mergedThere records a merge that the host tells of. One that the server has begun is
// left to the answer of the host.
func (s *Service) mergedThere(tx *db.Tx, pr row, p codehost.Pull, who string) error {
	a, open, err := openAction.Maybe(tx, pr.ID)
	if err != nil {
		return err
	}
	if queued, err := s.mergedInQueue(tx, pr, a, p); err != nil || queued || open && a.State == ActionApproved && a.Tries > 0 {
		return err
	}
	if p.MergedBy != nil {
		who = HostLabel(*p.MergedBy)
	}
	if p.HeadSHA != "" {
		pr.HeadSHA = p.HeadSHA
	}
	return s.mergedByHand(tx, pr, p.MergeSHA, who)
}

// retarget records that somebody gave a pull request another base: what was asked about
// it is of no use any more.
func (s *Service) retarget(tx *db.Tx, pr row, base string) error {
	if _, err := setBase.Exec(tx, pr.ID, base, tx.Micros()); err != nil {
		return err
	}
	if _, err := staleActions.Exec(tx, pr.ID, tx.Micros()); err != nil {
		return err
	}
	if _, err := otherBase.Exec(tx, pr.ID); err != nil {
		return err
	}
	s.Hub.Notify(tx, event.PullTopic)
	return s.needs(tx, pr.ID, "")
}

// ByNumber finds a pull request of tx.Account by its number in a repository.
func ByNumber(tx *db.Tx, repoID string, number int64) (prID string, ok bool, err error) {
	return byNumber.Maybe(tx, tx.Account, repoID, number)
}

// OfPull is the address of the page of a pull request here.
func (s *Service) OfPull(prID string) string { return s.url(prID) }

// address is where people find a pull request.
func (s *Service) address(r row) string {
	if r.HostURL != "" {
		return r.HostURL
	}
	return s.url(r.ID)
}

// HostPrefix begins the labels of people at code hosts.
const HostPrefix = "code-host:"

// HostLabel is the label of somebody at a code host.
func HostLabel(u codehost.User) string {
	if u.Login == "" {
		return "code-host"
	}
	return HostPrefix + strings.ToLower(u.Login)
}
