package rollout

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/domain/release"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/protocol"
	"yardmaster/internal/seal"
	"yardmaster/internal/version"
)

// trialPurpose is what the key is derived for that makes the words of test runs.
const trialPurpose = "trials"

// Serve registers the handlers of the boxes' calls on the bus.
func (s *Service) Serve() error {
	for method, fn := range map[string]func(context.Context, string, []byte) (any, error){
		protocol.CallTrial: s.claimTrial, protocol.CallTrialDone: s.trialDone,
	} {
		if err := s.Bus.Handle(method, fn); err != nil {
			return fmt.Errorf("rollout: answer %s: %w", method, err)
		}
	}
	return nil
}

// word is what a box gives back of a test run: it follows from what the run is of, so that
// nothing is kept until then.
func word(key ed25519.PrivateKey, boxID, trialID, version string) string {
	sum := sha256.Sum256(ed25519.Sign(key, []byte(boxID+"\n"+trialID+"\n"+version)))
	return hex.EncodeToString(sum[:])
}

// claimTrial gives a box the word of its test run, sealed to its present process.
func (s *Service) claimTrial(ctx context.Context, boxID string, data []byte) (any, error) {
	var in protocol.TrialClaim
	if err := json.Unmarshal(data, &in); err != nil || !id.Valid(in.ID) || len(in.Version) > 100 {
		return nil, fault.New(fault.Invalid, "", "The claim of a trial cannot be read.").Because(err)
	}
	var key string
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		if err := box.Known(tx, boxID); err != nil {
			return err
		}
		key, err = box.SealKey(tx, boxID)
		return err
	})
	if err != nil {
		return nil, err
	}
	if key == "" {
		return nil, fault.New(fault.Conflict, "", "The box has not said hello.")
	}
	text := word(s.Ring.Signers(trialPurpose)[0], boxID, in.ID, in.Version)
	sealed, err := seal.SealTo(key, protocol.TokensPurpose(in.ID), []byte(text))
	return protocol.Trial{Sealed: sealed}, err
}

// trialDone takes a test run back. A box that was told to take the version is good with it, or is
// told the next step.
func (s *Service) trialDone(ctx context.Context, boxID string, data []byte) (any, error) {
	var in protocol.TrialDone
	if err := json.Unmarshal(data, &in); err != nil || !id.Valid(in.ID) || len(in.Version) > 100 {
		return nil, fault.New(fault.Invalid, "", "The end of a trial cannot be read.").Because(err)
	}
	right := false
	for _, key := range s.Ring.Signers(trialPurpose) {
		right = right || subtle.ConstantTimeCompare([]byte(word(key, boxID, in.ID, in.Version)), []byte(in.Word)) == 1
	}
	if !right {
		return nil, fault.New(fault.Forbidden, "", "This is not the word of the trial.")
	}
	actor := policy.Actor{Credential: policy.Box, CredentialID: boxID, RequestID: policy.From(ctx).RequestID}
	return struct{}{}, s.DB.Write(policy.With(ctx, actor), func(tx *db.Tx) error {
		if err := box.Known(tx, boxID); err != nil {
			return err
		}
		return s.passed(tx, boxID, in.Version)
	})
}

// passed moves the rollout of a box of tx.Account that runs a version for good.
func (s *Service) passed(tx *db.Tx, boxID, runs string) error {
	r, ok, err := live.ForUpdate().Maybe(tx, tx.Account)
	if err != nil || !ok {
		return err // nobody waits for it
	}
	b, ok, err := boxOf.Maybe(tx, r.ID, boxID)
	if err != nil || !ok || b.State != Told || !version.Same(b.Step, runs) {
		return err
	}
	if version.Same(runs, r.Version) {
		return moveBox(tx, r, &b, Good, "")
	}
	in, err := s.scene(tx, r)
	if err != nil {
		return err
	}
	steps := release.Steps(in.builds, in.now[boxID].Target, runs, r.Version)
	if steps == nil {
		return moveBox(tx, r, &b, Failed, "No steps lead from "+runs+" to "+r.Version+".")
	}
	return s.tellBox(tx, r, &b, steps[0])
}
