package ci

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/blob"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

const group = "CI runs and artifacts"

// Ops lists the capabilities of checks.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{ID: "ci.runs", Method: "GET", Path: "/v1/ci/runs", Group: group, Rule: policy.Require(policy.ReadRunners),
			Summary: "The checks that boxes run, newest first",
			Doc:     "A check runs the command of a repository's policy file on the head of a pull request. Filters narrow the list to a status, a repository (owner/name), a pull request (its id) or one check (its id).",
			Paging: &op.Paging{Default: 25, Max: 100, Filters: map[string][]string{
				"status": {Queued, Running, Passed, Failed, Lost, Cancelled}, "repo": nil, "pr": nil, "id": nil,
			}}}, s.list),
		op.New(op.Row{ID: "ci.log_url", Method: "GET", Path: "/v1/ci/runs/{id}/log-url", Group: group,
			Rule: policy.Require(policy.ReadRunners), NoStore: true,
			Refuses: []op.Refusal{{Status: 404, Slug: "not-found"}},
			Summary: "An address that answers the whole output of a check, for five minutes",
			Doc:     "The output is archived when the check ends, and deleted three days later. It is what the command wrote, with secrets taken out by the box, up to 8 MiB. There is one 404 for a check that is unknown or of another account, whose output has not been archived yet or is gone, and for a server that keeps no objects."},
			s.logURL),
		op.New(op.Row{ID: "ci.flakes", Method: "GET", Path: "/v1/repos/{owner}/{repo}/flakes", Group: group,
			Rule:    policy.Require(policy.ReadPRs),
			Paging:  flakesPaging,
			Summary: "The failures of checks that come and go in a repository",
			Doc:     "A failed job of a code host is run again, unless the change must have caused the failure. A failure that goes away without a change is counted. Agents are told to leave it alone. A repository that is not enabled is answered 404."},
			s.flakes),
	}
}

type listIn struct{ op.PageIn }

func (s *Service) list(ctx context.Context, in listIn) (out op.Page[Check], err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		out = op.NewPage(in.PageIn, []Check{}, nil)
		if pr := in.Want("pr"); pr != "" && !id.Valid(pr) {
			return fault.Field("filter", "pr must be the id of a pull request")
		}
		if one := in.Want("id"); one != "" && !id.Valid(one) {
			return fault.Field("filter", "id must be the id of a check")
		}
		var repoID string
		if name := in.Want("repo"); name != "" {
			owner, short, _ := strings.Cut(name, "/")
			r, ok, err := repo.ByName(tx, owner, short)
			if err != nil || !ok {
				return err
			}
			repoID = r.ID
		}
		rows, err := list(tx, in.PageIn, repoID)
		out = op.NewPage(in.PageIn, rows, func(c Check) []string { return op.TimeKey(c.CreatedAt, c.ID) })
		return err
	})
	return out, err
}

type idIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the check"`
}

// Log is the answer of ci.log_url.
type Log struct {
	_         struct{}  `doc:"Where the whole output of a check can be had." schema:"CheckLog"`
	URL       string    `json:"url" format:"uri" example:"https://yardmaster.example.com/blob/0199d3a4/ci/0199d3a5.log?expires=1790000000&signature=5f2c" doc:"answers the output by GET, as a file of text, without a credential; it is one itself until it expires"`
	Size      int64     `json:"size" example:"48211" doc:"of the output, in bytes"`
	ExpiresAt time.Time `json:"expires_at" doc:"when the address ends; ask for another then"`
}

// addressLife is how long an address of a log is good.
const addressLife = 5 * time.Minute

func (s *Service) logURL(ctx context.Context, in idIn) (out Log, err error) {
	var l keptRow
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		var ok bool
		if l, ok, err = keptOf.Maybe(tx, tx.Account, in.ID, tx.Now); err == nil && !ok {
			err = fault.Missing("log of a check")
		}
		out = Log{Size: l.Size, ExpiresAt: tx.Now.Add(addressLife)}
		return err
	})
	if err != nil {
		return Log{}, err
	}
	out.URL, err = s.Objects.PresignGet(ctx, l.key(), fmt.Sprintf("check-%.10s.log", l.SHA), addressLife)
	if errors.Is(err, blob.ErrOff) {
		err = fault.Missing("log of a check")
	}
	return out, err
}
