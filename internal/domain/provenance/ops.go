package provenance

import (
	"context"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/attestation"
	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

// Ops are the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{ID: "pr.provenance", Method: "GET", Path: "/v1/prs/{id}/provenance", Group: "Pull requests",
			Rule:    policy.Require(policy.ReadPRs),
			Summary: "What a merged pull request came of, signed",
			Doc: "An in-toto statement in a DSSE envelope, signed with the account's key, and where else it is. It can be verified " +
				"offline. The state is none before the merge."}, s.get),
	}
}

// Provenance is the signed statement about a merge.
type Provenance struct {
	_         struct{}   `doc:"What a merged pull request came of, signed, and where that is kept." schema:"PullRequestProvenance"`
	PRID      string     `json:"pr_id" format:"uuid" doc:"the pull request"`
	State     string     `json:"state" enum:"none,due,signed" example:"signed" doc:"none: it is not merged, or was before statements were made; due: it is about to be signed"`
	MergeSHA  *string    `json:"merge_sha" doc:"the commit that it is about; null in state none"`
	Envelope  *string    `json:"envelope" example:"{\"payloadType\":\"application/vnd.in-toto+json\",\"payload\":\"e30=\",\"signatures\":[]}" doc:"the DSSE envelope, to the byte; null until it is signed"`
	SignedAt  *time.Time `json:"signed_at" doc:"when it was signed; null until then"`
	PublicKey string     `json:"public_key" example:"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" doc:"Ed25519, in base64url: verifies the envelope; before there is one, the account's present key"`
	KeyID     string     `json:"key_id" example:"21fe31df" doc:"begins the SHA-256 of the key, and names it in the envelope"`
	Artifact  Copy       `json:"artifact" doc:"the artifact with it, deleted when its time is over; this answer stays"`
	Note      Copy       `json:"note" doc:"the note of git beside the commit, in refs/notes/yardmaster"`
}

// Copy is a place where a statement is kept as well.
type Copy struct {
	_     struct{}  `doc:"A place where a signed statement is kept as well." schema:"ProvenanceCopy"`
	State NoteState `json:"state" example:"written" doc:"stored: the artifact; written: the note; none: there will be none"`
	ID    *string   `json:"id" format:"uuid" example:"null" doc:"of the artifact; null: there is none"`
	Why   *string   `json:"why" example:"null" doc:"why there is none; null if there is, or may be"`
}

type idIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the pull request"`
}

func (s *Service) get(ctx context.Context, in idIn) (out Provenance, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		known := false
		if id.Valid(in.ID) {
			known, err = isPull.One(tx, tx.Account, in.ID)
		}
		if err == nil && !known {
			err = fault.Missing("pull request")
		}
		if err != nil {
			return err
		}
		r, ok, err := byPR.Maybe(tx, tx.Account, in.ID)
		out = s.wire(tx.Account, in.ID, r, ok)
		return err
	})
	return out, err
}

func (s *Service) wire(account, prID string, r row, ok bool) Provenance {
	out := Provenance{
		PRID: prID, State: "none", PublicKey: r.PublicKey, SignedAt: r.SignedAt,
		Artifact: Copy{State: NoteState(r.Artifact), ID: r.ArtifactID, Why: db.NullText(r.ArtifactWhy)},
		Note:     Copy{State: NoteState(r.Note), Why: db.NullText(r.NoteWhy)},
	}
	if out.PublicKey == "" {
		out.PublicKey = attestation.PublicKey(s.signer(account))
	}
	if key, err := attestation.ParseKey(out.PublicKey); err == nil {
		out.KeyID = attestation.KeyID(key)
	}
	switch {
	case !ok:
		out.Artifact.State, out.Note.State = stateNone, stateNone
		return out
	case r.Envelope == "":
		out.State = "due"
	default:
		out.State, out.Envelope = "signed", &r.Envelope
	}
	out.MergeSHA = &r.MergeSHA
	return out
}
