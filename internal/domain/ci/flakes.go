package ci

import (
	"context"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/fault"
)

// Flake is a failure of a job at a code host that comes and goes.
type Flake struct {
	_       struct{}  `doc:"A failure of a job at a code host that comes and goes." schema:"Flake"`
	ID      string    `json:"id" example:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" doc:"its fingerprint in the repository"`
	Job     string    `json:"job" example:"test (ubuntu)" doc:"the job in which it was seen last"`
	Test    string    `json:"test" example:"example.com/shop/store.TestLease" doc:"the test; empty: the log names none"`
	Error   string    `json:"error" example:"store_test.go:<n>: lease expired after <d>, want > <d>" doc:"its first error, without what differs from run to run"`
	Seen    int64     `json:"seen" example:"3" doc:"runs of the job that failed so and passed without a change, of the last 14 days when it was judged last"`
	Runs    int64     `json:"runs" example:"212" doc:"first attempts of the job that have ended, of the same days"`
	Often   bool      `json:"often" doc:"whether it is at least one run in five"`
	FirstAt time.Time `json:"first_at" doc:"when it was seen first"`
	LastAt  time.Time `json:"last_at" doc:"when it was seen last; it is forgotten 90 days later"`
}

// Flakes is the answer of ci.flakes.
type Flakes struct {
	_          struct{} `doc:"The failures that come and go in a repository." schema:"Flakes"`
	Data       []Flake  `json:"data" doc:"the most frequent first; there are at most 200 on all pages"`
	NextCursor *string  `json:"next_cursor" doc:"send it back as cursor for the page after this one; null: nothing follows"`
}

var flakesPaging = &op.Paging{Default: 200, Max: 200}

type flakesIn struct {
	op.PageIn
	Owner string `json:"owner" example:"acme" doc:"owner of the repository"`
	Repo  string `json:"repo" example:"shop" doc:"name of the repository"`
}

func (s *Service) flakes(ctx context.Context, in flakesIn) (out Flakes, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		r, ok, err := repo.ByName(tx, in.Owner, in.Repo)
		if err != nil {
			return err
		}
		if !ok || !r.Enabled {
			return fault.Missing("enabled repository")
		}
		rows, err := flakyPrints.All(tx, tx.Account, r.ID)
		all := make([]Flake, len(rows))
		for i, p := range rows {
			all[i] = Flake{
				ID: p.FP, Job: p.Job, Test: p.Test, Error: p.Error, Seen: p.N, Runs: p.D, Often: p.N*5 >= p.D,
				FirstAt: p.FirstAt, LastAt: p.LastAt,
			}
		}
		page := op.Cut(in.PageIn, all, func(f Flake) []string {
			return []string{op.Falling(f.Seen), op.Falling(f.LastAt.UnixMicro()), f.ID}
		})
		out = Flakes{Data: page.Data, NextCursor: page.NextCursor}
		return err
	})
	return out, err
}
