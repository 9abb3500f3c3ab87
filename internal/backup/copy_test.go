package backup

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A repository is found whatever the name of the data folder is; what a first push is making is none.
func TestRepositories(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "data [1]*")
	for _, name := range []string{"acme/web.git", "acme/notes", ".new-1/web.git", "beta/a.git"} {
		if err := os.MkdirAll(filepath.Join(root, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	found, err := Repositories(root)
	if err != nil || !slices.Equal(found, []string{"acme/web.git", "beta/a.git"}) {
		t.Error(found, err)
	}
}
