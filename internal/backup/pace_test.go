package backup

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A backup rests after each stride of what it copies, over the borders of files, and what is put back
// is copied without a rest. Nothing is lost at the borders of strides.
func TestPace(t *testing.T) {
	t.Parallel()
	root, rests, at := t.TempDir(), 0, time.Unix(0, 0)
	f, err := Make(filepath.Join(t.TempDir(), "backup"), func() time.Time { at = at.Add(time.Minute); return at })
	if err != nil {
		t.Fatal(err)
	}
	f.pace.sleep = func(d time.Duration) {
		if rests++; d != longestRest { // the disk takes a minute
			t.Error("it rests for", d)
		}
	}
	whole := bytes.Repeat([]byte("0123456789abcdef"), stride*5/2/16)
	for _, name := range []string{"a", "b"} {
		from := filepath.Join(root, name)
		if err := os.WriteFile(from, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := f.File(from, name); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(f.Within(name)); err != nil || !bytes.Equal(got, whole) {
			t.Errorf("%s is not the same: %v", name, err)
		}
	}
	if rests != 5 {
		t.Errorf("of five strides it rests after %d", rests)
	}
	back := Folder{Path: t.TempDir()}
	if err := back.File(f.Within("a"), "a"); err != nil || rests != 5 {
		t.Errorf("after %d rests: %v", rests, err)
	}
}
