// Package pull is the pull requests that agents open: their heads, the question to a
// person before a merge, and the merge itself. The code host has the facts of git, and
// package ci the checks of heads; numbers, states and decisions are rows of package record,
// which alone writes them. Package facts reads what is decided from, package trial what git
// says, package merge carries merges out, and package babysit has heads repaired.
//
//   - pull.go, life.go: how a pull request begins, moves and ends
//   - needs.go: decisions of people
//   - host.go, mirror.go: pull requests at hosts that keep them
//   - review.go: what the review of a head holds up
//   - hostreview.go: reviews of people at hosts that keep pull requests
//   - request.go: changes that people request here
//   - unapprove.go: approvals that are taken back
//   - action.go: what else agents ask people for
//   - word.go: whether agents look after it, as people ask for
//   - loop.go: the work that no request asks for
//   - diff.go, follow.go, state.go: the change, the lists, how it stands
//   - question.go: a question for those who ask it elsewhere
//   - compare.go: where package moves decides otherwise
package pull

import (
	"fmt"
	"log/slog"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/measure"
	"yardmaster/internal/domain/pull/babysit"
	"yardmaster/internal/domain/pull/facts"
	"yardmaster/internal/domain/pull/merge"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/pull/trial"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/needs"
	"yardmaster/internal/protocol"
)

// Request is a pull request as the API shows it.
type Request struct {
	_             struct{}              `doc:"A pull request of a repository, with its checks, its repair and what is asked about it."`
	ID            string                `json:"id" format:"uuid" doc:"id of the pull request; its number is only its repository's"`
	Repo          string                `json:"repo" doc:"owner/name"`
	Number        int64                 `json:"number" example:"42" doc:"its number in the repository; 0 while its host is yet to open it"`
	Title         string                `json:"title" doc:"its title, at first that of its task"`
	URL           string                `json:"url" format:"uri" example:"https://yardmaster.example.com/ui/prs/0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"address of its page, for people: at its host, or here if its host keeps no pull requests"`
	State         measure.PullState     `json:"state" example:"open" doc:"opening: its host is yet to open it"`
	Draft         bool                  `json:"draft" doc:"a draft is neither reviewed nor asked about"`
	Fork          bool                  `json:"fork" doc:"its branch is in another repository, where agents never push"`
	Author        *string               `json:"author" example:"null" doc:"login at its host of who opened it; null at a host that keeps no pull requests"`
	Labels        []string              `json:"labels" example:"[]" doc:"that its host has on it"`
	HeadRef       string                `json:"head_ref" example:"svc/fix-the-date--3f8a1c5e" doc:"the branch that is merged"`
	BaseRef       string                `json:"base_ref" example:"main" doc:"the branch that it is merged into"`
	HeadSHA       string                `json:"head_sha" doc:"newest commit of the branch; every decision names it"`
	BaseSHA       string                `json:"base_sha" doc:"the commit of the base that the head was last looked at with"`
	MergeSHA      *string               `json:"merge_sha" example:"null" doc:"the commit of the merge; null until it is merged"`
	Otherwise     *string               `json:"otherwise" example:"null" doc:"in which files the base has other content after the merge than the merge that was tried and approved, in words; null: in none"`
	PatchID       *string               `json:"patch_id" example:"null" doc:"git's patch-id of the change, the same after a rebase; null while it is not known"`
	Mergeable     string                `json:"mergeable" enum:"unknown,clean,conflict" example:"clean" doc:"whether it merges without a conflict; unknown until the head was looked at"`
	Checks        record.CheckResult    `json:"checks" example:"passed" doc:"of the present head; none: the policy names no check; failed: also one that was lost or cancelled"`
	Review        ReviewState           `json:"review" doc:"how far the review of the present head by agents has come"`
	Would         *record.Would         `json:"would" doc:"what its merge would do to the base as it is, which is more or less than the branch has changed; null while nobody has looked, if it conflicts, and once it is merged or closed"`
	Unwanted      *record.Unwanted      `json:"unwanted" doc:"what the present head changes that it should not, as a rule; null while nobody has looked"`
	Size          *record.Size          `json:"size" doc:"how much the present head changes; null while nobody has looked"`
	NeedsPerson   *record.Need          `json:"needs_person" doc:"what only a person can do about it; null: nothing"`
	TaskID        *string               `json:"task_id" format:"uuid" doc:"the task it came from; null without one"`
	AuthorKind    string                `json:"author_kind" enum:"agent,person,bot" example:"agent" doc:"who opened it: agent, for the work of a task; bot, a program at its host"`
	Babysit       record.Babysit        `json:"babysit" doc:"how far its repair by agents has come"`
	Queue         *record.QueuePlace    `json:"queue" doc:"its place in a merge queue; null: it is in none"`
	PendingAction *record.PendingAction `json:"pending_action" doc:"the question that waits for a person; null when nothing is asked"`
	CreatedAt     time.Time             `json:"created_at" doc:"when it was opened"`
	MergedAt      *time.Time            `json:"merged_at" example:"null" doc:"when it was merged; null until then"`
	MergedBy      *string               `json:"merged_by" example:"null" doc:"who decided the merge: user:<id>, policy when nobody had to be asked, or who pushed a merge made by hand; null until it is merged"`
	ClosedAt      *time.Time            `json:"closed_at" example:"null" doc:"when it was closed without a merge; null if it was not"`
	ClosedBy      *string               `json:"closed_by" example:"null" doc:"who cancelled its task, or pushed; null unless it is closed"`
	ClosedWhy     *record.Closing       `json:"closed_why" example:"null" doc:"cancelled: its task was; branch_deleted: by a push; nothing_left: a push left nothing on the branch that the base does not have; closed_at_host: somebody closed it there; refused_by_host: its host did not open it; asked: an agent asked for it, and a person said yes; null unless it is closed"`

	LeftOut []protocol.LeftOut `json:"left_out" doc:"what agents made and the pull request does not have"`
}

// ReviewState is what the review of a head has come to.
type ReviewState struct {
	_       struct{} `doc:"What the review of a head by agents has come to." schema:"ReviewState"`
	State   string   `json:"state" enum:"off,due,running,held,reviewed,blind,failed,cancelled" example:"reviewed" doc:"off: nobody has reviewed this head, nor does anybody; due: nobody knows yet whether there is a review; held: it goes on when what holds its task is cleared, such as a budget; blind: no model was there to review it; failed, cancelled: its review did not come to an end"`
	Verdict *string  `json:"verdict" enum:"success,failure" example:"success" doc:"failure: findings hold the merge, be they of an earlier head; success: this head was reviewed, and none does; null otherwise"`
	Holding int64    `json:"holding" example:"0" doc:"findings that hold the merge, of this head or an earlier one"`
}

// Detail is one pull request with its description.
type Detail struct {
	_ struct{} `doc:"One pull request, with its description." schema:"PullRequestDetail"`
	Request
	Body string `json:"body" example:"Computes the year." doc:"its description, Markdown: the report of the agent, or what its author wrote at its host"`
}

// Tasks is the part of tasks that pull requests need. All tasks are of tx.Account.
type Tasks interface {
	facts.Tasks
	babysit.Tasks
	// Reopen moves a task on that failed because its pull request was closed, after
	// the pull request was opened again; false if the task has gone on without it.
	Reopen(tx *db.Tx, taskID, prID string) (bool, error)
	// Spent is what tasks have cost, with the repair of their pull requests, in
	// micro-dollars by task.
	Spent(tx *db.Tx, taskIDs []string) (map[string]int64, error)
}

// People names the people and the agent behind a merge.
type People interface {
	merge.People
	babysit.People
	// At finds the user of tx.Account to whom an account at a host belongs.
	At(tx *db.Tx, host string, who codehost.User) (Known, error)
}

// Known is what is known here of somebody at a host.
type Known struct {
	Label  string // user:<id>; "" if it is not known for certain who it is
	Barred bool   // a member of the account whose role does not allow decisions
}

// Queue is the part of merge queues that pull requests need. All are of tx.Account.
type Queue interface {
	merge.Queue
	babysit.Queue
}

// Needs are the dependencies of Service.
type Needs struct {
	DB      *db.DB
	Hub     *event.Hub
	Due     *due.Kernel
	Hosts   *codehost.Hosts
	BaseURL string // of the pages of pull requests
	Logger  *slog.Logger
	Tasks   Tasks
	Checks  babysit.Checks
	Reviews babysit.Reviews
	People  People
	Intents *intent.Service
	Queue   Queue
	Bot     codehost.Person // signs the merge commits
}

// Service has the capabilities of pull requests.
type Service struct {
	Needs
	*facts.Reader
	*trial.Trials
	*merge.Merger
	*babysit.Sitter
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	s := &Service{Needs: n, Reader: facts.New(n.Tasks, n.Queue), Trials: trial.New(n.DB, n.Hosts)}
	s.Merger = merge.New(merge.Needs{
		DB: n.DB, Hub: n.Hub, Due: n.Due, Hosts: n.Hosts, BaseURL: n.BaseURL, Logger: n.Logger, Reader: s.Reader, Trials: s.Trials,
		Checks: n.Checks, People: n.People, Queue: n.Queue, Intents: n.Intents, Bot: n.Bot, Pulls: s,
	})
	s.Sitter = babysit.New(babysit.Needs{
		Hub: n.Hub, Reader: s.Reader, Tasks: n.Tasks, Checks: n.Checks, Reviews: n.Reviews, People: n.People, Queue: n.Queue, Pulls: s,
	})
	s.carryOut(n.Intents)
	return s
}

// Proposal is the finished work of a task, for a pull request.
type Proposal struct {
	TaskID, Title, Body      string
	Branch, HeadSHA, BaseSHA string
}

// Propose opens a pull request for pushed work, or moves the head of the open one of the
// same branch, and queues the check of the head. It fails with the fault of Checks.Queue.
func (s *Service) Propose(tx *db.Tx, r repo.Ref, p Proposal) (prID string, err error) {
	// The lock orders transactions that would take the same number.
	if err := repo.Lock(tx, r.ID); err != nil {
		return "", err
	}
	existing, ok, err := record.LockByHead(tx, r.ID, p.Branch)
	if err != nil {
		return "", err
	}
	if ok {
		if existing.HeadSHA != p.HeadSHA {
			return existing.ID, s.moveHead(tx, r, existing, p.HeadSHA)
		}
		return existing.ID, record.TaskAwaits.Send(tx, record.Progress{TaskID: p.TaskID, PRID: existing.ID})
	}
	if s.Kept(r) {
		return s.opening(tx, r, p)
	}
	n, err := record.NextNumber.One(tx, r.ID)
	if err != nil {
		return "", err
	}
	prID = id.New()
	if _, err := record.Insert.Exec(tx, record.InsertArgs{
		ID: prID, AccountID: tx.Account, RepoID: r.ID, Number: n, Title: p.Title, Body: p.Body, URL: s.url(prID),
		State: record.Open, HeadRef: p.Branch, BaseRef: r.DefaultBranch, HeadSHA: p.HeadSHA, BaseSHA: p.BaseSHA,
		TaskID: &p.TaskID, AuthorKind: record.ByAgent, CreatedAt: tx.Micros(), Babysit: record.BabysitWatching,
	}); err != nil {
		return "", err
	}
	opened := record.OpenedData{HeadSHA: p.HeadSHA, Number: n, TaskID: p.TaskID}
	if err := record.OpenedEvent.Record(tx, event.Subject{ID: prID, RepoID: r.ID}, opened); err != nil {
		return "", err
	}
	if err := record.TaskAwaits.Send(tx, record.Progress{TaskID: p.TaskID, PRID: prID}); err != nil {
		return "", err
	}
	pr, _, err := record.Read(tx, prID)
	if err != nil {
		return "", err
	}
	return prID, s.Check(tx, r, pr)
}

// url is the address of the page of a pull request.
func (s *Service) url(prID string) string { return record.PageAt(s.BaseURL, prID) }

func (s *Service) moveHead(tx *db.Tx, r repo.Ref, pr *record.Pull, sha string) error {
	carry, err := s.SetAside(tx, pr)
	if err != nil {
		return err
	}
	if err := s.help(tx, moving{facts.Moving{Pull: pr}}, pr.Needs, ""); err != nil {
		return err
	}
	pr.BeginHead(sha)
	pr.Carry = carry
	if err := record.Save(tx, pr); err != nil {
		return err
	}
	if err := s.answeredBy(tx, pr, sha); err != nil {
		return err
	}
	if err := record.HeadMovedEvent.Record(tx, event.Subject{ID: pr.ID, RepoID: r.ID}, record.HeadData{HeadSHA: sha}); err != nil {
		return err
	}
	if err := s.taskGoesOn(tx, pr); err != nil {
		return err
	}
	return s.Check(tx, r, pr)
}

// taskGoesOn tells the task of a pull request that it waits for checks again.
func (s *Service) taskGoesOn(tx *db.Tx, pr *record.Pull) error {
	if pr.TaskID == nil {
		return nil
	}
	return record.TaskAwaits.Send(tx, record.Progress{TaskID: *pr.TaskID, PRID: pr.ID})
}

// Check queues the repository's own check of a head, and moves the pull request on. If the
// repository names none, the head has passed.
func (s *Service) Check(tx *db.Tx, r repo.Ref, pr *record.Pull) error {
	if pr.AbandonedAt != nil {
		return s.Move(tx, pr)
	}
	own, host := "", ""
	if r.Policy.Checks.Command != "" && !pr.Fork {
		if err := s.Checks.Queue(tx, r, pr.ID, pr.HeadSHA); err != nil {
			return err
		}
		own = record.ChecksPending
	}
	if s.Kept(r) {
		if err := s.Checks.Follow(tx, r, pr.ID, pr.BaseRef, pr.HeadSHA); err != nil {
			return err
		}
		host = record.ChecksPending
	}
	pr.ChecksHold = ""
	if err := record.SetResults(tx, pr, record.Judgement{Own: own, Host: host}); err != nil {
		return err
	}
	return s.Move(tx, pr)
}

// CheckEnd is the end of the check of a head.
type CheckEnd struct {
	PRID, RepoID, SHA string
	Passed            bool
	ExitCode          *int   // nil: the command was never run to its end
	Why               string // the reason why there is no exit code
}

// CheckEnded moves a pull request on after the check of its head. The end of the check of
// another head changes nothing.
func (s *Service) CheckEnded(tx *db.Tx, c CheckEnd) error {
	pr, ok, err := record.Lock(tx, c.PRID)
	if err != nil || !ok || pr.HeadSHA != c.SHA {
		return err
	}
	j := record.Judgement{Own: record.ChecksFailed, Host: pr.HostChecks, Why: c.Why, Lost: !c.Passed && c.ExitCode == nil}
	if c.Passed {
		j.Own = record.ChecksPassed
	} else if c.ExitCode != nil {
		j.Why = fmt.Sprintf("the check exited with %d", *c.ExitCode)
	}
	switch machine := pr.ChecksHold == record.NeedsMachine; {
	case pr.State != record.Open:
		return record.SetResults(tx, pr, j)
	case j.Lost && !machine:
		pr.ChecksHold = record.NeedsMachine
	case !j.Lost && machine && j.Own == record.ChecksPassed:
		pr.ChecksHold = ""
	}
	if err := record.SetResults(tx, pr, j); err != nil {
		return err
	}
	return s.Move(tx, pr)
}
