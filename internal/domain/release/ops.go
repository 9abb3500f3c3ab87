package release

import (
	"context"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/lazy"
	"yardmaster/internal/policy"
)

const group = "Fleet boxes (runners)"

// versions are the names of versions that can be in the ledger.
var versions = lazy.New(`^[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}$`)

// Ops are the capabilities of this package.
func (s *Service) Ops() []op.Op {
	admin := policy.Require(policy.AdminReleases)
	return []op.Op{
		op.New(op.Row{ID: "box.releases", Method: "GET", Path: "/v1/runners/releases", Group: group,
			Rule:    policy.Require(policy.ReadRunners).OrHolding(policy.AdminReleases), // an operator's token has no other scope
			Paging:  &op.Paging{Default: 25, Max: 100, Filters: map[string][]string{"channel": nil, "target": nil}},
			Summary: "The ledger of the programs that boxes may run, newest first, a row for each build target",
			Doc: "What can be installed, as every account sees it. An operator who holds admin:releases sees the whole ledger, with what was " +
				"halted and what each was built from. The channel builtin has the server's own program."}, s.list),
		op.New(op.Row{ID: "box.yank", Method: "POST", Path: "/v1/runners/releases/{channel}/{version}/yank", Group: group, Rule: admin,
			Refuses: []op.Refusal{{Status: 404, Slug: "not-found"}},
			Summary: "Halt a release: no box takes it any more; again changes nothing",
			Doc:     "For operators, platform-wide. Boxes that run it go on with it. box.unyank takes it back."}, s.yank),
		op.New(op.Row{ID: "box.unyank", Method: "POST", Path: "/v1/runners/releases/{channel}/{version}/unyank", Group: group, Rule: admin,
			Refuses: []op.Refusal{{Status: 404, Slug: "not-found"}},
			Summary: "Restore a release that was halted",
			Doc:     "For operators, platform-wide. Answers how many builds can be installed again; 0: none was halted."}, s.unyank),
		op.New(op.Row{ID: "box.program", Method: "GET", Path: "/v1/runners/releases/{id}/program", Group: group,
			Rule: policy.Public(), Holder: s.Boxes.Self(), NoStore: true, PerAddress: 60,
			Refuses: []op.Refusal{
				{Status: 403, Slug: "box-revoked"}, {Status: 409, Slug: "release-halted"}, {Status: 409, Slug: "release-not-stored"},
			},
			Summary: "A box asks where the bytes of a release are",
			Doc:     "Called by the box with its durable token. It verifies the signature before it runs them."}, s.program),
	}
}

// Releases is a page of the ledger.
type Releases struct {
	_          struct{}  `doc:"A page of the ledger of releases." schema:"Releases"`
	View       string    `json:"view" enum:"installable,ledger" doc:"installable: what boxes may take; ledger: everything"`
	Data       []Release `json:"data" doc:"the builds, newest first"`
	NextCursor *string   `json:"next_cursor" doc:"send it back as cursor for the page after this one; null: nothing follows"`
}

// Release is a program for a build target.
type Release struct {
	_           struct{}    `doc:"A program that boxes may run, for one build target." schema:"Release"`
	ID          string      `json:"id" format:"uuid" doc:"id of the row"`
	Channel     string      `json:"channel" example:"builtin" doc:"builtin: the server's own program"`
	Version     string      `json:"version" example:"v1.4.0" doc:"its version"`
	Target      string      `json:"target" example:"linux/amd64" doc:"the system and processor that it is for"`
	Size        int64       `json:"size" example:"52000000" doc:"bytes"`
	SHA256      string      `json:"sha256" example:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" doc:"digest of the bytes, in hexadecimal"`
	Signature   string      `json:"signature" example:"untrusted comment: signature from minisign secret key\nRUQf6LRCGA9i5" doc:"of the bytes, as minisign writes it; its trusted comment binds them to channel, version, target and sha256"`
	SignedBy    string      `json:"signed_by" example:"RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3" doc:"the public key, as minisign takes it with -P"`
	Oldest      *string     `json:"oldest_from" example:"null" doc:"the oldest version that it can follow; null: any"`
	PublishedAt time.Time   `json:"published_at" doc:"when it came into the ledger"`
	Halted      *Halt       `json:"halted,omitempty" doc:"why no box takes it; null: it can be installed. In the ledger alone"`
	Built       *Provenance `json:"provenance,omitempty" doc:"what it was built from, in the ledger alone"`
}

// Halt says why no box takes a release.
type Halt struct {
	_   struct{}  `doc:"Why no box takes a release." schema:"ReleaseHalt"`
	At  time.Time `json:"at" doc:"since when"`
	By  string    `json:"by" example:"user:0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"who halted it"`
	Why string    `json:"why" example:"it does not start" doc:"what is wrong with it"`
}

// Provenance says what a program was built from.
type Provenance struct {
	_      struct{} `doc:"What a program was built from." schema:"ReleaseProvenance"`
	Commit *string  `json:"commit" doc:"the commit; null: that is not known"`
	With   *string  `json:"built_with" example:"go1.26" doc:"the compiler; null: that is not known"`
}

func (r row) wire(all bool) Release {
	out := Release{
		ID: r.ID, Channel: r.Channel, Version: r.Version, Target: r.Target, Size: r.Size, SHA256: r.SHA256, Signature: r.Signature,
		SignedBy: r.SignedBy, Oldest: db.NullText(r.Oldest), PublishedAt: r.PublishedAt,
	}
	if !all {
		return out
	}
	out.Built = &Provenance{Commit: db.NullText(r.CommitSHA), With: db.NullText(r.BuiltWith)}
	if r.HaltedAt != nil && r.HaltedBy != nil {
		out.Halted = &Halt{At: *r.HaltedAt, By: *r.HaltedBy, Why: r.HaltedWhy}
	}
	return out
}

type listIn struct{ op.PageIn }

func (s *Service) list(ctx context.Context, in listIn) (out Releases, err error) {
	s.asked()
	all := policy.From(ctx).Scopes.Has(policy.Scopes(policy.AdminReleases))
	var rows []row
	err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		rows, err = list(tx, in.PageIn, all)
		return err
	})
	page := op.ShowPage(in.PageIn, rows, func(r row) []string { return op.TimeKey(r.PublishedAt, r.ID) },
		func(r row) Release { return r.wire(all) })
	out = Releases{View: "installable", Data: page.Data, NextCursor: page.NextCursor}
	if all {
		out.View = "ledger"
	}
	return out, err
}

type versionIn struct {
	Channel string `json:"channel" example:"builtin" doc:"channel of the release"`
	Version string `json:"version" example:"v1.4.0" doc:"version of the release"`
}

type yankIn struct {
	versionIn
	Why string `json:"why" minLength:"1" maxLength:"500" example:"it does not start" doc:"what is wrong with it, for those who run boxes"`
}

// Yanked is the answer of box.yank and box.unyank.
type Yanked struct {
	_         struct{} `doc:"What became of a release." schema:"Yanked"`
	Channel   string   `json:"channel" example:"builtin" doc:"its channel"`
	Version   string   `json:"version" example:"v1.4.0" doc:"its version"`
	Artifacts int64    `json:"artifacts" example:"2" doc:"builds that were halted, or restored; 0: they were already"`
}

// change changes the builds of a version, which are locked by the change itself, and records the
// event if any was changed.
func (s *Service) change(ctx context.Context, in versionIn, why string, kind event.Kind[haltedData],
	do func(*db.Tx, versionArgs) (int64, error),
) (out Yanked, err error) {
	s.asked()
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		of := versionArgs(in)
		n, err := do(tx, of)
		if err != nil {
			return err
		}
		out = Yanked{Channel: in.Channel, Version: in.Version, Artifacts: n}
		if n > 0 {
			data := haltedData{Channel: in.Channel, Version: in.Version, Artifacts: n, Why: why}
			return kind.Operated(tx, event.Subject{ID: in.Channel + "/" + in.Version}, data, nil)
		}
		builds, err := ofVersion.All(tx, of)
		if err == nil && len(builds) == 0 {
			err = fault.Missing("release")
		}
		return err
	})
	return out, err
}

func (s *Service) yank(ctx context.Context, in yankIn) (Yanked, error) {
	by := policy.From(ctx).Label()
	return s.change(ctx, in.versionIn, in.Why, haltedEvent, func(tx *db.Tx, of versionArgs) (int64, error) {
		return halt.Exec(tx, haltArgs{versionArgs: of, At: tx.Now, By: by, Why: in.Why})
	})
}

func (s *Service) unyank(ctx context.Context, in versionIn) (Yanked, error) {
	return s.change(ctx, in, "", restoredEvent, func(tx *db.Tx, of versionArgs) (int64, error) { return restore.Exec(tx, of) })
}
