package artifact

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/blob"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due/duetest"
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

// places knows one run.
type places struct{ run, task, repo, account string }

func (p places) Held(_ *db.Tx, boxID, runID string, attempt int) (string, error) {
	if boxID != "box" || runID != p.run || attempt != 1 {
		return "", fault.Missing("live attempt")
	}
	return p.account, nil
}

func (p places) Run(_ *db.Tx, runID string) (string, string, bool, error) {
	return p.task, p.repo, runID == p.run, nil
}
func (p places) Task(_ *db.Tx, taskID string) (string, bool, error) {
	return p.repo, taskID == p.task, nil
}
func (p places) Repo(_ *db.Tx, repoID string) (bool, error) { return repoID == p.repo, nil }

// room is full when it is told.
type room struct{ full bool }

func (r *room) ObjectMade(*db.Tx) error {
	if r.full {
		return fault.New(fault.StorageFull, "quota-full", "Full.")
	}
	return nil
}

// shaky is a store of objects that fails as a test says.
type shaky struct {
	blob.Store
	stat, before, after func() error
}

func do(fn func() error) error {
	if fn == nil {
		return nil
	}
	return fn()
}

func (s *shaky) Stat(ctx context.Context, key string) (blob.Info, error) {
	if err := errors.Join(do(s.stat), ctx.Err()); err != nil {
		return blob.Info{}, err
	}
	return s.Store.Stat(ctx, key)
}

func (s *shaky) Delete(ctx context.Context, key string) error {
	if err := do(s.before); err != nil {
		return err
	}
	return errors.Join(s.Store.Delete(ctx, key), do(s.after))
}

// yard is an account with a service, a folder of objects and a clock.
type yard struct {
	*Service
	t       *testing.T
	ctx     context.Context
	account string
	places  places
	room    *room
	store   *shaky
	folder  *blob.Folder
	dir     string
	mu      sync.Mutex
	now     time.Time
}

func (y *yard) clock() time.Time {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.now
}

func (y *yard) later(d time.Duration) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.now = y.now.Add(d)
}

func onBoth(t *testing.T, fn func(*testing.T, *yard)) {
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			y := &yard{t: t, now: time.Unix(1_800_000_000, 0), account: id.New(), room: &room{}, dir: t.TempDir(),
				places: places{run: id.New(), task: id.New(), repo: id.New()}}
			d := dbtest.Open(t, dbtest.DSN(t, e), db.Options{Clock: y.clock})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				y.folder.ServeHTTP(w, r)
			}))
			t.Cleanup(server.Close)
			y.places.account = y.account
			ring := seal.New()
			y.folder = blob.NewFolder(y.dir, server.URL, ring, y.clock)
			y.store = &shaky{Store: y.folder}
			y.Service = New(Needs{
				DB: d, Due: duetest.New(d, event.NewHub()), Ring: ring, Objects: y.store, Places: y.places, Room: y.room,
				Logger: slog.New(slog.DiscardHandler), BaseURL: server.URL,
			})
			if err := d.Write(t.Context(), func(tx *db.Tx) error { return seed.Add(tx, seed.Account{ID: y.account}) }); err != nil {
				t.Fatal(err)
			}
			actor := policy.Actor{Credential: policy.PAT, CredentialID: "1", AccountID: y.account, UserID: id.New()}
			y.ctx = policy.With(db.WithAccount(t.Context(), y.account), actor)
			fn(t, y)
		})
	}
}

// put records an artifact of ten bytes.
func (y *yard) put(in putIn) Upload {
	y.t.Helper()
	in.Name, in.ContentType, in.Size = "a.txt", "text/plain", 10
	u, err := y.Service.put(y.ctx, in)
	if err != nil {
		y.t.Fatal(err)
	}
	return u
}

// send uploads a text and answers the status.
func (y *yard) send(u Upload, text string) int {
	y.t.Helper()
	req, err := http.NewRequestWithContext(y.t.Context(), http.MethodPut, u.UploadURL, strings.NewReader(text))
	if err != nil {
		y.t.Fatal(err)
	}
	for name, value := range u.UploadHeaders {
		req.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		y.t.Fatal(err)
	}
	answer.Body.Close()
	return answer.StatusCode
}

// stored is an artifact whose bytes are there.
func (y *yard) stored(in putIn) Upload {
	y.t.Helper()
	u := y.put(in)
	if status := y.send(u, "0123456789"); status != 200 {
		y.t.Fatal(status)
	}
	y.Stored(y.ctx, y.account+"/artifacts/"+u.ID)
	if y.shown() == 0 {
		y.t.Fatal("it does not show")
	}
	return u
}

// shown is how many artifacts a list has.
func (y *yard) shown() int {
	y.t.Helper()
	b, err := y.list(y.ctx, listIn{op.FirstPage("artifact.list", &op.Paging{Default: 50})})
	if err != nil {
		y.t.Fatal(err)
	}
	return len(b.Data)
}

// rows and objects are what there is, shown or not.
func (y *yard) rows() (n int, bytes int64) {
	y.t.Helper()
	if err := y.DB.Read(y.ctx, func(tx *db.Tx) error {
		all, err := db.Select[row](tx, db.Build(`SELECT `+columns+` FROM artifacts WHERE account_id = `, y.account))
		n, bytes = len(all), 0
		for _, r := range all {
			bytes += r.Size
		}
		return err
	}); err != nil {
		y.t.Fatal(err)
	}
	return n, bytes
}

func (y *yard) objects() (n int) {
	y.t.Helper()
	if err := filepath.WalkDir(y.dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			n++
		}
		return err
	}); err != nil {
		y.t.Fatal(err)
	}
	return n
}

func (y *yard) pass(after time.Duration) {
	y.t.Helper()
	y.later(after)
	duetest.Pass(y.t.Context(), y.t, y.Due)
}

// events counts the events of a kind.
func (y *yard) events(kind string) (n int) {
	y.t.Helper()
	if err := y.DB.Read(y.ctx, func(tx *db.Tx) error {
		all, err := db.Select[string](tx, db.Build(`SELECT kind FROM audit WHERE kind = `, kind))
		n = len(all)
		return err
	}); err != nil {
		y.t.Fatal(err)
	}
	return n
}

func (y *yard) getKind(artifactID string) fault.Kind {
	y.t.Helper()
	_, err := y.get(y.ctx, idIn{artifactID})
	if err == nil {
		return fault.Internal
	}
	return fault.From(err).Kind
}

// An artifact shows when its bytes have arrived, and never before, whoever asks for it.
func TestIncompleteNeverShows(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		u := y.put(putIn{})
		none := func(when string) {
			t.Helper()
			if n := y.shown(); n != 0 || y.getKind(u.ID) != fault.NotFound {
				t.Errorf("%s: %d are shown", when, n)
			}
			if _, err := y.share(y.ctx, shareIn{ID: u.ID}); fault.From(err).Slug != "bytes-missing" {
				t.Errorf("%s: %v", when, err)
			}
		}
		none("recorded")
		if status := y.send(u, "012345678"); status < 400 {
			t.Error("a short upload is taken")
		}
		none("cut short")
		y.pass(time.Minute)
		none("looked for")
		if status := y.send(u, "0123456789"); status != 200 {
			t.Error(status)
		}
		y.Stored(t.Context(), y.account+"/artifacts/"+u.ID)
		y.Stored(t.Context(), y.account+"/artifacts/"+u.ID)
		y.Stored(t.Context(), y.account+"/artifacts/"+id.New())
		y.Stored(t.Context(), y.account+"/ci/1.log")
		if y.shown() != 1 || y.getKind(u.ID) != fault.Internal || y.events("artifact.stored") != 1 {
			t.Errorf("%d are shown, told %d times", y.shown(), y.events("artifact.stored"))
		}
	})
}

// Where nobody tells of an arrival, such as a bucket, a pass finds it. An upload that never
// comes is forgotten within a day, with the room that it had.
func TestArrivalIsFound(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		u := y.put(putIn{})
		y.put(putIn{})
		y.pass(time.Minute)
		y.send(u, "0123456789")
		y.pass(10 * time.Minute)
		if y.shown() != 1 || y.events("artifact.stored") != 1 {
			t.Error("it was not found")
		}
		y.pass(25 * time.Hour)
		if n, bytes := y.rows(); n != 1 || bytes != 10 || y.shown() != 1 {
			t.Errorf("%d rows of %d bytes", n, bytes)
		}
	})
}

// An account without room is refused, and nothing is recorded.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.room.full = true
		_, err := y.Service.put(y.ctx, putIn{Name: "a", ContentType: "text/plain", Size: 1})
		if n, _ := y.rows(); fault.From(err).Kind != fault.StorageFull || n != 0 || y.events("artifact.recorded") != 0 {
			t.Errorf("%v, %d rows", err, n)
		}
	})
}
