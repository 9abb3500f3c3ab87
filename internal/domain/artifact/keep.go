package artifact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"

	"yardmaster/internal/blob"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/id"
)

// File is what the server itself keeps as an artifact of an account.
type File struct {
	Name, MediaType string
	TaskID          *string
	RepoID          string
	Bytes           []byte
	By              string // the label of who keeps it
}

// Off tells that this server keeps no objects.
func (s *Service) Off() bool { _, off := s.Objects.(blob.Off); return off }

// KeepFile records a file of tx.Account and answers the id of its artifact, which shows once FillFile
// has stored the bytes. It fails with fault.StorageFull if the account has no room.
func (s *Service) KeepFile(tx *db.Tx, f File) (string, error) {
	sum := sha256.Sum256(f.Bytes)
	r := row{
		ID: id.New(), AccountID: tx.Account, TaskID: f.TaskID, RepoID: &f.RepoID, Name: f.Name, MediaType: f.MediaType,
		Size: int64(len(f.Bytes)), SHA256: hex.EncodeToString(sum[:]), Visibility: Account, CreatedBy: f.By, CreatedAt: tx.Now,
		ExpiresAt: tx.Now.Add(s.life(Account)),
	}
	if err := s.add(tx, r); err != nil {
		return "", err
	}
	return r.ID, recordedEvent.Record(tx, r.subject(), putData{
		Name: r.Name, Size: r.Size, MediaType: r.MediaType, Visibility: r.Visibility,
	})
}

// FillFile stores the bytes of an artifact that KeepFile has recorded. It may be called again.
func (s *Service) FillFile(ctx context.Context, account, artifactID, mediaType string, b []byte) error {
	key := row{ID: artifactID, AccountID: account}.key()
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.Objects.Put(limited, key, bytes.NewReader(b), int64(len(b)), mediaType); err != nil {
		return away(err)
	}
	s.Stored(ctx, key)
	return nil
}

// add stores the row of an artifact whose bytes are still to come. It fails with fault.StorageFull
// if the account has no room.
func (s *Service) add(tx *db.Tx, r row) error {
	s.queue.Add(tx, r.ID, due.Entry{Account: tx.Account, After: firstLook})
	if _, err := insert.Exec(tx, r); err != nil {
		return err
	}
	return s.Room.ObjectMade(tx)
}
