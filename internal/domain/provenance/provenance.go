// Package provenance says what a merge came of: who asked, which agents worked with which models
// on which boxes, who approved which head, and what it cost. Each merged pull request gets one
// statement, signed with a key of its account, which anybody can verify without this server. It is
// kept here, as an artifact, and as a note of git beside the commit of the merge.
//
//   - provenance.go: Service, the keys
//   - gather.go: what is said
//   - work.go: how it is signed, stored and written beside the commit
//   - ops.go, events.go, store.go
package provenance

import (
	"context"
	"crypto/ed25519"
	"log/slog"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/needs"
	"yardmaster/internal/seal"
)

// Notes is the name of the notes of git: refs/notes/yardmaster.
const Notes = "yardmaster"

// NoteState is how far the note of a merge is.
type NoteState string

// States of the artifact and of the note.
const (
	stateDue     = "due"
	stateStored  = "stored"
	stateWritten = "written"
	stateNone    = "none"
)

// Values lists all states.
func (NoteState) Values() []string { return []string{stateDue, stateStored, stateWritten, stateNone} }

// mediaType is that of an envelope, as the description of DSSE has it.
const mediaType = "application/vnd.dsse.envelope.v1+json"

// retry is how a statement that could not be stored or written is tried again: for about a day.
var retry = due.Ladder{First: 5 * time.Second, Longest: time.Hour, Factor: 3, Tries: 30}

// Artifacts keep the bytes of a statement.
type Artifacts interface {
	// Off tells that this server keeps no objects.
	Off() bool
	// KeepFile records a file of tx.Account, and answers the id of its artifact.
	KeepFile(tx *db.Tx, f File) (string, error)
	// FillFile stores the bytes of such a file. It may be called again.
	FillFile(ctx context.Context, account, artifactID, mediaType string, b []byte) error
}

// File is a statement as artifacts are told of it.
type File struct {
	Name, MediaType string
	TaskID          *string
	RepoID          string
	Bytes           []byte
	By              string
}

// Needs are the dependencies of Service.
type Needs struct {
	DB        *db.DB
	Due       *due.Kernel
	Ring      *seal.Keyring
	Hosts     *codehost.Hosts
	Artifacts Artifacts
	Bot       codehost.Person // the author of notes
	BaseURL   string
	Logger    *slog.Logger
}

// Service signs what merges came of.
type Service struct {
	Needs
	queue due.Entries
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	s := &Service{Needs: n}
	s.queue = due.Register(n.Due, due.Queue[row]{
		Name: "provenances", Retry: retry, Load: load, Work: s.work, GiveUp: giveUp, Open: open,
	})
	return s
}

// signer is the key of an account.
func (s *Service) signer(account string) ed25519.PrivateKey {
	return s.Ring.Signers("provenance/" + account)[0]
}

// Merged has a statement made about a merged pull request of tx.Account. It may be called twice.
func (s *Service) Merged(tx *db.Tx, prID, repoID, mergeSHA string) error {
	n, err := insert.Exec(tx, insertArgs{PRID: prID, AccountID: tx.Account, RepoID: repoID, MergeSHA: mergeSHA, CreatedAt: tx.Now})
	if n > 0 {
		s.queue.Add(tx, prID, due.Entry{Account: tx.Account})
	}
	return err
}
