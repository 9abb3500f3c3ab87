package shelf_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/cli/shelf"
	"yardmaster/internal/client"
)

// base is a knowledge base in memory. It refuses what the server refuses.
type base struct {
	pages map[string]shelf.Text
	// meanwhile, if set, is done once before the next write.
	meanwhile func()
}

func problem(status int, slug string) error {
	return &client.Problem{Type: "/problems/" + slug, Status: status, Detail: "No."}
}

func (b *base) List(context.Context) (all []shelf.Page, _ error) {
	for _, slug := range slices.Sorted(maps.Keys(b.pages)) {
		all = append(all, b.pages[slug].Page)
	}
	return all, nil
}

func (b *base) Read(_ context.Context, slug string) (shelf.Text, error) {
	p, ok := b.pages[slug]
	if !ok {
		return p, problem(404, "not-found")
	}
	return p, nil
}

func (b *base) Write(_ context.Context, slug string, d shelf.Draft) (int64, error) {
	if do := b.meanwhile; do != nil {
		b.meanwhile = nil
		do()
	}
	p := b.pages[slug]
	if d.IfVersion != p.Version {
		return 0, problem(409, "page-changed")
	}
	for rest := d.Body; ; {
		_, after, ok := strings.Cut(rest, "[[")
		if !ok {
			break
		}
		to, after, _ := strings.Cut(after, "]]")
		if _, ok := b.pages[to]; !ok && to != slug {
			return 0, problem(422, "link-unresolved")
		}
		rest = after
	}
	p.Slug, p.Body, p.Title, p.Links = slug, d.Body, d.Title, d.Links
	p.Provenance.Files = d.Provenance.Files
	if p.Version++; p.Title == "" {
		p.Title = strings.TrimPrefix(strings.SplitN(d.Body, "\n", 2)[0], "# ")
	}
	b.pages[slug] = p
	return p.Version, nil
}

func (b *base) Withdraw(_ context.Context, slug string) error {
	delete(b.pages, slug)
	return nil
}

// put writes a page as somebody else does.
func (b *base) put(slug, body string) {
	p := b.pages[slug]
	p.Slug, p.Body, p.Version = slug, body, p.Version+1
	p.Title = strings.TrimPrefix(strings.SplitN(body, "\n", 2)[0], "# ")
	b.pages[slug] = p
}

type desk struct {
	t   *testing.T
	dir string
	b   *base
}

func sit(t *testing.T) *desk {
	return &desk{t, filepath.Join(t.TempDir(), "kb"), &base{pages: map[string]shelf.Text{}}}
}

func (d *desk) do(push bool) shelf.Report {
	d.t.Helper()
	f, err := shelf.Open(d.dir, true)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	if err := f.Of("http://yard", "acme/web", "1"); err != nil {
		d.t.Fatal(err)
	}
	var r shelf.Report
	if push {
		r, err = f.Push(d.t.Context(), d.b, false)
	} else {
		r, err = f.Pull(d.t.Context(), d.b)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return r
}

func (d *desk) file(name, text string) {
	d.t.Helper()
	at := filepath.Join(d.dir, name)
	err := os.MkdirAll(filepath.Dir(at), 0o755)
	if err == nil {
		err = os.WriteFile(at, []byte(text), 0o600)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) has(name, text string) {
	d.t.Helper()
	if b, err := os.ReadFile(filepath.Join(d.dir, name)); err != nil || string(b) != text {
		d.t.Errorf("%s has %q, not %q: %v", name, b, text, err)
	}
}

func slugs(all []shelf.Note) (out []string) {
	for _, n := range all {
		out = append(out, n.Slug)
	}
	return out
}

func (d *desk) came(what string, r shelf.Report, done, kept, refused string) {
	d.t.Helper()
	var did []string
	for _, c := range r.Done {
		did = append(did, c.What+" "+c.Slug)
	}
	if got := strings.Join(did, ", "); got != done {
		d.t.Errorf("%s: done %q, not %q", what, got, done)
	}
	if got := strings.Join(slugs(r.Kept), ", "); got != kept {
		d.t.Errorf("%s: kept %v, not %q", what, r.Kept, kept)
	}
	if got := strings.Join(slugs(r.Refused), ", "); got != refused {
		d.t.Errorf("%s: refused %v, not %q", what, r.Refused, refused)
	}
}

// What changed on one side goes to the other, and nothing else does.
func TestThereAndBack(t *testing.T) {
	t.Parallel()
	d := sit(t)
	d.b.put("guides/build", "# Build\n\nRun make.\n")
	d.b.put("a", "# A\n")
	d.came("the first pull", d.do(false), "written a, written guides/build", "", "")
	d.has("guides/build.md", "# Build\n\nRun make.\n")
	d.came("again", d.do(false), "", "", "")
	d.came("a push of nothing", d.do(true), "", "", "")
	d.file("a.md", "# A\n\nMore.\n")
	d.file("notes/new.md", "# New\n\n[[guides/build]]\n")
	d.file("notes/readme.txt", "no page")
	d.came("a pull keeps what is changed", d.do(false), "", "a", "")
	d.came("a push", d.do(true), "pushed a, pushed notes/new", "", "")
	if got := d.b.pages["notes/new"]; got.Version != 1 || got.Body != "# New\n\n[[guides/build]]\n" {
		t.Errorf("the new page is %+v", got)
	}
	d.came("and again", d.do(true), "", "", "")
	d.b.put("guides/build", "# Build\n\nRun make twice.\n")
	d.came("a push leaves what is newer there", d.do(true), "", "guides/build", "")
	d.came("which a pull brings", d.do(false), "written guides/build", "", "")
	delete(d.b.pages, "guides/build")
	d.came("what is deleted there goes", d.do(false), "removed guides/build", "", "")
	if _, err := os.Stat(filepath.Join(d.dir, "guides")); !os.IsNotExist(err) {
		t.Errorf("its folder is still there: %v", err)
	}
	if err := os.Remove(filepath.Join(d.dir, "a.md")); err != nil {
		t.Fatal(err)
	}
	d.came("what is deleted here stays there", d.do(true), "", "a", "")
}

// What changed on both sides is named, and nothing of either is lost.
func TestBothSides(t *testing.T) {
	t.Parallel()
	d := sit(t)
	d.b.put("a", "one\n")
	d.b.put("b", "one\n")
	d.do(false)
	d.file("a.md", "mine\n")
	d.b.put("a", "theirs\n")
	d.file("b.md", "both the same\n")
	d.b.put("b", "both the same\n")
	d.came("a pull", d.do(false), "noted b", "", "a")
	d.has("a.md", "mine\n")
	d.came("a push", d.do(true), "", "", "a")
	if got := d.b.pages["a"].Body; got != "theirs\n" {
		t.Errorf("their text is %q", got)
	}
	// One that comes between the look and the write.
	d.file("b.md", "mine\n")
	d.b.meanwhile = func() { d.b.put("b", "theirs\n") }
	d.came("a race", d.do(true), "", "", "a, b")
	d.has("b.md", "mine\n")
	if got := d.b.pages["b"].Body; got != "theirs\n" {
		t.Errorf("their text is %q", got)
	}
	// A file that nobody knows of is in the place of a page.
	d.file("c.md", "mine\n")
	d.b.put("c", "theirs\n")
	d.came("a page in the place of a file", d.do(false), "", "", "a, b, c")
	d.has("c.md", "mine\n")
	d.b.put("d", "d\n")
	d.do(false)
	d.file("d.md", "changed\n")
	delete(d.b.pages, "d")
	d.came("deleted there, changed here", d.do(false), "", "", "a, b, c, d")
	d.came("which no push brings back", d.do(true), "", "", "a, b, c, d")
	d.has("d.md", "changed\n")
}

// New pages that lead to each other are sent; one that leads nowhere is named, and leaves
// nothing.
func TestCircles(t *testing.T) {
	t.Parallel()
	d := sit(t)
	d.file("a.md", "# A\n[[b]]\n")
	d.file("b.md", "# B\n[[c]]\n")
	d.file("c.md", "# C\n[[a]]\n")
	d.file("lost.md", "# Lost\n[[nowhere]]\n")
	r := d.do(true)
	slices.SortFunc(r.Done, func(a, b shelf.Change) int { return strings.Compare(a.Slug, b.Slug) })
	d.came("circles", r, "pushed a, pushed b, pushed c", "", "lost")
	if _, ok := d.b.pages["lost"]; ok || d.b.pages["a"].Body != "# A\n[[b]]\n" {
		t.Errorf("there is %v", d.b.pages)
	}
}

// What else a page has stays with it.
func TestRestOfAPage(t *testing.T) {
	t.Parallel()
	d := sit(t)
	p := shelf.Text{Body: "text\n"}
	p.Slug, p.Title, p.Links, p.Version = "a", "A title of its own", []string{"a"}, 1
	p.Provenance.Files = []string{"Makefile"}
	d.b.pages["a"] = p
	d.b.put("b", "# Derived\n")
	d.do(false)
	d.file("a.md", "other\n")
	d.file("b.md", "# Another\n")
	d.came("a push", d.do(true), "pushed a, pushed b", "", "")
	if got := d.b.pages["a"]; got.Title != p.Title || len(got.Links) != 1 || len(got.Provenance.Files) != 1 {
		t.Errorf("the page is %+v", got)
	}
	if got := d.b.pages["b"].Title; got != "Another" {
		t.Errorf("the title of b is %q", got)
	}
}

// No name and no link leads out of the folder.
func TestWithinTheFolder(t *testing.T) {
	t.Parallel()
	d := sit(t)
	d.do(false)
	outside := filepath.Join(filepath.Dir(d.dir), "outside")
	if err := os.MkdirAll(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(outside, "secret.md"), []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"way": outside, "one.md": filepath.Join(outside, "secret.md")} {
		if err := os.Symlink(to, filepath.Join(d.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	bad := []string{"../x", "a/../../x", "/etc/x", ".hidden", "a//b", "a/./b", "a\\b", "a\x00b", ".yardmaster-kb", strings.Repeat("a", 201)}
	for _, slug := range bad {
		d.b.put(slug, "evil\n")
	}
	d.b.put("way/in", "evil\n")
	d.b.put("one", "evil\n")
	d.b.put("x", "good\n")
	r := d.do(false)
	if len(r.Done) != 1 || r.Done[0].Slug != "x" || len(r.Refused) != len(bad)+2 {
		t.Errorf("a pull came to %+v", r)
	}
	r = d.do(true)
	if len(r.Done) != 0 || strings.Join(slugs(r.Refused), " ") != "one.md way" {
		t.Errorf("a push came to %+v", r)
	}
	found, err := filepath.Glob(filepath.Join(filepath.Dir(d.dir), "*"))
	if err != nil || len(found) != 2 {
		t.Errorf("beside the folder there are %q: %v", found, err)
	}
	if all, err := os.ReadDir(outside); err != nil || len(all) != 1 {
		t.Errorf("outside there are %v: %v", all, err)
	}
	d.file("too-large.md", strings.Repeat("a", 1<<20+1))
	d.file("no-text.md", "\xff\xfe")
	d.file("a name.md", "x")
	if r := d.do(true); strings.Join(slugs(r.Refused), " ") != "a name.md one.md way no-text too-large" {
		t.Errorf("a push came to %+v", r)
	}
	f, err := shelf.Open(d.dir, false)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Of("http://yard", "acme/other", "2"); err == nil {
		t.Error("a folder is of two repositories")
	}
}
