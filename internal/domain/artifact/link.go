package artifact

import (
	"context"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/seal"
	"yardmaster/internal/web"
)

// linkPurpose keeps the tokens of shared artifacts apart from all others.
const linkPurpose = "artifact"

// Path is the beginning of the paths of links.
const Path = "/artifacts/"

type shareIn struct {
	ID   string `json:"id" format:"uuid" doc:"id of the artifact"`
	Days *int   `json:"expires_in_days,omitempty" minimum:"1" maximum:"90" example:"7" doc:"how long the link is good; 7 unless sent"`
}

// Shared is an artifact and its link.
type Shared struct {
	_ struct{} `doc:"An artifact that was shared." schema:"SharedArtifact"`
	Artifact
	URL          string    `json:"url" format:"uri" example:"https://yardmaster.example.com/artifacts/eyJhbGciOiJIUzI1NiJ9" doc:"leads anybody to the bytes"`
	URLExpiresAt time.Time `json:"url_expires_at" doc:"when the link ends"`
}

func (s *Service) share(ctx context.Context, in shareIn) (out Shared, err error) {
	var r row
	if err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		r, err = find(tx, byID, in.ID)
		return err
	}); err != nil {
		return out, err
	}
	switch there, err := s.present(ctx, r); {
	case err != nil:
		return out, err
	case !there:
		return out, fault.Reason("bytes-missing", "The bytes of the artifact have not arrived, or are gone.")
	}
	days := linkDays
	if in.Days != nil {
		days = *in.Days
	}
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		r, err := find(tx, lockID, in.ID)
		if err != nil {
			return err
		}
		r.Visibility = Public
		if keep := r.CreatedAt.Add(s.Keep); keep.After(r.ExpiresAt) {
			r.ExpiresAt = keep
		}
		until := tx.Now.Add(time.Duration(days) * day).Truncate(time.Second)
		if until.After(r.ExpiresAt) {
			until = r.ExpiresAt.Truncate(time.Second)
		}
		if r.SharedUntil == nil || r.SharedUntil.Before(until) {
			r.SharedUntil = &until
		}
		if _, err := shared.Exec(tx, r); err != nil {
			return err
		}
		out = Shared{Artifact: r.wire(), URLExpiresAt: until, URL: s.BaseURL + Path + s.Ring.SignLink(linkPurpose, seal.Link{
			Subject: r.ID, Account: r.AccountID, Expires: until,
		})}
		return SharedEvent.Record(tx, r.subject(), SharedData{Name: r.Name, Until: until})
	})
	return out, err
}

type openIn struct {
	Token string `json:"token" maxLength:"2000" example:"eyJhbGciOiJIUzI1NiJ9" doc:"the token of the link"`
}

func (s *Service) open(ctx context.Context, in openIn) (op.Reply, error) {
	l, err := s.Ring.ReadLink(linkPurpose, in.Token)
	if err != nil {
		return op.Reply{}, fault.Missing("artifact").Because(err)
	}
	r, now, err := s.there(db.WithAccount(ctx, l.Account), l.Subject)
	if err == nil && r.Visibility != Public {
		err = fault.Missing("artifact")
	}
	if err == nil && !now.Before(l.Expires) {
		err = fault.New(fault.Gone, "artifact-link-expired", "The link has expired. Whoever shared the artifact can make another.")
	}
	if err != nil {
		return op.Reply{}, err
	}
	address, err := s.Objects.PresignShow(ctx, r.key(), r.Name, r.MediaType, readLife)
	if err != nil {
		return op.Reply{}, err
	}
	to := web.GoTo(address)
	to.Header["Referrer-Policy"], to.Header["X-Robots-Tag"], to.Header["Cache-Control"] = "no-referrer", "noindex", "no-store"
	return to, nil
}
