package digest

import (
	"context"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/policy"
)

const group = "Digests"

// Ops lists the capabilities of this package.
func (s *Service) Ops() []op.Op {
	read := policy.Require(policy.ReadDigests)
	return []op.Op{
		op.New(op.Row{ID: "digest.list", Method: "GET", Path: "/v1/digests", Group: group, Rule: read,
			Paging:  &op.Paging{Default: 20, Max: 100, Bounded: true},
			Summary: "The account's digests, newest first",
			Doc: "One is made each day at 08:00 of the account's time zone, and one each Monday of the week. Raise limit to see more; " +
				"a digest is kept for 400 days, unless the operator says otherwise."}, s.list),
		op.New(op.Row{ID: "digest.get", Method: "GET", Path: "/v1/digests/{id}", Group: group, Rule: read,
			Summary: "One digest, as HTML, as text and as data",
			Doc: "What was merged, what waits for whom and since when, what failed and why, what it cost, and how often things went " +
				"well. The page has no script, loads nothing and links to this server alone."}, s.get),
	}
}

// Head is a digest in a list.
type Head struct {
	_         struct{}  `doc:"A digest, without what is in it." schema:"DigestHead"`
	ID        string    `json:"id" format:"uuid" doc:"id of the digest"`
	Kind      Kind      `json:"kind" doc:"of a day, or of a week"`
	Period    string    `json:"period" example:"2026-11-23" doc:"the date at which its time ends, in zone"`
	Zone      string    `json:"zone" example:"Europe/Berlin" doc:"the account's time zone when it was made"`
	From      time.Time `json:"from" doc:"the beginning of its time: where the one before it ended"`
	To        time.Time `json:"to" doc:"the end of its time"`
	Headline  string    `json:"headline" example:"3 merged, 1 waiting, 0 failed, $3.15" doc:"the digest in one line"`
	Quiet     bool      `json:"quiet" doc:"true: nothing happened and nothing waits, and nobody was mailed"`
	CreatedAt time.Time `json:"created_at" doc:"when it was made"`
}

// Digest is a digest with what is in it.
type Digest struct {
	_ struct{} `doc:"A digest." schema:"Digest"`
	Head
	HTML    string  `json:"html" example:"<!doctype html>…" doc:"the digest as a page of its own"`
	Text    string  `json:"text" example:"Nothing happened." doc:"the digest as plain text, for terminals"`
	Content Content `json:"content" doc:"the digest as data"`
}

func (r headRow) wire() Head {
	return Head{ID: r.ID, Kind: Kind(r.Kind), Period: r.Period, Zone: r.Zone, From: r.FromAt, To: r.ToAt,
		Headline: r.Headline, Quiet: r.Quiet,
		CreatedAt: r.CreatedAt}
}

type listIn struct{ op.PageIn }

func (s *Service) list(ctx context.Context, in listIn) (out op.Bounded[Head], err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		rows, err := heads(tx, in.PageIn)
		all := make([]Head, len(rows))
		for i, r := range rows {
			all[i] = r.wire()
		}
		out = op.NewBounded(in.PageIn, all)
		return err
	})
	return out, err
}

type idIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the digest"`
}

func (s *Service) get(ctx context.Context, in idIn) (out Digest, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		r, err := find(tx, in.ID)
		if err != nil {
			return err
		}
		login, err := people.AccountLogin(tx, tx.Account)
		if err != nil {
			return err
		}
		out = Digest{Content: r.Content.V, Head: headRow{
			ID: r.ID, Kind: r.Kind, Period: r.Period, Zone: r.Zone, FromAt: r.FromAt, ToAt: r.ToAt, Headline: r.Headline, Quiet: r.Quiet,
			CreatedAt: r.CreatedAt,
		}.wire()}
		v := s.view(r, login)
		out.Text = v.text()
		out.HTML, err = v.html()
		return err
	})
	return out, err
}
