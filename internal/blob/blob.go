// Package blob keeps objects outside of the database: logs of checks and whatever else
// is large, is written once and is handed out by an address. An object has a key that
// begins with its account. A Store hands out addresses that are signed and expire, so
// that the bytes do not pass through a capability. Folder keeps the objects on a disk
// of the server, which also serves them; S3 keeps them in a bucket.
package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"time"

	"yardmaster/internal/lazy"
)

// Errors of a Store.
var (
	// ErrNotFound means that there is no object of the key.
	ErrNotFound = errors.New("there is no such object")
	// ErrSize means that a reader had fewer or more bytes than was said. Nothing is
	// stored.
	ErrSize = errors.New("the object has another size than was said")
	// ErrOff means that this installation keeps no objects.
	ErrOff = errors.New("this installation keeps no objects")
	// ErrHeld means that nothing is deleted for now: a backup is being made.
	ErrHeld = errors.New("objects are kept while a backup is made")
)

// MaxTTL is the longest life of an address, which is what S3 allows.
const MaxTTL = 7 * 24 * time.Hour

// Info describes an object.
type Info struct {
	Size int64  // in bytes
	Type string // media type, as Put was told
	At   time.Time
}

// Store keeps objects. A key is account/rest: at least two segments of A-Z, a-z, 0-9,
// "-", "_" and ".", divided by "/", of which none begins with ".", at most MaxKey bytes
// in all. Every method fails for another key.
//
// No method may be called inside a transaction.
type Store interface {
	// Put stores size bytes of r under a key, in place of an object that has the key.
	// When Put returns without an error the object survives a loss of power. It fails
	// with ErrSize, and then the object of before is still there.
	Put(ctx context.Context, key string, r io.Reader, size int64, mediaType string) error
	// Get opens an object; the caller closes it. It fails with ErrNotFound.
	Get(ctx context.Context, key string) (io.ReadCloser, Info, error)
	// Stat describes an object. It fails with ErrNotFound.
	Stat(ctx context.Context, key string) (Info, error)
	// Delete removes an object. A key without an object is no error.
	Delete(ctx context.Context, key string) error
	// PresignGet returns an address that answers the object, to everybody who has the
	// address, until ttl is over. A browser saves it as a file of the given name and
	// never shows it as a page. PresignGet does not look whether there is the object.
	PresignGet(ctx context.Context, key, name string, ttl time.Duration) (string, error)
	// PresignShow is PresignGet for an object that a browser may show: a plain text, or a
	// picture without parts of its own (PNG, JPEG, GIF, WebP), of the given media type. Any
	// other is answered as PresignGet answers it.
	PresignShow(ctx context.Context, key, name, mediaType string, ttl time.Duration) (string, error)
	// PresignPut returns an address that takes the object by PUT until ttl is over, unless
	// there is one of the key. The upload must have exactly the given Content-Length and
	// the headers of Upload; any other is refused.
	PresignPut(ctx context.Context, key string, size int64, mediaType string, ttl time.Duration) (string, error)
	// Close lets go of what the store holds open.
	Close() error
}

// MaxKey is the longest key, in bytes.
const MaxKey = 512

var keyForm = lazy.New(`^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$`)

func checkKey(key string) error {
	if len(key) > MaxKey || !keyForm.MatchString(key) {
		return fmt.Errorf("%.80q is no key of an object", key)
	}
	return nil
}

func checkType(mediaType string) error {
	if _, _, err := mime.ParseMediaType(mediaType); err != nil || len(mediaType) > 200 {
		return fmt.Errorf("%.80q is no media type", mediaType)
	}
	return nil
}

func checkTTL(ttl time.Duration) error {
	if ttl < time.Second || ttl > MaxTTL {
		return fmt.Errorf("an address cannot live for %s", ttl)
	}
	return nil
}

// checkPut fails for arguments of Put that no store takes.
func checkPut(key string, size int64, mediaType string) error {
	if size < 0 {
		return ErrSize
	}
	return errors.Join(checkKey(key), checkType(mediaType))
}

// Upload returns the headers that a PUT to an address of PresignPut must have, besides its
// Content-Length.
func Upload(mediaType string) map[string]string {
	return map[string]string{"Content-Type": mediaType, "If-None-Match": "*"}
}

// shown is the Content-Type under which a browser shows an object; "" for one that it must
// not show: whatever the bytes are, they cannot act as a page.
func shown(mediaType string) string {
	switch plain, _, err := mime.ParseMediaType(mediaType); {
	case err != nil:
		return ""
	case plain == "text/plain":
		return "text/plain; charset=utf-8"
	case plain == "image/png" || plain == "image/jpeg" || plain == "image/gif" || plain == "image/webp":
		return plain
	}
	return ""
}

// inline is the Content-Disposition under which a browser shows an object.
func inline(name string) string {
	if text := mime.FormatMediaType("inline", map[string]string{"filename": name}); name != "" && text != "" {
		return text
	}
	return "inline"
}

// attachment is the Content-Disposition under which a browser saves an object instead
// of showing it.
func attachment(name string) string {
	if text := mime.FormatMediaType("attachment", map[string]string{"filename": name}); name != "" && text != "" {
		return text
	}
	return "attachment"
}

// exactly reads from r, and fails with ErrSize unless r has left bytes.
type exactly struct {
	r    io.Reader
	left int64
}

func (e *exactly) Read(p []byte) (int, error) {
	if e.left == 0 {
		var more [1]byte
		switch n, err := io.ReadFull(e.r, more[:]); {
		case n > 0:
			return 0, ErrSize
		case errors.Is(err, io.EOF):
			return 0, io.EOF
		default:
			return 0, err
		}
	}
	if int64(len(p)) > e.left {
		p = p[:e.left]
	}
	n, err := e.r.Read(p)
	if e.left -= int64(n); errors.Is(err, io.EOF) {
		if err = nil; e.left > 0 {
			err = ErrSize
		}
	}
	return n, err
}

// Off is the store of an installation that keeps no objects: everything fails with
// ErrOff, but for Delete.
type Off struct{}

// Put implements Store.
func (Off) Put(context.Context, string, io.Reader, int64, string) error { return ErrOff }

// Get implements Store.
func (Off) Get(context.Context, string) (io.ReadCloser, Info, error) { return nil, Info{}, ErrOff }

// Stat implements Store.
func (Off) Stat(context.Context, string) (Info, error) { return Info{}, ErrOff }

// Delete implements Store.
func (Off) Delete(context.Context, string) error { return nil }

// PresignGet implements Store.
func (Off) PresignGet(context.Context, string, string, time.Duration) (string, error) {
	return "", ErrOff
}

// PresignShow implements Store.
func (Off) PresignShow(context.Context, string, string, string, time.Duration) (string, error) {
	return "", ErrOff
}

// PresignPut implements Store.
func (Off) PresignPut(context.Context, string, int64, string, time.Duration) (string, error) {
	return "", ErrOff
}

// Close implements Store.
func (Off) Close() error { return nil }

// Held is a store that deletes nothing while a backup is made: Delete fails with ErrHeld.
type Held struct {
	Store
	// Deleting is asked before an object is deleted, and its done is called after it.
	Deleting func() (done func(), may bool, err error)
}

// Delete implements Store.
func (h Held) Delete(ctx context.Context, key string) error {
	done, may, err := h.Deleting()
	if err != nil {
		return err
	}
	if !may {
		return ErrHeld
	}
	defer done()
	return h.Store.Delete(ctx, key)
}

// Named is an object that a row names.
type Named struct {
	Key  string
	Size int64 // in bytes; -1: the row does not say
}

// Tidy removes what cut-off uploads have left, where the store has such.
func (h Held) Tidy(ctx context.Context, before time.Time) error {
	if t, ok := h.Store.(interface {
		Tidy(ctx context.Context, before time.Time) error
	}); ok {
		return t.Tidy(ctx, before)
	}
	return nil
}
