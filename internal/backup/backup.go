// Package backup is the form of a backup on the disk: a folder with a copy of the database, of
// each repository and of each object, the sums of all files, and a manifest that is written last, so
// that half a backup is never taken for a whole one.
//
//	backup.go  Folder, its manifest and its sums
//	copy.go    copies files and repositories into it and out of it
//	git.go     has git look at a copy
//	pace.go    shares the disk with servers while one is made
//	hold.go    keeps servers from deleting while it is made
//
// A copy that is whole needs an order: the database first, then of each repository the refs, then
// its objects, then the objects of the store. What is stored comes before what names it, so whatever
// was copied early is found in what is copied later.
package backup

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"yardmaster/internal/durable"
)

// The names in a backup.
const (
	manifestFile = "manifest.json"
	sumsFile     = "files.sha256"
	GitFolder    = "git"
	BlobFolder   = "blob"
	KeyFile      = "master.key"
	HeadsFile    = "audit-heads.jsonl"
)

// form is the version of the form of a backup.
const form = 1

// Manifest says what a backup has.
type Manifest struct {
	Form         int              `json:"form"`
	MadeAt       time.Time        `json:"made_at"` // of the database
	Program      string           `json:"program"` // its version
	Schema       int64            `json:"schema"`
	Engine       string           `json:"engine"`
	Database     string           `json:"database"` // the name of its file
	Rows         map[string]int64 `json:"rows"`     // by table
	Repositories []Repository     `json:"repositories"`
	Objects      int              `json:"objects"`
	ObjectBytes  int64            `json:"object_bytes"`
	Lacking      []string         `json:"lacking"`   // objects that rows name and that the server did not have
	Elsewhere    []string         `json:"elsewhere"` // other nodes, whose repositories are not in it
	WithKeys     bool             `json:"with_keys"` // the master keys are in it
	Files        int              `json:"files"`
	Sums         string           `json:"sums"` // SHA-256 of the file of sums
}

// Repository is a repository of the built-in host in a backup.
type Repository struct {
	Path string `json:"path"` // OWNER/NAME.git
	Refs int    `json:"refs"`
	// Moved are the refs that somebody moved after the database was copied, or just before.
	Moved []Moved `json:"moved,omitempty"`
}

// Moved is a ref that was not the same before and after the database was copied.
type Moved struct {
	Ref string `json:"ref"`
	Was string `json:"was,omitempty"` // empty: it was not there
	Is  string `json:"is,omitempty"`  // empty: it is not there any more
}

// Folder is a backup that is being made.
type Folder struct {
	Path  string
	lines []string // of the file of sums
	pace  *pace    // nil: files are copied as fast as can be
}

// Make begins a backup in a folder that is empty or not there yet. The clock says how long the disk takes.
func Make(path string, clock func() time.Time) (*Folder, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	switch in, err := os.ReadDir(path); {
	case err != nil:
		return nil, err
	case len(in) > 0 && whole(path):
		return nil, fmt.Errorf("%s is a backup already: name a new folder", path)
	case len(in) > 0:
		return nil, fmt.Errorf("%s is not empty; if a backup into it was cut off, remove it first", path)
	}
	return &Folder{Path: path, pace: &pace{clock: clock, sleep: time.Sleep}}, nil
}

func whole(path string) bool {
	_, err := os.Stat(filepath.Join(path, manifestFile))
	return err == nil
}

// Within is the path of something in the backup.
func (f *Folder) Within(name string) string { return filepath.Join(f.Path, filepath.FromSlash(name)) }

// Sum notes the sum of a file of the backup that others have written.
func (f *Folder) Sum(name string) error {
	sum, err := sumOf(f.Within(name))
	if err == nil {
		f.note(name, sum)
	}
	return err
}

func (f *Folder) note(name, sum string) {
	f.lines = append(f.lines, sum+"  "+filepath.ToSlash(name)+"\n")
}

func sumOf(path string) (string, error) {
	in, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer in.Close()
	h := sha256.New()
	if _, err := io.Copy(h, in); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Finish writes the sums and, when everything is on the disk, the manifest.
func (f *Folder) Finish(m Manifest) error {
	slices.Sort(f.lines)
	text := []byte(strings.Join(f.lines, ""))
	if err := durable.Stream(f.Within(sumsFile), ".sums-*", bytes.NewReader(text)); err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	m.Form, m.Files, m.Sums = form, len(f.lines), hex.EncodeToString(sum[:])
	out, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	syscall.Sync() // not each file was synced
	return durable.Stream(f.Within(manifestFile), ".manifest-*", bytes.NewReader(append(out, '\n')))
}

// Open reads the manifest of a backup. It fails for one that is not whole.
func Open(path string) (m Manifest, err error) {
	text, err := os.ReadFile(filepath.Join(path, manifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return m, fmt.Errorf("%s is no whole backup: it has no %s, which is written last", path, manifestFile)
	}
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("%s: %w", manifestFile, err)
	}
	if m.Form != form {
		return m, fmt.Errorf("%s is a backup of form %d, and this program knows form %d", path, m.Form, form)
	}
	return m, nil
}

// Verify holds each file of a backup against its sum, and answers what is wrong.
func Verify(path string, m Manifest) (wrong []string, err error) {
	text, err := os.ReadFile(filepath.Join(path, sumsFile))
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != m.Sums {
		return []string{sumsFile + " is not the one that the manifest names"}, nil
	}
	lines := bufio.NewScanner(strings.NewReader(string(text)))
	for lines.Scan() {
		want, name, ok := strings.Cut(lines.Text(), "  ")
		if !ok || !filepath.IsLocal(filepath.FromSlash(name)) {
			return nil, fmt.Errorf("%s: %q is no line of sums", sumsFile, lines.Text())
		}
		switch got, err := sumOf(filepath.Join(path, filepath.FromSlash(name))); {
		case errors.Is(err, fs.ErrNotExist):
			wrong = append(wrong, name+" is missing")
		case err != nil:
			return wrong, err
		case got != want:
			wrong = append(wrong, name+" has changed since the backup was made")
		}
	}
	return wrong, lines.Err()
}
