package shelf

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// noted is the file of a folder in which it stands what the server had.
const noted = ".yardmaster-kb.json"

// Base is a page as both sides had it when they were alike last.
type Base struct {
	Version int64  `json:"version"`
	Digest  string `json:"sha256"`           // of the text
	Titled  bool   `json:"titled,omitempty"` // whether its title is another one than its text gives
}

// State is what a folder is of, and what the server had.
type State struct {
	Server string          `json:"server"`
	Repo   string          `json:"repo"`
	RepoID string          `json:"repo_id"`
	Pages  map[string]Base `json:"pages"`
}

// Folder is a folder of pages.
type Folder struct {
	root  *os.Root
	state State
}

// ErrOther says that a folder is of another repository or server.
var ErrOther = errors.New("the folder is of another repository")

// Open opens a folder, which is made if make is set. Its caller closes it.
func Open(dir string, create bool) (*Folder, error) {
	if create {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return nil, err
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	f := &Folder{root: root}
	if err := f.load(); err != nil {
		_ = root.Close() // nothing was written
		return nil, err
	}
	return f, nil
}

// Close lets go of the folder.
func (f *Folder) Close() error { return f.root.Close() }

// Repo is the repository that the folder is of; "" if it was never filled.
func (f *Folder) Repo() string { return f.state.Repo }

// Of says what the folder is of, and fails with ErrOther if that is something else already.
func (f *Folder) Of(server, repo, repoID string) error {
	if f.state.RepoID != "" && (f.state.RepoID != repoID || f.state.Server != server) {
		return fmt.Errorf("%w: %s at %s", ErrOther, f.state.Repo, f.state.Server)
	}
	f.state.Server, f.state.Repo, f.state.RepoID = server, repo, repoID
	return nil
}

func (f *Folder) load() error {
	f.state.Pages = map[string]Base{}
	b, err := f.root.ReadFile(noted)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(b, &f.state)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", noted, err)
	}
	if f.state.Pages == nil {
		f.state.Pages = map[string]Base{}
	}
	for slug := range f.state.Pages {
		if !named(slug) {
			return fmt.Errorf("%s: %q is no page", noted, slug)
		}
	}
	return nil
}

// save writes what is noted, unless the folder is of nothing.
func (f *Folder) save() error {
	if f.state.RepoID == "" {
		return nil
	}
	b, err := json.MarshalIndent(f.state, "", " ")
	if err != nil {
		return err
	}
	return f.replace(noted, append(b, '\n'))
}

func (f *Folder) note(slug string, version int64, body string, titled bool) {
	f.state.Pages[slug] = Base{version, digest(body), titled}
}

// known are the pages that are noted, in order.
func (f *Folder) known() (all []string) {
	for slug := range f.state.Pages {
		all = append(all, slug)
	}
	slices.Sort(all)
	return all
}

// Titled tells whether a page has another title than its text gives: the first heading, else
// the end of the slug.
func Titled(p Text) bool {
	for line := range strings.Lines(p.Body) {
		if h := strings.TrimLeft(line, "#"); len(h) < len(line) && strings.HasPrefix(h, " ") {
			if h = strings.TrimSpace(h); h != "" {
				return string([]rune(h)[:min(200, len([]rune(h)))]) != p.Title
			}
		}
	}
	return path.Base(p.Slug) != p.Title
}

func fileOf(slug string) string { return filepath.FromSlash(slug) + ".md" }

// texts are the slugs of the files of the folder, in order, and what is no page.
func (f *Folder) texts() (slugs []string, notes []Note, err error) {
	err = fs.WalkDir(f.root.FS(), ".", func(at string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, is := strings.CutSuffix(at, ".md")
		switch {
		case at == ".":
		case strings.HasPrefix(e.Name(), ".") && e.IsDir():
			return fs.SkipDir
		case strings.HasPrefix(e.Name(), "."), !is && e.Type()&fs.ModeSymlink == 0, e.IsDir():
		case e.Type()&fs.ModeSymlink != 0:
			notes = append(notes, Note{at, "a link, which is not followed"})
		case !e.Type().IsRegular():
			notes = append(notes, Note{at, "no file"})
		case !named(name):
			notes = append(notes, Note{at, "the name of a page has letters, digits, dots, hyphens and underscores, each part beginning with a " +
				"letter, a digit or _"})
		default:
			slugs = append(slugs, name)
		}
		return nil
	})
	return slugs, notes, err
}

// read reads the text of a page; here is false where it has no file.
func (f *Folder) read(slug string) (body string, here bool, err error) {
	at := fileOf(slug)
	info, err := f.root.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, plainly(err)
	}
	if !info.Mode().IsRegular() {
		return "", false, errors.New("there is something at the place of its file that is no file")
	}
	in, err := f.root.Open(at)
	if err != nil {
		return "", false, plainly(err)
	}
	defer in.Close()
	b, err := io.ReadAll(io.LimitReader(in, mostBody+1))
	switch {
	case err != nil:
		return "", false, plainly(err)
	case len(b) > mostBody:
		return "", false, fmt.Errorf("larger than a page, which has at most %d bytes", mostBody)
	case !utf8.Valid(b):
		return "", false, errors.New("no text in UTF-8")
	}
	return string(b), true, nil
}

// plainly is what went wrong with a file, without its path, which stands before it.
func plainly(err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// write writes the text of a page, if its file is still what was read of it.
func (f *Folder) write(slug, body, was string, here bool) error {
	at := fileOf(slug)
	if err := f.root.MkdirAll(filepath.Dir(at), 0o777); err != nil {
		return plainly(err)
	}
	now, is, err := f.read(slug)
	if err != nil {
		return err
	}
	if is != here || now != was {
		return errors.New("its file is being changed: pull again")
	}
	return plainly(f.replace(at, []byte(body)))
}

// replace puts a file in the place of another one, or of none, whole.
func (f *Folder) replace(at string, text []byte) error {
	next := filepath.Join(filepath.Dir(at), ".yardmaster-next")
	_ = f.root.Remove(next) // of a pull that was killed
	out, err := f.root.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	if err = errors.Join(err, out.Close()); err == nil {
		err = f.root.Rename(next, at)
	}
	if err != nil {
		_ = f.root.Remove(next)
	}
	return err
}

// remove deletes the file of a page, and the folders that are empty then.
func (f *Folder) remove(slug string) error {
	if err := f.root.Remove(fileOf(slug)); err != nil {
		return err
	}
	for dir := path.Dir(slug); dir != "."; dir = path.Dir(dir) {
		if f.root.Remove(filepath.FromSlash(dir)) != nil {
			break // something else is in it
		}
	}
	return nil
}
