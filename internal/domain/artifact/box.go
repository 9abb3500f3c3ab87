package artifact

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"yardmaster/internal/blob"
	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
	"yardmaster/internal/protocol"
)

// Serve registers the handler of the boxes' calls about what runs leave.
func (s *Service) Serve() error {
	if s.Bus == nil {
		return nil
	}
	if err := s.Bus.Handle(protocol.CallArtifact, s.fromBox); err != nil {
		return fmt.Errorf("artifact: answer %s: %w", protocol.CallArtifact, err)
	}
	return nil
}

// fromBox records an artifact of a live attempt that a box holds, in the account of its run, and
// answers where its bytes go.
func (s *Service) fromBox(ctx context.Context, boxID string, data []byte) (any, error) {
	var in protocol.ArtifactAsk
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, fault.New(fault.Invalid, "", "The call cannot be read.").Because(err)
	}
	types := slices.Collect(maps.Values(protocol.ArtifactTypes))
	switch err := check(in.Name, in.Type); {
	case err != nil:
		return nil, err
	case len(in.Name) > 200 || !slices.Contains(types, in.Type) || in.Size < 0 || in.Size > protocol.MaxArtifactBytes ||
		len(in.SHA256) != 64 || strings.Trim(in.SHA256, "0123456789abcdef") != "":
		return nil, fault.New(fault.Invalid, "", "A run stores no such file.")
	}
	if _, off := s.Objects.(blob.Off); off {
		return nil, fault.New(fault.Unavailable, "no-object-store", "This server keeps no objects.")
	}
	var account string
	if err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		account, err = s.Places.Held(tx, boxID, in.Run, in.Attempt)
		return err
	}); err != nil {
		return nil, err
	}
	actor := policy.Actor{Credential: policy.Box, CredentialID: boxID, AccountID: account}
	out, err := s.record(policy.With(db.WithAccount(ctx, account), actor), row{
		Name: in.Name, MediaType: in.Type, Size: in.Size, SHA256: in.SHA256, Visibility: OfRun, RunID: &in.Run,
	}, actor.Label())
	return protocol.ArtifactPlace{URL: out.UploadURL, Headers: out.UploadHeaders}, err
}

// bounded refuses what a box stores beyond MaxOfRun files of a run.
func bounded(tx *db.Tx, r *row, by string) error {
	if r.RunID == nil || !strings.HasPrefix(by, string(policy.Box)+":") {
		return nil
	}
	n, err := ofRun.One(tx, tx.Account, *r.RunID)
	if err == nil && n >= MaxOfRun {
		err = fault.Newf(fault.Invalid, "", "The run has stored %d files, the most that one may.", n)
	}
	return err
}
