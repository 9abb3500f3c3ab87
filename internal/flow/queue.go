package flow

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/blocker"
	"yardmaster/internal/domain/grant"
	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/queue"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/template"
)

// QueueRelations are what other domains know of tasks that wait. It is queue.Related:
// every method asks the domain that knows.
type QueueRelations struct{ TaskRelations }

// Seats is how many agents an account may run at once.
func (QueueRelations) Seats(tx *db.Tx, account string) (int64, error) {
	return grant.Seats(tx, account)
}

// Parked lists the tasks whose runs wait for what people are to give.
func (QueueRelations) Parked(tx *db.Tx) ([]string, error) { return blocker.Parked(tx) }

// PullHead is the head of a pull request while it is open, and empty otherwise.
func (QueueRelations) PullHead(tx *db.Tx, prID string) (string, error) { return pull.HeadOf(tx, prID) }

// QueueTemplates tells what templates demand. It is queue.Templates.
type QueueTemplates struct{}

// Need is what a template of an account demands of a box, and of the account's
// keys; false if there is no template of the name.
func (QueueTemplates) Need(tx *db.Tx, acct, name string) (queue.Need, bool, error) {
	t, ok, err := template.ByName(tx, acct, name)
	if err != nil || !ok {
		return queue.Need{}, ok, err
	}
	var keys []modelkey.Candidate
	if t.Agent != template.Command {
		if keys, err = modelkey.Candidates(tx, acct, wishOf(t)); err != nil {
			return queue.Need{}, false, err
		}
	}
	out := demand(t, keys)
	err = complete(tx, acct, t, keys, &out)
	return out, true, err
}

// complete adds to a demand which keys rest, or since when it is one that the account cannot
// meet.
func complete(tx *db.Tx, acct string, t template.Template, keys []modelkey.Candidate, n *queue.Need) (err error) {
	if n.Rest = restOf(modelkey.PauseOf(keys, tx.Now)); n.Rest.Until.IsZero() {
		return lackSince(tx, acct, t, n)
	}
	if n.Own, err = modelkey.OwnServe(tx, acct, wishOf(t)); err != nil {
		return err
	}
	return lentFor(tx, acct, t, n)
}

func restOf(p modelkey.Pause) queue.Rest {
	return queue.Rest{Since: p.Since, Until: p.Until, Why: modelkey.RestWords(p.Why), Passes: p.Passes()}
}

// lentFor adds to a demand for which repositories others have lent a key that fits.
func lentFor(tx *db.Tx, acct string, t template.Template, n *queue.Need) error {
	all, err := modelkey.LentTo(tx, acct, wishOf(t))
	n.Lent = make(map[string]queue.Rest, len(all))
	for repoID, p := range all {
		n.Lent[repoID] = restOf(p)
	}
	return err
}

// lackSince completes a demand that the account cannot meet: since when. A template may have
// demanded something else before its last change.
func lackSince(tx *db.Tx, acct string, t template.Template, n *queue.Need) error {
	if n.NoKey == "" && n.WrongProvider == "" && !n.NoModel {
		return nil
	}
	if t.UpdatedAt != nil {
		n.LackAt = *t.UpdatedAt
	}
	at, err := modelkey.LastDeleted(tx, acct, wishOf(t))
	if at.After(n.LackAt) {
		n.LackAt = at
	}
	if err != nil || n.NoKey == "" {
		return err
	}
	return lentFor(tx, acct, t, n)
}

// Needs is Need for several templates, by name.
func (QueueTemplates) Needs(tx *db.Tx, acct string, names []string) (map[string]queue.Need, error) {
	found, err := template.ByNames(tx, acct, names)
	if err != nil {
		return nil, err
	}
	all := slices.Collect(maps.Values(found))
	keys, err := candidatesOf(tx, acct, all)
	out := make(map[string]queue.Need, len(found))
	if err != nil {
		return nil, err
	}
	for i, t := range all {
		n := demand(t, keys[i])
		if err := complete(tx, acct, t, keys[i], &n); err != nil {
			return nil, err
		}
		out[t.Name] = n
	}
	return out, nil
}

// candidatesOf lists the keys for each of several templates.
func candidatesOf(tx *db.Tx, acct string, all []template.Template) ([][]modelkey.Candidate, error) {
	wishes := make([]modelkey.Wish, len(all))
	for i, t := range all {
		wishes[i] = wishOf(t)
	}
	return modelkey.CandidatesOf(tx, acct, wishes)
}

// demand is what a template demands of a box, and of the account's keys, of which those
// are given that fit.
func demand(t template.Template, keys []modelkey.Candidate) queue.Need {
	out := queue.Need{Agent: string(t.Agent), Isolation: string(t.Isolation)}
	if t.Agent == template.Command {
		return out
	}
	switch keyed := len(keys) > 0; {
	case !keyed && t.Provider != "" && !slices.ContainsFunc(t.APIs(), t.Provider.Speaks):
		out.WrongProvider = string(t.Provider)
	case !keyed:
		out.NoKey = missingKey(t)
	case cmp.Or(keys[0].ModelOf(t.Model), keys[0].Provider.DefaultModel()) == "":
		out.NoModel = true
	}
	return out
}

// compareTime is how long a box that claims waits for one answer: without it the
// task starts all the same.
const compareTime = 5 * time.Second

// QueueCommits asks the code host what commits change. It is queue.Commits.
type QueueCommits struct {
	DB    *db.DB
	Hosts *codehost.Hosts
}

// at finds a repository of any account, and the host that it is at.
func (f QueueCommits) at(ctx context.Context, repoID string) (r repo.Ref, host codehost.Host, err error) {
	err = f.DB.Read(ctx, func(tx *db.Tx) error {
		r, err = repoAnywhere(tx, repoID)
		return err
	})
	if err != nil {
		return r, nil, err
	}
	host, err = f.Hosts.Of(r.HostRepo())
	return r, host, err
}

// Changes lists the paths that a commit changes since it left the default branch.
func (f QueueCommits) Changes(ctx context.Context, repoID, sha string) ([]string, error) {
	r, host, err := f.at(ctx, repoID)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, compareTime)
	defer cancel()
	c, err := host.Compare(ctx, r.HostRepo(), r.DefaultBranch, sha)
	return c.Paths, err
}

// Conflicts tries a merge of two commits and lists the paths in conflict.
func (f QueueCommits) Conflicts(ctx context.Context, repoID, a, b string) ([]string, error) {
	if !codehost.ValidSHA(a) || !codehost.ValidSHA(b) {
		return nil, fmt.Errorf("%q or %q is no commit", a, b)
	}
	r, host, err := f.at(ctx, repoID)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, compareTime)
	defer cancel()
	_, paths, err := host.Mergeable(ctx, r.HostRepo(), a, b)
	return paths, err
}
