package queue

import (
	"fmt"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/budget"
	"yardmaster/internal/domain/measure"
	"yardmaster/internal/domain/task"
)

var (
	getRepo = db.Q[task.Repo](`SELECT id, owner, name, enabled, default_branch, '' AS clone_url, '' AS template, '' AS isolation,
		0 AS check_timeout, '' AS conflicts FROM repos WHERE account_id = $1 AND owner = $2 AND name = $3`)
	getRepoByID = db.Q[task.Repo](`SELECT id, owner, name, enabled, default_branch, '' AS clone_url, '' AS template, '' AS isolation,
		0 AS check_timeout, '' AS conflicts FROM repos WHERE id = $1`)
)

// others answers for the domains that tasks and the queue ask.
type others struct {
	f         *fixture
	gone      string   // a template that is not there any more
	conflicts string   // of the policy of every repository
	several   bool     // refuses what is asked about one repository or template
	asked     []string // of several repositories and templates, if several is set
	needs     map[string]task.PullNeed
	waited    map[string]task.PullWait
	lacks     map[string]string    // permissions, by repository
	shapes    map[string]task.Repo // of repositories, as far as InTheWay and Unborn
	parked    []string             // tasks
	needed    *Need                // of every template, if it is set
}

func (o *others) ByName(tx *db.Tx, owner, name string) (task.Repo, bool, error) {
	return getRepo.Maybe(tx, tx.Account, owner, name)
}

func (o *others) ByID(tx *db.Tx, id string) (task.Repo, error) {
	if o.several {
		return task.Repo{}, fmt.Errorf("asked for one repository")
	}
	r, err := getRepoByID.One(tx, id)
	r.Conflicts, r.Lacks, r.InTheWay, r.Unborn = o.conflicts, o.lacks[id], o.shapes[id].InTheWay, o.shapes[id].Unborn
	return r, err
}

func (o *others) ByIDs(tx *db.Tx, ids []string) (map[string]task.Repo, error) {
	o.note("%d repositories", len(ids))
	out := map[string]task.Repo{}
	for _, id := range ids {
		r, err := getRepoByID.One(tx, id)
		if err != nil {
			return nil, err
		}
		r.Conflicts, r.Lacks, r.InTheWay, r.Unborn = o.conflicts, o.lacks[id], o.shapes[id].InTheWay, o.shapes[id].Unborn
		out[id] = r
	}
	return out, nil
}

func (o *others) note(format string, a ...any) {
	if o.several {
		o.asked = append(o.asked, fmt.Sprintf(format, a...))
	}
}

// templates are those of every account.
var templates = map[string]Need{"default": {Agent: "claude"}, "other": {Agent: "codex"}, "gone": {Agent: "claude"},
	"mute": {Agent: "command"}}

func (o *others) Exists(_ *db.Tx, _, name string) (bool, error) {
	_, ok := templates[name]
	return ok, nil
}

func (o *others) Need(_ *db.Tx, _, name string) (Need, bool, error) {
	if o.several {
		return Need{}, false, fmt.Errorf("asked for one template")
	}
	n, ok := templates[name]
	if ok && o.needed != nil {
		n = *o.needed
	}
	return n, ok && name != o.gone, nil
}

func (o *others) Needs(_ *db.Tx, account string, names []string) (map[string]Need, error) {
	o.note("%d templates of %s", len(names), account)
	out := map[string]Need{}
	for _, name := range names {
		if n, ok := templates[name]; ok && name != o.gone {
			out[name] = n
		}
	}
	return out, nil
}

func (o *others) Seats(*db.Tx, string) (int64, error) { return o.f.seats, nil }

func (o *others) Spent(tx *db.Tx, ids []string) (map[string]int64, error) {
	return measure.SpentOn(tx, ids)
}

func (o *others) SetAside(tx *db.Tx, ids []string) (map[string]int64, error) {
	return budget.SetAside(tx, ids)
}

func (o *others) Stops(*db.Tx, []string) ([]task.Stop, error)   { return nil, nil }
func (o *others) Wants(*db.Tx, []string) ([]task.Want, error)   { return nil, nil }
func (o *others) Parked(*db.Tx) ([]string, error)               { return o.parked, nil }
func (o *others) PullOpen(*db.Tx, string) (bool, error)         { return false, nil }
func (o *others) InPlan(*db.Tx, *task.Row) (*task.Plan, error)  { return nil, nil }
func (o *others) AskExists(*db.Tx, string) (bool, error)        { return false, nil }
func (o *others) Endings(*db.Tx, string) ([]task.Ending, error) { return nil, nil }
func (o *others) Pulse(*db.Tx, string) (*task.Pulse, error)     { return nil, nil }

func (o *others) Activities(*db.Tx, []string) (map[string]string, error) { return nil, nil }

func (o *others) PullWaits(*db.Tx, []string) (map[string]task.PullWait, error) { return o.waited, nil }

func (o *others) PullNeeds(*db.Tx, []string) (map[string]task.PullNeed, error) { return o.needs, nil }

// PullHead is part of the id of a pull request.
func (o *others) PullHead(_ *db.Tx, prID string) (string, error) {
	return strings.TrimPrefix(prID, "pr-"), nil
}
