// Package release keeps the ledger of the programs that boxes may run, by channel, version and build
// target. Each is signed; what a signature says binds the bytes to their channel, version and target,
// so that nobody who serves them can hand out one for another. A release can be halted, which takes
// it from what can be installed, and restored.
//
// The program of the server itself is the one release of the channel builtin, for its own target,
// signed by a key of the server.
//
//   - release.go: the Service, what is signed, and the server's own program
//   - program.go: what boxes are handed out, and the way from one version to another
//   - importing.go: a signed file that comes into the ledger
//   - ops.go, events.go: capabilities and events
//   - store.go: the statements
package release

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/blob"
	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/minisign"
	"yardmaster/internal/needs"
	"yardmaster/internal/protocol"
)

// BuiltIn is the channel of the server's own program.
const BuiltIn = "builtin"

// keyPurpose is what the server's key that signs its own program is derived for.
const keyPurpose = "releases"

// Signers are the keys of the server.
type Signers interface {
	// Signers returns the private keys for a purpose, the present one first.
	Signers(purpose string) []ed25519.PrivateKey
}

// Needs are the dependencies of Service.
type Needs struct {
	DB      *db.DB
	Ring    Signers
	Logger  *slog.Logger
	Objects blob.Store
	Boxes   Boxes
	Version string // of this program
	Commit  string // from which it was built; empty: that is not known
}

// Boxes are those who are given programs.
type Boxes interface {
	// Self is the credential by which a box proves itself.
	Self() *op.Holder
}

// Service keeps the ledger.
type Service struct {
	Needs
	refused   atomic.Int64 // when the store last did not take this program, in microseconds
	published atomic.Bool  // this program is in the ledger
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

// sums are the digests of a program.
type sums struct {
	size int64
	sha  string
	file [minisign.DigestSize]byte
}

// measured are the digests of this program, which does not change while it runs.
var measured = sync.OnceValues(func() (sums, error) { return measure("/proc/self/exe") })

func measure(path string) (out sums, err error) {
	f, err := os.Open(path)
	if err != nil {
		return out, err
	}
	defer f.Close()
	sha := sha256.New()
	counted := &counter{}
	if out.file, err = minisign.Digest(io.TeeReader(f, io.MultiWriter(sha, counted))); err != nil {
		return out, err
	}
	out.size, out.sha = counted.n, hex.EncodeToString(sha.Sum(nil))
	return out, nil
}

// counter counts what is written.
type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

const (
	// settle is how long after its start a server has other work than reading its program,
	// which takes as much of the processor as the whole start. Who looks into the ledger
	// earlier finds the program there.
	settle = time.Minute
	// retry is how long after a failure the server's program is published again.
	retry = time.Minute
	// publishTime is enough for reading a program of any size.
	publishTime = 10 * time.Second
)

// Loop publishes the server's own program once, and waits for the end of ctx.
func (s *Service) Loop(ctx context.Context) error {
	for wait := settle; ; wait = retry {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		if s.published.Load() || s.PublishOwn(ctx) == nil {
			<-ctx.Done()
			return nil
		}
	}
}

// asked publishes the server's own program for one who looks into the ledger, if that was not
// done yet. That is no part of what the caller does, which may be undone or repeated. A failure
// is told to the log: there is the rest of the ledger.
func (s *Service) asked() {
	if s.published.Load() {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), publishTime)
	defer stop()
	_ = s.PublishOwn(ctx)
}

// PublishOwn puts the server's own program into the ledger, unless it is there. One that has no
// version is not a release. Nodes of one version that differ replace each other's row.
func (s *Service) PublishOwn(ctx context.Context) (err error) {
	defer func() {
		if s.published.Store(err == nil); err != nil && ctx.Err() == nil {
			s.Logger.WarnContext(ctx, "the server's own program is not in the ledger of releases", "error", err)
		}
	}()
	if !versions.MatchString(s.Version) {
		return nil
	}
	signer := s.Ring.Signers(keyPurpose)[0]
	r := row{
		ID: id.New(), Channel: BuiltIn, Version: s.Version, Target: runtime.GOOS + "/" + runtime.GOARCH,
		CommitSHA: s.Commit, BuiltWith: runtime.Version(), SignedBy: minisign.KeyOf(signer.Public().(ed25519.PublicKey)).String(),
	}
	var there bool
	if err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		there, err = built.One(tx, r)
		return err
	}); err != nil || there {
		return err
	}
	of, err := measured()
	if err != nil {
		return err
	}
	r.Size, r.SHA256 = of.size, of.sha
	r.Signature = minisign.Sign(signer, of.file, r.update().Statement())
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		r.PublishedAt = tx.Now
		_, err := put.Exec(tx, r)
		return err
	})
}

// update is the release as a box is told of it.
func (r row) update() protocol.Update {
	return protocol.Update{
		Release: r.ID, Channel: r.Channel, Version: r.Version, Target: r.Target, Size: r.Size, SHA256: r.SHA256, Oldest: r.Oldest,
		Signature: r.Signature,
	}
}
