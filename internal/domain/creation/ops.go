package creation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

// Ops lists the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{
			ID: "project.create", Method: "POST", Path: "/v1/repos", Group: "Repositories",
			Rule: policy.Require(policy.WriteRepos), Status: 201,
			Refuses: []op.Refusal{
				{Status: 402, Slug: "payment-required"}, {Status: 409, Slug: "repo-exists"},
				{Status: 409, Slug: "code-host-rule"}, {Status: 409, Slug: "repo-not-made"}, {Status: 422, Slug: "owner-is-a-person"},
				{Status: 503, Slug: "code-host-permission"}, {Status: 503, Slug: "code-host-gone"},
				{Status: 503, Slug: "code-host-busy"}, {Status: 503, Slug: "repo-being-made"},
			},
			Summary: "Make a repository, with its first files, and send an agent to set it up",
			Doc: "Makes the repository at the built-in host, or in an organisation that has installed the App of this server with the " +
				"permission administration: write, commits the files that the manifest lists, and queues the setup task. The repository " +
				"stays if no task can be queued: scaffold_task_id is null then, and scaffold_note says why. If the code host does not " +
				"answer in time the call is 503 repo-being-made; the server goes on by itself, and the same call again answers what became of it.",
		}, s.create),
	}
}

type createIn struct {
	Name        string `json:"name" pattern:"^[A-Za-z0-9_][A-Za-z0-9._-]*$" says:"must begin with a letter, a digit or _, and have letters, digits, dots, hyphens and underscores alone" maxLength:"100" example:"web" doc:"its name, without the owner"`
	Owner       string `json:"owner,omitempty" maxLength:"100" example:"acme" doc:"who is to own it at the code host: the account, or an organisation that has installed the App; left out: the only choice there is"`
	Host        string `json:"host,omitempty" maxLength:"200" example:"builtin" doc:"the code host that is to have it, where there is a choice; left out: the one where the App is installed, else builtin"`
	Private     *bool  `json:"private,omitempty" example:"true" doc:"true unless given; all of the built-in host are private"`
	Description string `json:"description,omitempty" maxLength:"350" example:"Where customers buy." doc:"one line that says what it is for; the README, the code host and the agent are given it"`
	Stack       string `json:"stack,omitempty" maxLength:"1000" example:"Go, PostgreSQL, no framework" doc:"what it is to be made of, in words; the agent that sets it up is given them"`
}

// Created is a new repository.
type Created struct {
	_              struct{}        `doc:"A new repository, what it begins with, and the task that sets it up." schema:"RepoCreated"`
	Repo           repo.Repository `json:"repo" doc:"the repository"`
	Manifest       Manifest        `json:"manifest" doc:"the files that it begins with"`
	ScaffoldTaskID *string         `json:"scaffold_task_id" format:"uuid" doc:"the task that sets it up; null: none could be queued"`
	ScaffoldNote   *string         `json:"scaffold_note" example:"null" doc:"why there is no task; null: there is one"`
}

// reserved are the ends of names that mean something to git or to code hosts.
var reserved = []string{".git", ".wiki", ".atom", ".lock"}

func (in *createIn) check() error {
	in.Description, in.Stack = strings.TrimSpace(in.Description), strings.TrimSpace(in.Stack)
	lower := strings.ToLower(in.Name)
	switch {
	case slices.ContainsFunc(reserved, func(end string) bool { return strings.HasSuffix(lower, end) }), strings.HasSuffix(lower, "."),
		strings.Contains(lower, ".."):
		return fault.Field("name", "means something else to git or to code hosts: it must not contain .. nor end in a dot, "+strings.Join(reserved, ", "))
	case strings.ContainsFunc(in.Description, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fault.Field("description", "must be one line")
	case strings.ContainsRune(in.Stack, 0):
		return fault.Field("stack", "must be text")
	}
	return nil
}

const (
	// patience is how long a call waits for its repository.
	patience = 25 * time.Second
	// rejoin is how long the same call again is taken for a retry.
	rejoin = 24 * time.Hour
)

func (s *Service) create(ctx context.Context, in createIn) (out Created, err error) {
	if err := in.check(); err != nil {
		return out, err
	}
	// A retry with the same Idempotency-Key runs again until the answer is kept, which is
	// in the last transaction alone.
	steps := db.BeforeCommit(ctx, nil)
	c, joined, err := s.begun(steps, in)
	if err != nil {
		return out, err
	}
	call, cancel := context.WithTimeout(steps, patience)
	defer cancel()
	if !joined {
		if final, err := s.first(call, c); err != nil && final {
			return out, refusal(err)
		}
	}
	if err := s.wait(call, c.ID); err != nil {
		return out, err
	}
	return s.told(ctx, c.ID)
}

// told is what has become of a creation, for whoever has waited for it.
func (s *Service) told(ctx context.Context, creationID string) (out Created, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		c, err := byID.One(tx, tx.Account, creationID)
		if err != nil {
			return err
		}
		switch c.State {
		case done:
		case failed:
			return fault.Reason("repo-not-made", "The repository was not made: "+c.Note)
		default:
			return fault.New(fault.Unavailable, "repo-being-made",
				"The code host has not answered yet. The server goes on by itself; the same call again tells what became of it.").After(10 * time.Second).OnPurpose()
		}
		if _, err := setAnswered.Exec(tx, tx.Account, c.ID); err != nil {
			return err
		}
		out, err = s.show(tx, c)
		return err
	})
	return out, err
}

// refusal is what a caller is told of an error that ends a creation.
func refusal(err error) error {
	if errors.Is(err, codehost.ErrCannot) {
		return fault.New(fault.Unprocessable, "owner-is-a-person",
			"An App cannot make repositories of a person. Make it at the code host and give the App access to it: then it appears here. "+
				"Or send the host builtin, or an organisation as owner.").Because(err)
	}
	return err
}

// wait returns once a creation has ended, or ctx has.
func (s *Service) wait(ctx context.Context, creationID string) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		notice := s.Hub.Watch(topic)
		var c row
		err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
			c, err = byID.One(tx, tx.Account, creationID)
			return err
		})
		if ctx.Err() != nil || err == nil && (c.State == done || c.State == failed) {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-notice:
		case <-tick.C: // another node may have no way to tell
		case <-ctx.Done():
		}
	}
}

func (s *Service) show(tx *db.Tx, c row) (Created, error) {
	rows, err := s.Repos.Rows(tx, []string{*c.RepoID}, 1)
	if err == nil && len(rows) == 0 {
		err = fmt.Errorf("the repository %s of a creation is gone", *c.RepoID)
	}
	if err != nil {
		return Created{}, err
	}
	out := Created{Repo: rows[0], ScaffoldTaskID: c.TaskID}
	if c.TaskID == nil {
		out.ScaffoldNote = &c.Note
	}
	out.Manifest, err = manifest(c)
	return out, err
}

// begun writes down what is asked for. joined tells that the same was asked for before,
// and its caller was not answered.
func (s *Service) begun(ctx context.Context, in createIn) (c row, joined bool, err error) {
	begin := func(tx *db.Tx) error {
		places, err := s.Places.Of(tx)
		if err != nil {
			return err
		}
		place, err := in.place(places)
		if err != nil {
			return err
		}
		by := policy.From(ctx)
		c = row{
			ID: id.New(), AccountID: tx.Account, Host: place.Host, Owner: place.Owner, Name: in.Name, InstallationID: place.InstallationID,
			Private: in.Private == nil || *in.Private, Description: in.Description, Stack: in.Stack, Base: baseVersion, State: asked,
			CreatedBy: by.Label(), UserID: by.UserID, CreatedAt: tx.Now,
		}
		earlier, there, err := latest.Maybe(tx, latestArgs{
			AccountID: tx.Account, Owner: c.Owner, Name: c.Name, Host: c.Host, Since: db.Micros(tx.Now.Add(-rejoin)),
		})
		if err != nil {
			return err
		}
		if joined = there && earlier.same(c) && !earlier.Answered; joined {
			c = earlier
			return nil
		}
		if taken, err := repo.TakenAt(tx, c.Host, c.Owner, c.Name); err != nil || taken || there {
			if err == nil {
				err = codehost.ErrExists
			}
			return err
		}
		if err := place.may(c.Private); err != nil {
			return err
		}
		if c.Private {
			if err := repo.Covered(tx); err != nil {
				return err
			}
		}
		_, err = insert.Exec(tx, insertArgs{
			ID: c.ID, AccountID: c.AccountID, Host: c.Host, Owner: c.Owner, Name: c.Name, InstallationID: c.InstallationID,
			Private: c.Private, Description: c.Description, Stack: c.Stack, Base: c.Base,
			CreatedBy: c.CreatedBy, UserID: c.UserID, CreatedAt: tx.Micros(),
		})
		s.queue.Add(tx, c.ID, due.Entry{Account: tx.Account, After: hold})
		return err
	}
	if err = s.DB.Write(ctx, begin); db.IsUnique(err) { // another call for the name was faster
		err = s.DB.Write(ctx, begin)
	}
	if db.IsUnique(err) {
		err = codehost.ErrExists
	}
	return c, joined, err
}

// place is where the repository is to be made.
func (in createIn) place(all []Place) (Place, error) {
	var fit []Place
	hosts := map[string]bool{}
	for _, p := range all {
		hosts[p.Host] = true
		same := p.Owner == in.Owner || p.InstallationID != "" && strings.EqualFold(p.Owner, in.Owner)
		if (in.Host == "" || p.Host == in.Host) && (in.Owner == "" || same) {
			fit = append(fit, p)
		}
	}
	if in.Host == "" && len(fit) > 1 { // builtin is for those who ask for it, or have nothing else
		fit = slices.DeleteFunc(fit, func(p Place) bool { return p.InstallationID == "" })
	}
	switch {
	case in.Host != "" && !hosts[in.Host]:
		return Place{}, fault.Field("host", "is not a code host where this account can make repositories")
	case len(fit) == 0:
		return Place{}, fault.Field("owner", "is not an owner under which this account can make repositories")
	case len(fit) > 1:
		var names []string
		for _, p := range fit {
			names = append(names, p.Owner+" at "+p.Host)
		}
		return Place{}, fault.Field("owner", "must be said, with the host: there are "+strings.Join(names, ", "))
	}
	return fit[0], nil
}

// may refuses what can be known before the host is asked.
func (p Place) may(private bool) error {
	switch {
	case p.InstallationID == "" && !private:
		return fault.Field("private", "must be true: all repositories of the built-in host are private")
	case p.Suspended:
		return codehost.ErrGone
	case !p.Administration:
		return &codehost.ForbiddenError{Permission: "administration: write"}
	}
	return nil
}
