package ask

import (
	"cmp"
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
	TaskID    string // its task
	TaskTitle string
	Kind      string     // of the task
	RepoID    string     // repository of the run
	Repo      string     // its owner/name
	Text      reach.Text // that the run was given
	// Weaker says that a task in the repository of the run has a weaker sandbox than the
	// run has.
	Weaker bool
	// Serves is the task whose work the run is for, which has the limit that all asks of its
	// runs share: the run's own, or the one whose pull request the run looks after. AskID is
	// the ask that Serves answers, and BudgetMicros its limit; nil: none.
	Serves       string
	AskID        *string
	BudgetMicros *int64
}

// says begins a sentence about what the run asks for.
func (o *Origin) says() string {
	return fmt.Sprintf("The run %s of the task %q (%s) in %s asks for work", o.RunID, clip(oneLine(o.TaskTitle), maxTitle), o.TaskID, o.Repo)
}

// Wait decides whether an ask of the run for work in a repository waits for a person; nil
// if a judge may read it. named is the owner/name of the repository. ok is false if the
// run may file no ask at all; one that is filed nevertheless waits.
func (o *Origin) Wait(v reach.Verb, repoID, named string) (w *Wait, ok bool) {
	to := reach.Own
	switch {
	case repoID != o.RepoID:
		to = reach.Other
	case o.Weaker:
		to = reach.Wider
	}
	d := reach.Of(o.Kind, v, to, o.Text)
	if d.Outcome == reach.Done {
		return nil, true
	}
	reason := cmp.Or(d.Reason, reach.MoreRights)
	why := map[string]string{
		reach.OtherRepository: "It is another repository than its own.",
		reach.MoreRights:      "The work would have more rights than the run has.",
		reach.StrangersText:   "The run was given text of strangers.",
	}[reason]
	if o.Text == reach.Fork {
		why = "The run is about a fork."
	} else if o.Text == reach.Strangers && reason != reach.StrangersText {
		why += " The run was given text of strangers."
	}
	return &Wait{reason, fmt.Sprintf("%s in %s. %s", o.says(), named, why)}, d.Outcome == reach.Waits
}

// OfRun is an ask that a run declared.
type OfRun struct {
	Origin
	By        *string // the person whose work the run's task is; nil: nobody's
	ID        string  // id of the declaration, unique in the run
	Title     string
	Body      string
	For       string // owner/name of the repository that the work is in; the run's own when empty
	DedupeKey string
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
		Scopes: policy.Scopes(policy.WriteTasks), From: &o.Origin, RequestedBy: new(string),
		DedupeKey: clip(oneLine(o.ID), maxTitle), Namespace: FromRun + ":" + o.RunID,
	}
	if o.By != nil {
		f.RequestedBy = o.By
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
		wait = &Wait{UnknownRepository, fmt.Sprintf("%s in %q, which is no repository of this account.",
			o.says(), clip(oneLine(o.For), maxTitle))}
	}
	f.Wait = wait
	if o.DedupeKey != "" { // later runs in the repository, and retries, may declare the same
		f.DedupeKey, f.Namespace, f.apart = clip(oneLine(o.DedupeKey), maxTitle), FromRun+":"+o.RepoID, true
	}
	_, _, err = file(tx, f)
	return err
}
