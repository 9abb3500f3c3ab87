package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"yardmaster/internal/api/held"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/backup"
	"yardmaster/internal/blob"
	"yardmaster/internal/config"
	"yardmaster/internal/domain/quota"
)

// reachBucket is how long the start of the server waits for the bucket.
const reachBucket = 10 * time.Second

// objects opens the configured store of objects. A bucket that is said not to be there
// is an error; one that cannot be reached now is logged, since it may come back.
func (a *App) objects(ctx context.Context) (blob.Store, error) {
	if path, ok := a.cfg.BlobFolder(); ok {
		f := blob.NewFolder(path, a.base, a.ring, a.now)
		f.Signed = func(ctx context.Context, key string) error {
			account, _, _ := strings.Cut(key, "/")
			return a.transfer(ctx, account)
		}
		f.Stored = func(ctx context.Context, key string) { a.parts.kept.Stored(ctx, key) }
		return f, nil
	}
	if a.cfg.Blob == config.BlobOff {
		return blob.Off{}, nil
	}
	b, err := blob.ParseBucket(a.cfg.Blob)
	if err != nil {
		return nil, fmt.Errorf("blob: %w", err)
	}
	s, err := blob.NewS3(b)
	if err != nil {
		return nil, fmt.Errorf("blob: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, reachBucket)
	defer cancel()
	err = s.Reach(ctx)
	if errors.Is(err, blob.ErrNotFound) {
		return nil, errors.Join(fmt.Errorf("blob: %w", err), s.Close())
	}
	if err != nil {
		a.log.ErrorContext(ctx, "the bucket for objects cannot be reached", slog.Any("error", err))
	}
	return s, nil
}

// objectsWithin is a store of objects that takes what their accounts have room for. What is
// uploaded by an address is not looked at: who hands one out has made room.
type objectsWithin struct {
	blob.Store
	quota *quota.Service
}

// Put implements blob.Store. It fails with fault.StorageFull for an account without room.
func (o objectsWithin) Put(ctx context.Context, key string, r io.Reader, size int64, mediaType string) error {
	account, _, _ := strings.Cut(key, "/")
	if err := o.quota.ObjectRoom(ctx, account, size); err != nil {
		return err
	}
	return o.Store.Put(ctx, key, r, size, mediaType)
}

// deleting is asked before bytes of repositories or of the store are deleted: a backup that is
// being made needs them.
func (a *App) deleting() (done func(), may bool, err error) {
	return backup.Deleting(filepath.Join(a.cfg.Data, backup.GitFolder))
}

// kept is the store of objects for those who delete some.
func (a *App) kept() blob.Store {
	if _, off := a.blob.(blob.Off); off {
		return a.blob
	}
	return blob.Held{Store: a.blob, Deleting: a.deleting}
}

// now is the time of what is kept in memory. A test replaces the clock after the store
// of objects is open.
func (a *App) now() time.Time {
	if a.clock == nil {
		return time.Now()
	}
	return a.clock()
}

// transfer makes room for a request whose address is its credential. It counts for the account whose
// object it is about, whoever was given the address.
func (a *App) transfer(ctx context.Context, account string) error {
	return held.Known(ctx, "", func() (func(), error) { return a.calls.Hold("objects:"+account, account) })
}

// serveObjects serves the addresses of objects that this server keeps. A store that
// serves its own has none here.
func (a *App) serveObjects(otherwise http.Handler) http.Handler {
	if f, ok := a.blob.(*blob.Folder); ok {
		return rest.Paced(a.cfg.BodyTime, f)
	}
	return otherwise
}
