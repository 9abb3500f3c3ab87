package release

import (
	"context"
	"crypto/ed25519"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/blob"
	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/minisign"
	"yardmaster/internal/protocol"
	"yardmaster/internal/version"
)

// addressLife is how long the address of a program is good.
const addressLife = 30 * time.Minute

// Keys are the public keys of the programs that boxes are given: those of the server, and of the
// publishers that its operator has named.
func Keys(ring Signers, publishers []string) (out []string) {
	for _, k := range ring.Signers(keyPurpose) {
		out = append(out, minisign.KeyOf(k.Public().(ed25519.PublicKey)).String())
	}
	return append(out, publishers...)
}

// object is the key of the bytes of a release in the store of objects.
func object(sha string) string { return "releases/" + sha }

type programIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the release"`
}

// Program is the answer of box.program.
type Program struct {
	_   struct{} `doc:"Where the bytes of a release are." schema:"Program"`
	URL string   `json:"url" format:"uri" example:"https://yardmaster.example.com/blob/releases/9f86d081884c7d65" doc:"answers the bytes, for half an hour"`
}

func (s *Service) program(ctx context.Context, in programIn) (out Program, err error) {
	r, err := s.handed(ctx, in.ID)
	if err != nil {
		return out, err
	}
	if out.URL, err = s.address(ctx, r); errors.Is(err, blob.ErrOff) {
		err = fault.Reason("release-not-stored", "This installation keeps no objects.").Because(err)
	}
	return out, err
}

// address is where the bytes of a release are for a while. If it is this program, they are stored first.
func (s *Service) address(ctx context.Context, r row) (string, error) {
	if r.StoredAt == nil {
		if err := s.Stock(ctx, r.Channel, r.Version); err != nil {
			return "", err
		}
	}
	return s.Objects.PresignGet(ctx, object(r.SHA256), "yardmaster-"+strings.ReplaceAll(r.Target, "/", "-"), addressLife)
}

// handed is a release that a box may take.
func (s *Service) handed(ctx context.Context, releaseID string) (r row, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		found := false
		if id.Valid(releaseID) {
			r, found, err = byID.Maybe(tx, releaseID)
		}
		switch {
		case err != nil:
			return err
		case !found:
			return fault.Missing("release")
		case r.HaltedAt != nil:
			return fault.Reason("release-halted", "The release was halted: "+r.HaltedWhy)
		case r.StoredAt == nil && !s.own(r):
			return fault.Reason("release-not-stored", "The bytes of the release are not on this installation.")
		}
		return nil
	})
	return r, err
}

// Place is where the bytes of a program are.
type Place struct{ Target, URL, SHA256 string }

// storeRest is how long a store is left alone that did not take this program: it is some 100 MB,
// and machines that join ask at any time.
const storeRest = time.Minute

// Own answers where the programs of this version are that can be installed, one for each target:
// none if this installation keeps no objects. The addresses are good for half an hour.
func (s *Service) Own(ctx context.Context) (out []Place, err error) {
	s.asked()
	var rows []row
	var now time.Time
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		now = tx.Now
		rows, err = named.All(tx, s.Version)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		lacking := r.StoredAt == nil && (!s.own(r) || now.Sub(time.UnixMicro(s.refused.Load())) < storeRest)
		if lacking || slices.ContainsFunc(out, func(p Place) bool { return p.Target == r.Target }) {
			continue
		}
		url, err := s.address(ctx, r)
		switch {
		case errors.Is(err, blob.ErrOff):
			return nil, nil
		case err != nil:
			s.refused.Store(now.UnixMicro())
			s.Logger.Warn("a program cannot be handed to machines that join", "target", r.Target, "error", err)
		default:
			out = append(out, Place{Target: r.Target, URL: url, SHA256: r.SHA256})
		}
	}
	return out, nil
}

// Build is a program of the ledger, for those who decide what boxes run.
type Build struct {
	protocol.Update
	Halted string // why no box takes it; empty: it can be installed
	Here   bool   // its bytes can be handed out
}

// Builds answers the programs of a channel, the oldest first.
func (s *Service) Builds(tx *db.Tx, channel string) ([]Build, error) {
	rows, err := ofChannel.All(tx, channel)
	out := make([]Build, len(rows))
	for i, r := range rows {
		out[i] = Build{Update: r.update(), Here: r.StoredAt != nil || s.own(r)}
		if r.HaltedAt != nil {
			out[i].Halted = "halted: " + r.HaltedWhy
		}
	}
	return out, err
}

// own tells whether a row is this program.
func (s *Service) own(r row) bool {
	return r.Channel == BuiltIn && r.Version == s.Version && r.Target == runtime.GOOS+"/"+runtime.GOARCH
}

// Newest is the newest version among builds that can be installed; empty: there is none.
func Newest(builds []Build) (out string) {
	for _, b := range builds {
		if b.Halted == "" && b.Here && version.Valid(b.Version) && (out == "" || version.After(b.Version, out)) {
			out = b.Version
		}
	}
	return out
}

// Steps is the way of a box of a target from one version to another: the programs that it takes
// one after the other, of which each can follow the one before. Nil: there is no way.
func Steps(builds []Build, target, from, to string) (out []protocol.Update) {
	for at := from; ; {
		var next *Build
		for i, b := range builds {
			if b.Target != target || b.Halted != "" || !b.Here || !version.After(b.Version, at) || version.After(b.Version, to) ||
				b.Oldest != "" && version.After(b.Oldest, at) {
				continue
			}
			if next == nil || version.After(b.Version, next.Version) {
				next = &builds[i]
			}
		}
		if next == nil {
			return nil
		}
		if out = append(out, next.Update); version.Same(next.Version, to) {
			return out
		}
		at = next.Version
	}
}

// Targets are the targets for which there are builds of a version.
func Targets(builds []Build, of string) (out []string) {
	for _, b := range builds {
		if b.Version == of && !slices.Contains(out, b.Target) {
			out = append(out, b.Target)
		}
	}
	return out
}

// Stock puts the bytes of this program into the store of objects if it is the release of a
// version, and is not there yet.
func (s *Service) Stock(ctx context.Context, channel, of string) error {
	if channel != BuiltIn || of != s.Version {
		return nil
	}
	var r row
	var found bool
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		rows, err := ofVersion.All(tx, versionArgs{Channel: channel, Version: of})
		for _, each := range rows {
			if s.own(each) {
				r, found = each, true
			}
		}
		return err
	})
	if err != nil || !found || r.StoredAt != nil {
		return err
	}
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer f.Close()
	if is, err := measured(); err != nil || is.sha != r.SHA256 {
		return errors.Join(errors.New("another node runs another program of this version"), err)
	}
	if err := s.Objects.Put(ctx, object(r.SHA256), f, r.Size, "application/octet-stream"); err != nil {
		return err
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error { _, err := stored.Exec(tx, r.ID, r.SHA256, tx.Now); return err })
}
