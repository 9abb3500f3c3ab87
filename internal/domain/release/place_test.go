package release

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/blob"
	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/seal"
)

// Machines that join are told where the programs of this version are: the server's own, and what was
// imported for other targets. None is told of what was halted, or where no objects are kept.
func TestPlaces(t *testing.T) {
	t.Parallel()
	onBoth(t, "v1.2.3", func(t *testing.T, s *Service) {
		places := func() (targets []string) {
			t.Helper()
			all, err := s.Own(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range all {
				if !strings.HasPrefix(p.URL, "https://yard.example/") || !strings.Contains(p.URL, p.SHA256) {
					t.Errorf("%+v", p)
				}
				targets = append(targets, p.Target)
			}
			return targets
		}
		if err := s.PublishOwn(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := places(); got != nil {
			t.Errorf("without objects: %q", got)
		}
		s.Objects = blob.NewFolder(t.TempDir(), "https://yard.example", seal.New(), time.Now)
		own := runtime.GOOS + "/" + runtime.GOARCH
		if got := strings.Join(places(), " "); got != own {
			t.Errorf("%q, not %q", got, own)
		}
		if err := s.DB.Write(t.Context(), func(tx *db.Tx) error {
			at := tx.Now.Add(-time.Hour)
			for i, r := range []row{
				{Channel: "stable", Version: "v1.2.3", Target: "z/other", StoredAt: &at},
				{Channel: "stable", Version: "v1.2.3", Target: own, StoredAt: &at},
				{Channel: "stable", Version: "v1.2.3", Target: "z/elsewhere"}, // its bytes are not here
				{Channel: "stable", Version: "v1.2.4", Target: "z/later", StoredAt: &at},
			} {
				r.ID, r.SHA256, r.PublishedAt = id.New(), strings.Repeat(string(rune('a'+i)), 64), at
				if _, err := put.Exec(tx, r); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(places(), " "); got != own+" z/other" {
			t.Errorf("%q", got)
		}
		if all, err := s.Own(t.Context()); err != nil || all[0].SHA256 == strings.Repeat("b", 64) {
			t.Errorf("the server's own program is not the first: %+v, %v", all, err)
		}
		for _, channel := range []string{BuiltIn, "stable"} {
			if _, err := s.yank(operator(t), yankIn{versionIn{channel, "v1.2.3"}, "it does not start"}); err != nil {
				t.Fatal(err)
			}
		}
		if got := places(); got != nil {
			t.Errorf("halted: %q", got)
		}
	})
}

// refusing is a store that takes nothing.
type refusing struct {
	blob.Off
	puts int
}

func (r *refusing) Put(context.Context, string, io.Reader, int64, string) error {
	r.puts++
	return errors.New("no such bucket")
}

// A store that does not take the program is left alone for a while, however many machines join;
// after that it is asked again.
func TestStoreRests(t *testing.T) {
	t.Parallel()
	onBoth(t, "v1.2.3", func(t *testing.T, s *Service) {
		if err := s.PublishOwn(t.Context()); err != nil {
			t.Fatal(err)
		}
		store := &refusing{}
		s.Objects = store
		for range 3 {
			if all, err := s.Own(t.Context()); err != nil || len(all) > 0 || store.puts != 1 {
				t.Fatalf("%v, %v, asked %d times", all, err, store.puts)
			}
		}
		s.Objects = blob.NewFolder(t.TempDir(), "https://yard.example", seal.New(), time.Now)
		s.refused.Add(-storeRest.Microseconds())
		if all, err := s.Own(t.Context()); err != nil || len(all) != 1 {
			t.Errorf("later: %v, %v", all, err)
		}
	})
}
