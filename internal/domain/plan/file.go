package plan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"

	"yardmaster/internal/api/op"
	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/fault"
	"yardmaster/internal/lazy"
)

// filedUnder is the folder in which plan.file makes plan directories.
const filedUnder = "plans"

type fileIn struct {
	Repo      string            `json:"repo" pattern:"^[^/\\s]+/[^/\\s]+$" says:"must have the form OWNER/NAME" maxLength:"200" doc:"owner/name"`
	Slug      string            `json:"slug" example:"new-footer" doc:"names the directory, plans/<slug>: lower-case words with - between them"`
	Documents map[string]string `json:"documents" maxItems:"502" example:"{\"overview.md\":\"# New footer\",\"01-template.md\":\"# Change the template\"}" doc:"the files of the directory by name: overview.md, NN-slug.md, and status.yml, which is made if it is left out"`
	Scouts    []ScoutEvidence   `json:"scouts,omitempty" maxItems:"50" doc:"what the plan is grounded on"`
	Replaces  *string           `json:"replaces,omitempty" format:"uuid" doc:"the plan of this directory, held or failed, that these documents correct"`
	DryRun    bool              `json:"dry_run,omitempty" doc:"record the plan held, to be approved"`
}

// ScoutEvidence holds the citations of a scout in a repository.
type ScoutEvidence struct {
	_         struct{} `doc:"What a plan is grounded on in one repository." schema:"ScoutEvidence"`
	Repo      string   `json:"repo,omitempty" doc:"owner/name; that of the plan unless given"`
	Citations []string `json:"citations" maxItems:"500" maxLength:"600" example:"[\"web/footer.html:12\"]" doc:"path:line or path:line-line, at the default branch"`
}

var slugPattern = lazy.New(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// site is the state of a plan directory before plan.file writes it.
type site struct {
	repo    task.Repo
	newest  *row // newest plan of the directory
	status  string
	commit  string
	present map[string][]byte // its files
}

func (s *Service) file(ctx context.Context, in fileIn) (out Filed, err error) {
	files := map[string][]byte{}
	for name, text := range in.Documents {
		files[name] = []byte(text)
	}
	dir := path.Join(filedUnder, in.Slug)
	d, problems := parse(files, true)
	if !slugPattern.MatchString(in.Slug) || len(in.Slug) > maxName {
		problems = append(problems, Problem{onSlug, "", "must be lower-case words with - between them"})
		dir = filedUnder + "/none"
	} else if _, ok := files[StatusFile]; !ok && len(problems) == 0 {
		files[StatusFile] = d.statusText()
	}
	const tries = 5
	for range tries {
		at, err := s.inspect(ctx, in.Repo, dir)
		if err != nil {
			return out, err
		}
		found := append([]Problem{}, problems...)
		if at.commit == "" {
			found = append(found, Problem{onCodeHost, "", "the repository has no commit yet"})
		} else if found, err = s.checkCitations(ctx, at, in.Scouts, found); err != nil {
			return out, err
		}
		if len(found) > 0 {
			return out, refused(found)
		}
		revision := int64(1)
		if at.newest != nil {
			revision = at.newest.Revision + 1
		}
		switch same, err := at.check(d.digest, in.Replaces); {
		case err != nil:
			return out, err
		case same:
			err = s.DB.Read(ctx, func(tx *db.Tx) error {
				out, err = filed(tx, at.newest, true)
				return err
			})
			return out, err
		}
		commit, err := s.write(ctx, at, dir, d.title, files)
		switch {
		case errors.Is(err, codehost.ErrHeadMoved):
			continue
		case errors.Is(err, codehost.ErrConflict):
			return out, refused([]Problem{{onCodeHost, dir, "a file is where the directory would be, or the other way about"}})
		case err != nil:
			return out, err
		}
		err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
			repo, err := s.enabled(tx, in.Repo)
			if err != nil {
				return err
			}
			if err := s.cancelReplaced(tx, at, repo, dir); err != nil {
				return err
			}
			out, err = s.dispatch(tx, repo, &d, Draft{Source: SourceFile, Hold: in.DryRun, dir: &dir, revision: revision, commit: &commit})
			return err
		})
		if !errors.Is(err, errMoved) {
			return out, err
		}
	}
	return Filed{}, fault.New(fault.Unavailable, "", "The default branch moves too fast to write to.")
}

// inspect reads the state of a directory before a plan is filed there. It
// returns fault.NotFound for a repository that is unknown or not enabled, and
// fault.Conflict with the slug plan-file-off while the account's switch is off.
func (s *Service) inspect(ctx context.Context, repo, dir string) (at site, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		if at.repo, err = s.enabled(tx, repo); err != nil {
			return err
		}
		if on, err := fileAllowed(tx); err != nil {
			return err
		} else if !on {
			return fault.Reason("plan-file-off",
				"The account does not let plan documents be written into its repositories; plan.file_switch_set "+
					"changes that.")
		}
		p, ok, err := selectLast.Maybe(tx, tx.Account, at.repo.ID, dir)
		if err != nil || !ok {
			return err
		}
		n, err := readNet(tx, p.ID)
		at.newest, at.status = &p, n.progress(&p).status
		return err
	})
	if err != nil {
		return at, err
	}
	host, err := s.Hosts.Of(at.repo.HostRepo)
	if err != nil {
		return at, err
	}
	at.commit, err = host.Head(ctx, at.repo.HostRepo, at.repo.DefaultBranch)
	if errors.Is(err, codehost.ErrNotFound) {
		return at, nil
	}
	if err != nil {
		return at, err
	}
	_, at.present, err = host.ReadDir(ctx, at.repo.HostRepo, at.commit, dir)
	if errors.Is(err, codehost.ErrNotFound) {
		err = nil
	}
	return at, err
}

// check tells whether a plan with the digest sum may be filed here. same is
// true if it is the newest plan of the directory. The faults are
// fault.Unprocessable with the slugs plan-closed, plan-running and plan-stale.
func (at *site) check(sum string, replaces *string) (same bool, err error) {
	stale := func(detail string) error {
		e := fault.New(fault.Unprocessable, "plan-stale", detail)
		if at.newest != nil {
			e = e.With("plan_id", at.newest.ID)
		}
		return e
	}
	if st, bad := parseStatus(string(at.present[StatusFile])); bad == "" && (st.Status == statusDone || st.Status == statusCancelled) {
		return false, fault.New(fault.Unprocessable, "plan-closed",
			"The plan in the repository is "+st.Status+" as its status file says. File another one under another slug.")
	}
	if at.newest == nil {
		if replaces != nil {
			return false, stale("There is no plan of this directory that could be replaced.")
		}
		if at.present != nil && digest(at.present) != sum {
			return false, stale("The directory is there already and holds other documents. Execute it, or file under another slug.")
		}
		return false, nil
	}
	switch {
	case at.status == Done || at.status == Cancelled && at.newest.CancelledAt != nil:
		return false, fault.New(fault.Unprocessable, "plan-closed",
			"The plan of this directory is "+at.status+". File another one under another slug.").With("plan_id", at.newest.ID)
	case at.newest.Digest == sum:
		return true, nil
	case at.status == Running:
		return false, fault.New(fault.Unprocessable, "plan-running",
			"The plan of this directory is running; its documents cannot be changed under it. Cancel it, or regroup it.").With("plan_id",
			at.newest.ID)
	case replaces == nil || *replaces != at.newest.ID:
		return false, stale("The directory has a newer plan than the one these documents replace.")
	case digest(at.present) != at.newest.Digest:
		return false, stale("The documents on the default branch are no longer those of the plan.")
	}
	return false, nil
}

// checkCitations checks the citations of scouts against the default branches,
// and adds a problem for each that is wrong.
func (s *Service) checkCitations(ctx context.Context, at site, scouts []ScoutEvidence, problems []Problem) ([]Problem, error) {
	type place struct{ repo, path string }
	lines := map[place]int{} // line counts of the files read; -1: no such file
	commits := map[string]string{at.repo.FullName(): at.commit}
	total := 0
	for i, sc := range scouts {
		name := strconv.Itoa(i)
		repo := at.repo
		if sc.Repo != "" && sc.Repo != repo.FullName() {
			err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
				repo, err = s.enabled(tx, sc.Repo)
				return err
			})
			if fault.IsKind(err, fault.NotFound) {
				problems = append(problems, Problem{onScouts, name, "there is no repository " + clip(sc.Repo) + ", or it is not enabled"})
				continue
			}
			if err != nil {
				return nil, err
			}
		}
		host, err := s.Hosts.Of(repo.HostRepo)
		if err != nil {
			return nil, err
		}
		commit := commits[repo.FullName()]
		if commit == "" {
			if commit, err = host.Head(ctx, repo.HostRepo, repo.DefaultBranch); err != nil && !errors.Is(err, codehost.ErrNotFound) {
				return nil, err
			}
			commits[repo.FullName()] = commit
		}
		for _, text := range sc.Citations {
			if total++; total > maxCitations {
				return append(problems, Problem{onScouts, name, fmt.Sprintf("there are more than %d citations", maxCitations)}), nil
			}
			c, ok := parseCitation(text)
			if !ok {
				problems = append(problems, Problem{onScouts, name, fmt.Sprintf("%q is not path:line", clip(text))})
				continue
			}
			file := place{repo.ID, c.path}
			n, known := lines[file]
			if !known {
				b, _, err := host.ReadFile(ctx, repo.HostRepo, commit, c.path)
				switch {
				case errors.Is(err, codehost.ErrNotFound):
					n = -1
				case errors.Is(err, codehost.ErrTooLarge):
					problems = append(problems, Problem{onScouts, name, c.path + " is too large to be checked"})
					n = 1 << 30
				case err != nil:
					return nil, err
				default:
					if n = bytes.Count(b, []byte("\n")); len(b) > 0 && b[len(b)-1] != '\n' {
						n++
					}
				}
				lines[file] = n
			}
			switch {
			case n < 0:
				problems = append(problems, Problem{onScouts, name, fmt.Sprintf("%s: there is no such file on the default branch of %s", c,
					repo.FullName())})
			case c.to > n:
				problems = append(problems, Problem{onScouts, name,
					fmt.Sprintf("%s: the file has %d lines on the default branch of %s", c, n,
						repo.FullName())})
			}
		}
	}
	return problems, nil
}

// write commits the documents, and removes slices of an earlier plan that are
// not among them.
func (s *Service) write(ctx context.Context, at site, dir, title string, files map[string][]byte) (commit string, err error) {
	by := codehost.Person{Name: s.CommitName, Email: s.CommitEmail}
	o := codehost.WriteOptions{Branch: at.repo.DefaultBranch, Parent: at.commit, Files: map[string][]byte{}, Title: "File a plan: " + title,
		Author: by, Committer: by}
	for name, text := range files {
		o.Files[dir+"/"+name] = text
	}
	for name := range at.present {
		if _, kept := files[name]; !kept && sliceFile.MatchString(name) {
			o.Remove = append(o.Remove, dir+"/"+name)
		}
	}
	host, err := s.Hosts.Of(at.repo.HostRepo)
	if err != nil {
		return "", err
	}
	if commit, err = host.WriteFiles(ctx, at.repo.HostRepo, o); err != nil || commit == at.commit {
		return commit, err
	}
	// A retry finds the documents on the branch and goes on: the answer of the
	// request is stored with the plan, not with this record.
	if err := s.Repos.Wrote(db.BeforeCommit(ctx, nil), at.repo.HostRepo, o.Branch, at.commit, commit); err != nil {
		// The commit is on the branch; the next sweep records it.
		s.Logger.Error("documents of a plan were committed but not recorded", "repo", at.repo.HostRepo.String(), "error", err)
	}
	return commit, nil
}

// errMoved says that the newest plan of a directory has changed since inspect
// read it.
var errMoved = errors.New("the plan of the directory has moved")

// cancelReplaced cancels the plan that a corrected one replaces. It returns
// errMoved if the directory has another plan by now, or its plan another
// status.
func (s *Service) cancelReplaced(tx *db.Tx, at site, repo task.Repo, dir string) error {
	newest, ok, err := selectLast.Maybe(tx, tx.Account, repo.ID, dir)
	switch {
	case err != nil:
		return err
	case ok != (at.newest != nil):
		return errMoved
	case !ok:
		return nil
	}
	p, n, err := lock(tx, newest.ID)
	if err != nil {
		return err
	}
	if p.ID != at.newest.ID || n.progress(&p).status != at.status {
		return errMoved
	}
	_, err = s.stop(tx, &p, n)
	return err
}

// fileAllowed tells whether plan documents may be written into the repositories
// of tx.Account.
func fileAllowed(tx *db.Tx) (bool, error) {
	on, ok, err := selectSwitch.Maybe(tx, tx.Account)
	return on || !ok, err
}
