package provenance

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/attestation"
	"yardmaster/internal/blob"
	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/artifact"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/seal"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

var (
	web    = codehost.Repo{Host: codehost.BuiltIn, Owner: "acme", Name: "web"}
	person = codehost.Person{Name: "Ada", Email: "ada@example.com"}
)

// host is the built-in host, which fails as a test says.
type host struct {
	*builtin.Host
	fails func() error
}

func (h *host) Note(ctx context.Context, r codehost.Repo, o codehost.NoteOptions) error {
	if h.fails != nil {
		if err := h.fails(); err != nil {
			return err
		}
	}
	return h.Host.Note(ctx, r, o)
}

// proofs are real artifacts.
type proofs struct{ *artifact.Service }

func (p proofs) KeepFile(tx *db.Tx, f File) (string, error) {
	return p.Service.KeepFile(tx, artifact.File(f))
}

type places struct{ artifact.Places }

type room struct{}

func (room) ObjectMade(*db.Tx) error { return nil }

// yard has a repository with a merged pull request.
type yard struct {
	*Service
	t       *testing.T
	ctx     context.Context
	host    *host
	objects blob.Store
	root    string
	pr      string
	merge   string
}

func onYard(t *testing.T, fn func(y *yard)) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		root := t.TempDir()
		git, err := builtin.New(builtin.Config{Root: root, BaseURL: "http://host"})
		if err != nil {
			t.Fatal(err)
		}
		ring := seal.New()
		folder := blob.NewFolder(t.TempDir(), "http://host", ring, time.Now)
		h := &host{Host: git}
		hosts := codehost.NewHosts(map[string]codehost.Sides{codehost.BuiltIn: {Host: h, Forge: codehost.NoForge{}}})
		kernel := duetest.New(d, event.NewHub())
		files := artifact.New(artifact.Needs{
			DB: d, Due: kernel, Ring: ring, Objects: folder, Places: places{}, Room: room{}, Logger: slog.Default(), BaseURL: "http://host",
		})
		y := &yard{
			Service: New(Needs{
				DB: d, Due: kernel, Ring: ring, Hosts: hosts, Artifacts: proofs{files}, Bot: person, BaseURL: "http://host",
				Logger: slog.Default(),
			}),
			t: t, host: h, objects: folder, root: root, pr: id.New(),
			ctx: policy.With(db.WithAccount(t.Context(), "acme"), policy.Actor{Credential: policy.Session, UserID: "ada"}),
		}
		y.must(git.Create(y.ctx, web, codehost.CreateOptions{DefaultBranch: "main"}))
		y.merge, err = git.FirstCommit(y.ctx, web, codehost.FirstOptions{
			Branch: "main", Files: map[string][]byte{"a": []byte("a")}, Title: "Begin", Author: person, Committer: person,
			At: time.Unix(1_700_000_000, 0),
		})
		y.must(err)
		y.must(d.Write(y.ctx, func(tx *db.Tx) error {
			task, run, at := "task", "run", int64(5_000_000)
			return seed.Add(tx, seed.Account{ID: "acme"}, seed.Account{ID: "other"},
				seed.Repo{ID: "web", Account: "acme", Name: "web"},
				seed.Task{ID: task, Account: "acme", Repo: "web", By: new("ada"), Template: "careful", Pull: &y.pr,
					Problem: "secret words"},
				seed.Run{ID: run, Account: "acme", Task: task, Repo: "web", Box: "box"},
				seed.Session{ID: "s1", Account: "acme", Repo: "web", Model: "model-1", Run: &run, Task: &task,
					Micros: new(int64(1_230_000)), Unpriced: 2},
				seed.Pull{ID: y.pr, Account: "acme", Repo: "web", State: "merged", SHA: strings.Repeat("a", 40), Task: &task, Merged: &at,
					Merge: y.merge, MergedBy: "user:ada"},
				seed.Action{ID: "yes", Account: "acme", Pull: y.pr, Kind: "merge", State: "applied", SHA: strings.Repeat("a", 40),
					By: new("user:ada"), Decided: &at},
			)
		}))
		fn(y)
	})
}

func (y *yard) must(err error) {
	y.t.Helper()
	if err != nil {
		y.t.Fatal(err)
	}
}

// merged tells of the merge, as often as asked, and works.
func (y *yard) merged(times int) {
	y.t.Helper()
	for range times {
		y.must(y.DB.Write(y.ctx, func(tx *db.Tx) error { return y.Merged(tx, y.pr, "web", y.merge) }))
	}
	duetest.Pass(y.ctx, y.t, y.Due)
}

func (y *yard) shown() Provenance {
	y.t.Helper()
	out, err := y.get(y.ctx, idIn{ID: y.pr})
	y.must(err)
	return out
}

// noted is the note of the merge, as git itself reads it.
func (y *yard) noted() string {
	out, _ := exec.CommandContext(y.t.Context(), "git", "-c", "safe.directory=*", "-C", filepath.Join(y.root, "acme", "web.git"),
		"notes", "--ref=yardmaster", "show", y.merge).Output()
	return string(out)
}

func TestMergedOnce(t *testing.T) {
	t.Parallel()
	onYard(t, func(y *yard) {
		if out := y.shown(); out.State != "none" || out.PublicKey == "" || out.Envelope != nil {
			t.Errorf("%+v", out)
		}
		y.merged(2)
		out := y.shown()
		if out.State != "signed" || out.Note.State != "written" || out.Artifact.State != "stored" || *out.MergeSHA != y.merge {
			t.Fatalf("%+v", out)
		}
		if got := y.noted(); got != *out.Envelope+"\n" {
			t.Errorf("the note is %q", got)
		}
		r, _, err := y.objects.Get(y.ctx, "acme/artifacts/"+*out.Artifact.ID)
		y.must(err)
		defer r.Close()
		if b, err := io.ReadAll(r); err != nil || string(b) != *out.Envelope {
			t.Errorf("the artifact is %s %v", b, err)
		}
		y.merged(1) // what was signed stays
		if again := y.shown(); *again.Envelope != *out.Envelope || *again.Artifact.ID != *out.Artifact.ID {
			t.Errorf("%+v", again)
		}
		if strings.Contains(payload(t, *out.Envelope), "secret words") {
			t.Error("the problem is in it")
		}
		if _, err := y.get(db.WithAccount(y.ctx, "other"), idIn{ID: y.pr}); !fault.IsKind(err, fault.NotFound) {
			t.Error(err)
		}
		duetest.Agree(y.ctx, t, y.Due)
	})
}

func payload(t *testing.T, envelope string) string {
	t.Helper()
	var e struct{ Payload string }
	if err := json.Unmarshal([]byte(envelope), &e); err != nil {
		t.Fatal(err)
	}
	b, err := base64.StdEncoding.DecodeString(e.Payload)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// What is said is what the rows have, signed by the key that the answer names and no other.
func TestSaid(t *testing.T) {
	t.Parallel()
	onYard(t, func(y *yard) {
		y.merged(1)
		out := y.shown()
		key, err := attestation.ParseKey(out.PublicKey)
		y.must(err)
		s, err := attestation.Verify([]byte(*out.Envelope), key)
		y.must(err)
		p := s.Predicate
		if s.Subject[0].Digest["gitCommit"] != y.merge || s.Subject[1].Digest["gitCommit"] != strings.Repeat("a", 40) ||
			s.Subject[1].URI != "http://host/ui/prs/"+y.pr || *p.MergedBy != "user:ada" {
			t.Errorf("%+v", s)
		}
		if p.Asked == nil || p.Asked.TaskID != "task" || *p.Asked.RequestedBy != "ada" {
			t.Errorf("%+v", p.Asked)
		}
		if len(p.Runs) != 1 || p.Runs[0].BoxID != "box" || fmt.Sprint(p.Runs[0].Models) != "[model-1]" {
			t.Errorf("%+v", p.Runs)
		}
		if len(p.Approvals) != 1 || *p.Approvals[0].By != "user:ada" || p.Approvals[0].HeadSHA != strings.Repeat("a", 40) {
			t.Errorf("%+v", p.Approvals)
		}
		if p.Spend.USD == nil || *p.Spend.USD != "1.230000" && *p.Spend.USD != "1.23" || p.Spend.UnpricedCalls != 2 {
			t.Errorf("%+v", p.Spend)
		}
		other := y.signer("other").Public().(ed25519.PublicKey)
		if _, err := attestation.Verify([]byte(*out.Envelope), other); !errors.Is(err, attestation.ErrKey) {
			t.Error(err)
		}
	})
}

// Two pull requests that one commit merged have both statements in its note, in whatever order
// they were signed and written.
func TestOneCommitOfTwo(t *testing.T) {
	t.Parallel()
	onYard(t, func(y *yard) {
		first, second, at := y.pr, id.New(), int64(5_000_000)
		y.must(y.DB.Write(y.ctx, func(tx *db.Tx) error {
			return seed.Add(tx, seed.Pull{
				ID: second, Account: "acme", Repo: "web", State: "merged", SHA: strings.Repeat("b", 40), Number: 9, Merged: &at,
				Merge: y.merge, MergedBy: "user:ada",
			})
		}))
		y.host.fails = func() error { // the second is signed while the note of the first is written
			y.host.fails = nil
			y.must(y.DB.Write(y.ctx, func(tx *db.Tx) error { return y.Merged(tx, second, "web", y.merge) }))
			r, err := y.row(second)
			y.must(err)
			_, err = y.sign(y.ctx, r)
			y.must(err)
			return nil
		}
		y.merged(1)
		y.must(y.DB.Write(y.ctx, func(tx *db.Tx) error { y.queue.Hurry(tx, first); y.queue.Hurry(tx, second); return nil }))
		duetest.Pass(y.ctx, t, y.Due)
		one := y.shown()
		y.pr = second
		two := y.shown()
		if one.Note.State != "written" || two.Note.State != "written" {
			t.Fatalf("%+v %+v", one, two)
		}
		if want := *one.Envelope + "\n" + *two.Envelope + "\n"; y.noted() != want {
			t.Errorf("the note is %q", y.noted())
		}
		duetest.Agree(y.ctx, t, y.Due)
	})
}

func (y *yard) row(pr string) (r row, err error) {
	err = y.DB.Read(y.ctx, func(tx *db.Tx) error {
		r, err = byPR.One(tx, "acme", pr)
		return err
	})
	return r, err
}

// A host that fails is asked again; what it never does is said, and the artifact is there.
func TestNoteFails(t *testing.T) {
	t.Parallel()
	onYard(t, func(y *yard) {
		y.host.fails = func() error { return &codehost.BusyError{} }
		y.merged(1)
		out := y.shown()
		if out.Note.State != "due" || out.Artifact.State != "stored" {
			t.Fatalf("%+v", out)
		}
		y.host.fails = func() error { return &codehost.ForbiddenError{} }
		y.must(y.DB.Write(y.ctx, func(tx *db.Tx) error { y.queue.Hurry(tx, y.pr); return nil }))
		duetest.Pass(y.ctx, t, y.Due)
		again := y.shown()
		if again.Note.State != "none" || again.Note.Why == nil || *again.Envelope != *out.Envelope ||
			*again.Artifact.ID != *out.Artifact.ID {
			t.Errorf("%+v", again)
		}
		duetest.Agree(y.ctx, t, y.Due)
	})
}

// What a public repository at a host of others has is public: its members are asked first.
func TestPublished(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		m    mergeRow
		want bool
	}{
		{mergeRow{Host: codehost.BuiltIn}, true}, {mergeRow{Host: "github:github.com"}, false},
		{mergeRow{Host: "github:github.com", Private: true}, true}, {mergeRow{Host: "github:github.com", Public: true}, true},
	} {
		if c.m.published() != c.want {
			t.Errorf("%+v", c.m)
		}
	}
}
