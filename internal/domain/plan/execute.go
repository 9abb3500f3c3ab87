package plan

import (
	"context"
	"errors"
	"fmt"

	"yardmaster/internal/api/op"
	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/fault"
)

type executeIn struct {
	Repo     string `json:"repo" pattern:"^[^/\\s]+/[^/\\s]+$" says:"must have the form OWNER/NAME" maxLength:"200" doc:"owner/name"`
	Dir      string `json:"dir" example:"plans/new-footer" doc:"the plan directory, from the root of the repository"`
	Revision *int64 `json:"revision,omitempty" minimum:"1" maximum:"1000000" doc:"one that has not been read yet reads the directory again, as a new plan; the newest one unless given"`
	DryRun   bool   `json:"dry_run,omitempty" doc:"record the plan held, to be approved"`
}

// Filed is the answer of plan.execute and plan.file.
type Filed struct {
	_         struct{} `doc:"The plan that was made of a directory, or was there."`
	Kind      string   `json:"kind" enum:"created,existing" doc:"existing: the directory was read before at this revision, and nothing was made"`
	PlanID    string   `json:"plan_id" format:"uuid" doc:"id of the plan"`
	Status    Status   `json:"status" example:"running" doc:"state of the plan"`
	Dir       string   `json:"dir" example:"plans/new-footer" doc:"its directory, from the root of the repository"`
	Revision  int64    `json:"revision" doc:"which reading of the directory it is, from 1"`
	CommitSHA *string  `json:"commit_sha" doc:"where the directory was read"`
	TaskIDs   []string `json:"task_ids" format:"uuid" doc:"what its approval minted; empty while it is held"`
}

func (s *Service) execute(ctx context.Context, in executeIn) (out Filed, err error) {
	var repo task.Repo
	revision, found := int64(1), false
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		if repo, err = s.enabled(tx, in.Repo); err != nil {
			return err
		}
		if !plainPath(in.Dir) {
			return fault.New(fault.Unprocessable, "plan-path",
				"The path is not that of a directory inside the repository: names with single slashes between them, without . and .. among them.")
		}
		var p row
		if in.Revision == nil {
			p, found, err = selectLast.Maybe(tx, tx.Account, repo.ID, in.Dir)
		} else {
			revision = *in.Revision
			p, found, err = selectByDir.Maybe(tx, selectByDirArgs{
				AccountID: tx.Account, RepoID: repo.ID, Dir: new(in.Dir), Revision: revision,
			})
		}
		if err != nil || !found {
			return err
		}
		out, err = filed(tx, &p, true)
		return err
	})
	if err != nil || found {
		return out, err
	}
	host, err := s.Hosts.Of(repo.HostRepo)
	if err != nil {
		return out, err
	}
	commit, files, err := host.ReadDir(ctx, repo.HostRepo, repo.DefaultBranch, in.Dir)
	switch {
	case errors.Is(err, codehost.ErrNotFound):
		return out, refused([]Problem{{onCodeHost, in.Dir, "there is no such directory on the default branch"}})
	case errors.Is(err, codehost.ErrTooLarge):
		return out, refused([]Problem{{onCodeHost, in.Dir, "the directory holds too many files, or too large a one"}})
	case err != nil:
		return out, err
	}
	d, problems := parse(files, false)
	if _, ok := files[StatusFile]; !ok {
		problems = append(problems, Problem{onDocuments, StatusFile, "is missing"})
	}
	if len(problems) > 0 {
		return out, refused(problems)
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if repo, err = s.enabled(tx, in.Repo); err != nil {
			return err
		}
		out, err = s.dispatch(tx, repo, &d,
			Draft{Source: SourceExecute, Hold: in.DryRun, dir: &in.Dir, revision: revision, commit: &commit})
		return err
	})
	return out, err
}

// dispatch records the plan that a directory describes. It returns
// fault.Unprocessable with the slug plan-invalid and all problems of the
// directory.
func (s *Service) dispatch(tx *db.Tx, repo task.Repo, d *directory, draft Draft) (Filed, error) {
	units, problems, err := s.units(tx, repo, d, *draft.dir)
	if err != nil {
		return Filed{}, err
	}
	if len(problems) > 0 {
		return Filed{}, refused(problems)
	}
	draft.Repo, draft.Overview, draft.Units, draft.digest = units[0].Repo, d.overview, units, d.digest
	draft.Repo = repo
	p, existing, err := s.record(tx, draft)
	if err != nil {
		return Filed{}, err
	}
	return filed(tx, &p, existing)
}

func filed(tx *db.Tx, p *row, existing bool) (Filed, error) {
	n, err := readNet(tx, p.ID)
	out := Filed{Kind: "created", PlanID: p.ID, Status: Status(n.progress(p).status), Revision: p.Revision, CommitSHA: p.CommitSHA,
		TaskIDs: []string{}}
	if p.Dir != nil {
		out.Dir = *p.Dir
	}
	if p.ApprovedTasks != nil {
		out.TaskIDs = append(out.TaskIDs, p.ApprovedTasks.V...)
	}
	if existing {
		out.Kind = "existing"
	}
	return out, err
}

// units makes units of a directory, one for each slice, and a last one that
// updates the status file; an empty dir has no such file. Slices that the
// status file calls done are left out.
func (s *Service) units(tx *db.Tx, repo task.Repo, d *directory, dir string) (units []Unit, problems []Problem, err error) {
	if d.status.Status == statusDone || d.status.Status == statusCancelled {
		return nil, []Problem{{onDocuments, StatusFile, "says that the plan is " + d.status.Status}}, nil
	}
	repos := map[string]task.Repo{"": repo, repo.FullName(): repo}
	for _, sl := range d.slices {
		if d.status.Units[sl.name] == statusDone {
			continue
		}
		r, known := repos[sl.repo]
		if !known {
			switch r, err = s.enabled(tx, sl.repo); {
			case fault.IsKind(err, fault.NotFound):
				problems = append(problems, Problem{onDocuments, sl.name + ".md",
					"repo: there is no repository " + sl.repo + ", or it is not enabled"})
				continue
			case err != nil:
				return nil, nil, err
			}
			repos[sl.repo] = r
		}
		u := Unit{Slug: sl.name, Repo: r, Title: sl.title, Problem: problem(d, &sl, repo, dir), Files: sl.files,
			DependsOn: map[string]string{}}
		for _, dep := range sl.dependsOn {
			if d.status.Units[dep.unit] != statusDone {
				u.DependsOn[dep.unit] = dep.kind
			}
		}
		units = append(units, u)
	}
	switch {
	case len(problems) > 0:
		return nil, problems, nil
	case len(units) == 0:
		return nil, []Problem{{onDocuments, StatusFile, "says that every slice is done"}}, nil
	case dir == "":
		return units, nil, nil
	}
	last := Unit{Slug: "status", Repo: repo, Title: finalTitle(d.title), Files: []string{dir + "/" + StatusFile},
		DependsOn: map[string]string{},
		Problem: fmt.Sprintf("Every other part of the plan in %s has merged. In %s/%s, set the status to %s, and that of every unit. Change "+
			"nothing else.",
			dir, dir, StatusFile, statusDone)}
	for _, u := range units {
		last.DependsOn[u.Slug] = OrderingOnly
	}
	return append(units, last), nil, nil
}

func finalTitle(plan string) string {
	title := []rune("Note that the plan is done: " + plan)
	return string(title[:min(len(title), maxTitle)])
}

// problem returns the problem of the task of a slice: the document, and its
// place in the plan.
func problem(d *directory, sl *slice, repo task.Repo, dir string) string {
	text := sl.body + "\n\n---\n\nThis is " + sl.name + ", one part of the plan \"" + d.title +
		"\". Do this part alone: the others are tasks of their own."
	if dir != "" {
		text += fmt.Sprintf(" The whole plan is in %s of the repository %s. Leave its %s as it is.", dir, repo.FullName(), StatusFile)
	}
	return text
}

// refused returns the fault for a directory that is no plan. It names all
// problems.
func refused(problems []Problem) *fault.Error {
	e := fault.New(fault.Unprocessable, "plan-invalid", sentence(problems)).With("problems", problems)
	e.Fields = map[string][]string{}
	for _, p := range problems {
		at := string(p.On)
		if p.Name != "" {
			at += "." + p.Name
		}
		e.Fields[at] = append(e.Fields[at], p.Detail)
	}
	return e
}
