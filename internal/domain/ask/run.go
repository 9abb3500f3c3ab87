package ask

import (
	"fmt"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/policy"
	"yardmaster/internal/reach"
)

// maxDepth is how many asks of agents may follow one another. The next one
// becomes a question to a person.
const maxDepth = 3

// maxOfRun is how many asks one run may file.
const maxOfRun = 20

// Origin is the run from which an ask comes.
type Origin struct {
	RunID     string
	TaskID    string
	TaskTitle string
	Kind      string     // of the task
	RepoID    string     // repository of the run
	Repo      string     // its owner/name
	Text      reach.Text // that the run was given
	// Weaker says that a task in the repository of the run has a weaker sandbox than the
	// run has.
	Weaker bool
}

// Wait decides whether an ask of the run for work in a repository waits for a person; nil
// if a judge may read it. named is the owner/name of the repository. ok is false if the
// run may file no ask at all.
func (o *Origin) Wait(v reach.Verb, repoID, named string) (w *Wait, ok bool) {
	to := reach.Own
	switch {
	case repoID != o.RepoID:
		to = reach.Other
	case o.Weaker:
		to = reach.Wider
	}
	d := reach.Of(o.Kind, v, to, o.Text)
	why := map[string]string{
		reach.OtherRepository: "It is another repository than its own.",
		reach.MoreRights:      "The work would have more rights than the run has.",
		reach.StrangersText:   "The run was given text of strangers.",
	}[d.Reason]
	if o.Text == reach.Strangers && d.Reason != reach.StrangersText {
		why += " The run was given text of strangers."
	}
	switch d.Outcome {
	case reach.Done:
		return nil, true
	case reach.Waits:
		return &Wait{d.Reason, fmt.Sprintf("The run %s of the task %q (%s) in %s asks for work in %s. %s",
			o.RunID, clip(oneLine(o.TaskTitle), maxTitle), o.TaskID, o.Repo, named, why)}, true
	}
	return nil, false
}

// OfRun is an ask that a run declared.
type OfRun struct {
	Origin
	AskID        *string // the ask that the run's task answers
	By           *string // the person whose work the run's task is; nil: nobody's
	BudgetMicros *int64  // the limit of the run's task; nil: none
	ID           string  // id of the declaration, unique in the run
	Title        string
	Body         string
	For          string // owner/name of the repository that the work is in; the run's own when empty
	DedupeKey    string
}

// FileOfRun files the declaration of a run, once for each. A judge reads what the table
// of package reach lets the run begin, with no more rights than the run's task has. What
// it does not let the run begin, what is for a repository that the account lacks, and
// what follows from more than maxDepth asks becomes a question to a person. Declarations
// that the table refuses, those beyond maxOfRun, and those without a title are dropped.
func (s *Service) FileOfRun(tx *db.Tx, o OfRun) error {
	n, err := countOfRun.One(tx, tx.Account, o.RunID)
	if err != nil || n >= maxOfRun || strings.TrimSpace(o.Title) == "" {
		return err
	}
	f := Filing{
		RepoIDs: []string{o.RepoID}, Title: o.Title, Body: o.Body, Source: FromRun, By: "run:" + o.RunID,
		Scopes: policy.Scopes(policy.WriteTasks), Strangers: o.Text != reach.Account,
		DedupeKey: clip(oneLine(o.ID), maxTitle), Namespace: FromRun + ":" + o.RunID, runID: o.RunID,
		fromTask: o.TaskID, depth: 1, RequestedBy: new(string),
		BudgetMicros: o.BudgetMicros,
	}
	if o.By != nil {
		f.RequestedBy = o.By
	}
	if o.AskID != nil {
		d, ok, err := depthOf.Maybe(tx, tx.Account, *o.AskID)
		if err != nil {
			return err
		}
		if ok {
			f.depth = d + 1
		}
	}
	named, known := o.Repo, true
	if o.For != "" {
		owner, name, _ := strings.Cut(o.For, "/")
		var other Repo
		switch other, known, err = repoByName.Maybe(tx, tx.Account, owner, name); {
		case err != nil:
			return err
		case known:
			f.RepoIDs, named = []string{other.ID}, other.FullName()
		}
	}
	wait, ok := o.Wait(reach.Ask, f.RepoIDs[0], named)
	switch {
	case !ok:
		return nil
	case !known:
		wait = &Wait{UnknownRepository, fmt.Sprintf("An agent asks for work in %q, which is no repository of this account.",
			clip(oneLine(o.For), maxTitle))}
	case wait == nil && f.depth > maxDepth:
		wait = &Wait{ChainTooLong, fmt.Sprintf("The run %s of the task %q (%s) in %s asks for work that follows from %d asks of agents before it.",
			o.RunID, clip(oneLine(o.TaskTitle), maxTitle), o.TaskID, o.Repo, maxDepth)}
	}
	f.Wait = wait
	if o.DedupeKey != "" {
		// Later runs in the repository, and retries, may declare the same. What waits for a
		// person takes no key from what does not.
		f.DedupeKey, f.Namespace = clip(oneLine(o.DedupeKey), maxTitle), FromRun+":"+o.RepoID
		if wait != nil {
			f.Namespace += ":" + wait.Reason + ":" + f.RepoIDs[0]
		}
	}
	_, _, err = file(tx, s.Hub, f)
	return err
}
