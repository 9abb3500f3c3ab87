package release

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/blob"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/fault"
	"yardmaster/internal/minisign"
	"yardmaster/internal/policy"
	"yardmaster/internal/protocol"
	"yardmaster/internal/seal"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

func TestStatements(t *testing.T) { t.Parallel(); dbtest.Declared(t) }

// ring has one key, made of a byte.
type ring byte

// Signers implements Signers.
func (r ring) Signers(string) []ed25519.PrivateKey {
	return []ed25519.PrivateKey{ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(r)}, ed25519.SeedSize))}
}

// none has no boxes.
type none struct{}

func (none) Self() *op.Holder { return nil }

func onBoth(t *testing.T, version string, fn func(*testing.T, *Service)) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		fn(t, New(Needs{
			DB: d, Ring: ring(1), Logger: slog.New(slog.DiscardHandler), Version: version, Commit: "3f8a1c5",
			Objects: blob.Off{}, Boxes: none{},
		}))
	})
}

func (s *Service) seen(t *testing.T, scopes ...policy.Scope) Releases {
	t.Helper()
	ctx := policy.With(db.WithAccount(t.Context(), "acme"), policy.Actor{AccountID: "acme", Scopes: policy.Scopes(scopes...)})
	out, err := s.list(ctx, listIn{op.PageIn{PerPage: 25}})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The server's program is in the ledger once, however often it starts, with a signature that holds
// for its bytes and says its channel, version, target and digest; by another key it is signed anew,
// and one that is halted stays so.
func TestOwnProgram(t *testing.T) {
	t.Parallel()
	onBoth(t, "v1.2.3", func(t *testing.T, s *Service) {
		for range 2 {
			if err := s.PublishOwn(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		got := s.seen(t, policy.ReadRunners)
		if got.View != "installable" || len(got.Data) != 1 {
			t.Fatalf("%+v", got)
		}
		r := got.Data[0]
		if _, err := s.program(t.Context(), programIn{ID: r.ID}); fault.From(err).Slug != "release-not-stored" {
			t.Errorf("there are no objects: %v", err)
		}
		if r.Target != runtime.GOOS+"/"+runtime.GOARCH || r.Built != nil || r.Halted != nil {
			t.Errorf("%+v", r)
		}
		check(t, r)
		if _, err := s.yank(operator(t), yankIn{versionIn{BuiltIn, "v1.2.3"}, "it does not start"}); err != nil {
			t.Fatal(err)
		}
		s.Ring = ring(2)
		if err := s.PublishOwn(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := s.seen(t, policy.ReadRunners); len(got.Data) != 0 {
			t.Errorf("what was halted can be installed: %+v", got)
		}
		if _, err := s.program(t.Context(), programIn{ID: r.ID}); fault.From(err).Slug != "release-halted" {
			t.Errorf("a box takes what was halted: %v", err)
		}
		all := s.seen(t, policy.ReadRunners, policy.AdminReleases)
		if len(all.Data) != 1 || all.Data[0].Halted == nil || all.Data[0].SignedBy == r.SignedBy || all.Data[0].ID != r.ID {
			t.Fatalf("%+v", all)
		}
		check(t, all.Data[0])
	})
}

func operator(t *testing.T) context.Context {
	return policy.With(t.Context(), policy.Actor{UserID: "ada", Scopes: policy.Scopes(policy.AdminReleases)})
}

// check holds that the signature of a release is by its key, for the program that runs.
func check(t *testing.T, r Release) {
	t.Helper()
	key, err := minisign.ParseKey(r.SignedBy)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	digest, err := minisign.Digest(f)
	if err != nil {
		t.Fatal(err)
	}
	said, err := minisign.Verify([]minisign.Key{key}, digest, r.Signature)
	want := protocol.Update{Channel: r.Channel, Version: r.Version, Target: r.Target, SHA256: r.SHA256}.Statement()
	if err != nil || said != want || len(r.SHA256) != 64 {
		t.Errorf("%q, %v, want %q", said, err, want)
	}
}

// A build that is there is not measured again; one of another commit or another key is.
func TestBuiltOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, "v1.2.3", func(t *testing.T, s *Service) {
		if err := s.PublishOwn(t.Context()); err != nil {
			t.Fatal(err)
		}
		own := s.seen(t, policy.ReadRunners).Data[0]
		r := row{
			Channel: BuiltIn, Version: s.Version, Target: own.Target, CommitSHA: s.Commit,
			BuiltWith: runtime.Version(), SignedBy: own.SignedBy,
		}
		for what, c := range map[string]struct {
			change func(*row)
			want   bool
		}{
			"itself":         {func(*row) {}, true},
			"a commit":       {func(r *row) { r.CommitSHA = "b00b1e5" }, false},
			"no commit":      {func(r *row) { r.CommitSHA = "" }, false},
			"another Go":     {func(r *row) { r.BuiltWith = "go0" }, false},
			"another key":    {func(r *row) { r.SignedBy = "other" }, false},
			"another target": {func(r *row) { r.Target = "plan9/mips" }, false},
		} {
			r := r
			c.change(&r)
			var got bool
			err := s.DB.Read(t.Context(), func(tx *db.Tx) (err error) { got, err = built.One(tx, r); return err })
			if err != nil || got != c.want {
				t.Errorf("%s: %v, %v", what, got, err)
			}
		}
	})
}

// Who looks into the ledger of a server that has just started finds its program, as does a machine
// that joins, and an operator who halts it. Its loop has not published it by then.
func TestLookedForEarly(t *testing.T) {
	t.Parallel()
	for what, look := range map[string]func(*testing.T, *Service) int{
		"a list": func(t *testing.T, s *Service) int { return len(s.seen(t, policy.ReadRunners).Data) },
		"a halt": func(t *testing.T, s *Service) int {
			out, err := s.yank(operator(t), yankIn{versionIn{BuiltIn, "v1.2.3"}, "it does not start"})
			if err != nil {
				t.Fatal(err)
			}
			return int(out.Artifacts)
		},
		"a machine": func(t *testing.T, s *Service) int {
			s.Objects = blob.NewFolder(t.TempDir(), "https://yard.example", seal.New(), time.Now)
			all, err := s.Own(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return len(all)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			onBoth(t, "v1.2.3", func(t *testing.T, s *Service) {
				if n := look(t, s); n != 1 {
					t.Errorf("it finds %d programs", n)
				}
			})
		})
	}
}

// A program without a version, or with one that is no name, is no release.
func TestNoRelease(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"", "a b", "../x", strings.Repeat("1", 65), "1\n2"} {
		onBoth(t, version, func(t *testing.T, s *Service) {
			if err := s.PublishOwn(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := s.seen(t, policy.AdminReleases); len(got.Data) != 0 || got.View != "ledger" {
				t.Errorf("%q: %+v", version, got)
			}
		})
	}
}
