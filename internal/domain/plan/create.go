package plan

import (
	"cmp"
	"fmt"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

// Unit is a group of a plan to be made: one pull request.
type Unit struct {
	Slug      string // unique in the plan
	Repo      task.Repo
	Title     string
	Problem   string
	Files     []string
	Template  string            // "" for the repository's template
	DependsOn map[string]string // slug -> kind of the edge
}

// Draft is a plan to be made.
type Draft struct {
	Repo     task.Repo // repository of the first group
	Overview string
	Source   string
	AskID    *string
	Hold     bool // whether the plan waits for approval
	// RequestedBy is the id of the person whose work the plan is. Nil is the
	// actor, and empty is nobody.
	RequestedBy *string
	Units       []Unit

	dir      *string
	revision int64
	digest   string
	commit   *string
}

// Author makes a plan of the units into which a judge has cut an ask, as a rule
// one slice for a repository, and mints its tasks unless the plan is held. A
// unit may depend only on units before it. Author returns fault.Invalid about
// units that break a rule, fault.Conflict with the slug repo_not_enabled, and
// the faults of task.Service.Create.
func (s *Service) Author(tx *db.Tx, d Draft) (planID string, err error) {
	d.revision = 1
	known := map[string]bool{}
	for i, u := range d.Units {
		for up, kind := range u.DependsOn {
			if !known[up] || kind != Code && kind != OrderingOnly {
				return "", fault.Field(fmt.Sprintf("units.%d.depends_on", i), "must name units before it")
			}
		}
		if u.Slug == "" || known[u.Slug] {
			return "", fault.Field(fmt.Sprintf("units.%d.slug", i), "must be there, once")
		}
		known[u.Slug] = true
	}
	if len(d.Units) == 0 || len(d.Units) > maxUnits {
		return "", fault.Field("units", fmt.Sprintf("must be 1 to %d", maxUnits))
	}
	p, _, err := s.record(tx, d)
	return p.ID, err
}

// AuthorTasks is Author, and returns the tasks that were minted with the plan; there are none
// of a plan that is held.
func (s *Service) AuthorTasks(tx *db.Tx, d Draft) (planID string, taskIDs []string, err error) {
	planID, err = s.Author(tx, d)
	if err != nil || d.Hold {
		return planID, nil, err
	}
	n, err := readNet(tx, planID)
	if err != nil {
		return planID, nil, err
	}
	return planID, n.work(), nil
}

// record stores a plan and mints its tasks unless the plan is held. A directory
// has one plan for each revision: if it exists, record returns it, with
// existing true.
func (s *Service) record(tx *db.Tx, d Draft) (p row, existing bool, err error) {
	p = row{
		ID: id.New(), AccountID: tx.Account, RepoID: d.Repo.ID, Title: d.Units[0].Title, Overview: d.Overview, Source: d.Source, Dir: d.dir,
		Revision: d.revision, Digest: d.digest, CommitSHA: d.commit, Hold: d.Hold, AskID: d.AskID, CreatedBy: author(tx), CreatedAt: tx.Now,
		RequestedBy: requester(tx, d.RequestedBy),
	}
	made, err := insert(tx, &p)
	if err != nil {
		return p, false, err
	}
	if !made {
		p, err = selectByDir.One(tx, selectByDirArgs{
			AccountID: tx.Account, RepoID: d.Repo.ID, Dir: d.dir, Revision: d.revision,
		})
		return p, true, err
	}
	if err := s.insertGroups(tx, &p, d.Units); err != nil {
		return p, false, err
	}
	err = createdEvent.Record(tx, event.Subject{ID: p.ID, RepoID: p.RepoID},
		createdData{Dir: p.Dir, Groups: len(d.Units), Held: d.Hold, Revision: p.Revision, Source: p.Source, Title: p.Title})
	if err != nil || d.Hold {
		return p, false, err
	}
	n, err := readNet(tx, p.ID)
	if err != nil {
		return p, false, err
	}
	_, err = s.mintTasks(tx, &p, n)
	return p, false, err
}

// insertGroups stores the groups of a plan and their edges.
func (s *Service) insertGroups(tx *db.Tx, p *row, units []Unit) error {
	ids := map[string]string{}
	for i, u := range units {
		groupID := id.New()
		ids[u.Slug] = groupID
		_, err := insertGroup.Exec(tx, insertGroupArgs{
			ID: groupID, AccountID: tx.Account, PlanID: p.ID, RepoID: u.Repo.ID, Place: int64(i), Slug: u.Slug,
			Title: u.Title, Problem: u.Problem, Files: db.JSON[[]string]{V: append([]string{}, u.Files...)},
			Template: u.Template,
		})
		if err != nil {
			return err
		}
	}
	for _, u := range units {
		for up, kind := range u.DependsOn {
			if _, err := insertEdge.Exec(tx,
				insertEdgeArgs{GroupID: ids[u.Slug], UpstreamID: ids[up], PlanID: p.ID, Kind: kind}); err != nil {
				return err
			}
		}
	}
	s.touch(tx, p.ID)
	return nil
}

// mintTasks creates the tasks of a plan's held groups in this transaction, and
// stores their ids as the answer of its approval. It returns fault.Conflict
// with the slug repo_not_enabled, and the faults of task.Service.Batch.
func (s *Service) mintTasks(tx *db.Tx, p *row, n *net) ([]string, error) {
	repos := map[string]task.Repo{}
	for i := range n.groups {
		g := &n.groups[i]
		if _, known := repos[g.RepoID]; known || n.state(g) != Held {
			continue
		}
		r, err := s.Tasks.RepoByID(tx, g.RepoID)
		if err != nil {
			return nil, err
		}
		if !r.Enabled {
			return nil, fault.Reason("repo_not_enabled",
				"The repository "+r.FullName()+", which a held group of the plan works in, is not enabled.").With("repo", r.FullName())
		}
		repos[g.RepoID] = r
	}
	batch, err := s.Tasks.Batch(tx)
	if err != nil {
		return nil, err
	}
	// The person who approves a plan that nobody asked for becomes its
	// person.
	if p.RequestedBy == nil {
		p.RequestedBy = requester(tx, nil)
	}
	asker := new(string)
	if p.RequestedBy != nil {
		asker = p.RequestedBy
	}
	// Who approves what somebody else has asked for does not lend out the other's token.
	approver := policy.From(tx.Context()).UserID
	unbound := approver != "" && *asker != approver
	texts, err := selectProblems.All(tx, tx.Account, p.ID)
	if err != nil {
		return nil, err
	}
	problems := make(map[string]string, len(texts))
	for _, t := range texts {
		problems[t.ID] = t.Problem
	}
	var labels map[string]string
	if p.AskID != nil {
		if labels, err = s.Asks.LabelsOf(tx, *p.AskID); err != nil {
			return nil, err
		}
	}
	minted := []string{}
	for _, g := range n.order() {
		if n.state(g) != Held {
			continue
		}
		t, err := batch.Create(repos[g.RepoID], task.Spec{
			Kind: task.KindWork, Sink: task.SinkQueued, Title: g.Title, Problem: problems[g.ID], Priority: priority, Confidence: 1,
			Template: cmp.Or(g.Template, repos[g.RepoID].Template, s.Tasks.DefaultTemplate), DependsOn: n.upTasks(g.ID), Files: g.Files.V,
			AskID:       p.AskID,
			Labels:      labels,
			RequestedBy: asker,
			Unbound:     unbound,
		})
		if err != nil {
			return nil, err
		}
		if err := task.JoinPlan(tx, &t, p.ID, &g.ID); err != nil {
			return nil, err
		}
		n.tasks[g.ID] = []task.Row{t}
		minted = append(minted, t.ID)
	}
	p.ApprovedAt, p.ApprovedTasks = &tx.Now, &db.JSON[[]string]{V: minted}
	s.touch(tx, p.ID)
	_, err = approvePlan.Exec(tx, approvePlanArgs{row: *p, AccountID: tx.Account})
	return minted, err
}

// readNet reads the groups, edges and tasks of a plan of tx.Account.
func readNet(tx *db.Tx, planID string) (*net, error) {
	groups, err := selectGroups.All(tx, tx.Account, planID)
	if err != nil {
		return nil, err
	}
	edges, err := selectEdges.All(tx, planID)
	if err != nil {
		return nil, err
	}
	tasks, err := task.OfPlan(tx, planID)
	return newNet(groups, edges, tasks), err
}

// find reads a plan of tx.Account. It returns fault.NotFound in the same words
// for unknown, foreign and malformed ids.
func find(tx *db.Tx, planID string) (row, error) {
	if !id.Valid(planID) {
		return row{}, fault.Missing("plan")
	}
	p, ok, err := selectPlan.Maybe(tx, tx.Account, planID)
	if err == nil && !ok {
		err = fault.Missing("plan")
	}
	return p, err
}

// findNet reads a plan as find does, with its groups, their edges and tasks.
func findNet(tx *db.Tx, planID string) (row, *net, error) {
	p, err := find(tx, planID)
	if err != nil {
		return row{}, nil, err
	}
	n, err := readNet(tx, p.ID)
	return p, n, err
}

// enabled finds a repository on which agents may work. It returns
// fault.NotFound for one that is unknown or not enabled.
func (s *Service) enabled(tx *db.Tx, name string) (task.Repo, error) {
	owner, repo, _ := cutLast(name, "/")
	r, ok, err := s.Tasks.RepoByName(tx, owner, repo)
	if err == nil && (!ok || !r.Enabled) {
		err = fault.New(fault.NotFound, "", "There is no such repository, or it is not enabled.")
	}
	return r, err
}

// requester returns the person who asks for a plan: named, or else the actor;
// nil for nobody.
func requester(tx *db.Tx, named *string) *string {
	user := policy.From(tx.Context()).UserID
	if named != nil {
		user = *named
	}
	if user == "" {
		return nil
	}
	return &user
}

func author(tx *db.Tx) string {
	if a := policy.From(tx.Context()); !a.Anonymous() {
		return a.Label()
	}
	return "system"
}
