package provenance

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"yardmaster/internal/attestation"
	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/observe"
	"yardmaster/internal/policy"
)

// work takes a merge to its end: it is signed once, then stored and written beside the commit, in
// any order of failures.
func (s *Service) work(ctx context.Context, j due.Job[row]) due.Outcome {
	ctx = policy.With(db.WithAccount(ctx, j.Account), policy.Actor{Credential: policy.System})
	ctx = codehost.WithUrgency(ctx, codehost.ForSweeps)
	r, err := s.sign(ctx, j.Row)
	if err == nil {
		err = errors.Join(s.store(ctx, r), s.write(ctx, r))
	}
	if err != nil {
		observe.Complain(ctx, s.Logger, "say what a merge came of", err, slog.String("pull_request", j.Key))
		return due.Again(err)
	}
	return due.Done(nil)
}

// sign makes the statement, unless there is one: what was signed stays.
func (s *Service) sign(ctx context.Context, r row) (row, error) {
	if r.Envelope != "" {
		return r, nil
	}
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		statement, err := s.gather(tx, r)
		if err != nil {
			return err
		}
		key := s.signer(r.AccountID)
		envelope, err := attestation.Sign(key, statement)
		if err != nil {
			return err
		}
		n, err := signed.Exec(tx, signedArgs{
			PRID: r.PRID, Envelope: string(envelope), PublicKey: attestation.PublicKey(key), SignedAt: tx.Now,
		})
		if err == nil && n > 0 {
			err = signedEvent.Record(tx, event.Subject{ID: r.PRID, RepoID: r.RepoID}, signedData{MergeSHA: r.MergeSHA})
		}
		if err == nil {
			r, err = byPR.One(tx, tx.Account, r.PRID)
		}
		return err
	})
	return r, err
}

// store keeps the envelope as an artifact.
func (s *Service) store(ctx context.Context, r row) error {
	if r.Artifact != stateDue {
		return nil
	}
	state, why := stateStored, ""
	err := s.keep(ctx, &r)
	if err == nil && r.ArtifactID != nil {
		err = s.Artifacts.FillFile(ctx, r.AccountID, *r.ArtifactID, mediaType, []byte(r.Envelope))
	}
	switch {
	case err == nil && r.ArtifactID == nil:
		state, why = stateNone, "this server keeps no objects"
	case fault.IsKind(err, fault.StorageFull):
		state, why = stateNone, "the account had no room for it"
	case err != nil:
		return err
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error { _, err := setKept.Exec(tx, r.PRID, state, why); return err })
}

// keep records the artifact, unless it is recorded or there is no place for it.
func (s *Service) keep(ctx context.Context, r *row) error {
	if r.ArtifactID != nil || s.Artifacts.Off() {
		return nil
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		m, err := merge.One(tx, tx.Account, r.PRID)
		if err != nil {
			return err
		}
		artifactID, err := s.Artifacts.KeepFile(tx, File{
			Name: "provenance-" + r.MergeSHA[:min(len(r.MergeSHA), 12)] + ".dsse.json", MediaType: mediaType, TaskID: m.TaskID,
			RepoID: r.RepoID, Bytes: []byte(r.Envelope), By: string(policy.System),
		})
		if err == nil {
			r.ArtifactID = &artifactID
			_, err = kept.Exec(tx, r.PRID, artifactID)
		}
		return err
	})
}

// write writes the envelope beside the commit of the merge, where the host and the account let it.
func (s *Service) write(ctx context.Context, r row) error {
	if r.Note != stateDue {
		return nil
	}
	var at repo.Ref
	var known, published bool
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		m, err := merge.One(tx, tx.Account, r.PRID)
		if err != nil {
			return err
		}
		published = m.published()
		at, known, err = repo.ByID(tx, r.RepoID)
		return err
	})
	if err != nil {
		return err
	}
	all, err := s.beside(ctx, r)
	if err != nil {
		return err
	}
	state, why := stateWritten, ""
	switch {
	case !known || at.Gone != "":
		state, why = stateNone, "the server has no access to the repository"
	case !published:
		state, why = stateNone, "the repository is public, and its public_stats_enabled is off"
	default:
		if why, err = s.note(ctx, at, r, all); err != nil {
			return err
		}
		if why != "" {
			state = stateNone
		}
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		if now, err := ofCommit.All(tx, r.RepoID, r.MergeSHA); err != nil || state == stateWritten && len(now) != len(all) {
			return errors.Join(err, errMore)
		}
		_, err := setNote.Exec(tx, r.PRID, state, why)
		return err
	})
}

// errMore tells that the note lacks a statement that was signed while it was written.
var errMore = errors.New("another statement about the commit was signed meanwhile")

// beside are the statements about the commit of a merge: of more than one pull request, if it
// merged several.
func (s *Service) beside(ctx context.Context, r row) (all []string, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		all, err = ofCommit.All(tx, r.RepoID, r.MergeSHA)
		return err
	})
	return all, err
}

// note sets the note, which has a line for each statement. why is a reason for which it never
// will be.
func (s *Service) note(ctx context.Context, at repo.Ref, r row, all []string) (why string, err error) {
	host, err := s.Hosts.Of(at.HostRepo())
	if err != nil {
		return "", err
	}
	noter, can := host.(codehost.Noter)
	if !can {
		return "the code host keeps no notes", nil
	}
	err = noter.Note(ctx, at.HostRepo(), codehost.NoteOptions{Name: Notes, Commit: r.MergeSHA, Text: strings.Join(all, "\n") + "\n",
		Author: s.Bot})
	var forbidden *codehost.ForbiddenError
	var blocked *codehost.BlockedError
	switch {
	case errors.As(err, &forbidden):
		return "the code host does not let this server write it", nil
	case errors.As(err, &blocked), errors.Is(err, codehost.ErrGone), errors.Is(err, codehost.ErrCannot):
		return "the code host refused it", nil
	case errors.Is(err, codehost.ErrNotFound):
		return "the code host has no such commit", nil
	}
	return "", err
}

// giveUp notes that what is missing will not be tried again.
func giveUp(tx *db.Tx, key, why string) error {
	_, err := setKept.Exec(tx, key, stateNone, why)
	if err == nil {
		_, err = setNote.Exec(tx, key, stateNone, why)
	}
	return err
}
