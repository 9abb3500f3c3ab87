package kb

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

// spellings are words that can be written in more than one way, or be taken for syntax.
var spellings = []string{"parseHTTPHeader", "parse_http_header", "parser", "parse", "header", "headers", "http", "HTTP2", "go", "golang",
	"c", "C++", "id", "Straße", "STRASSE", "strasse", "café", "cafe\u0301", "CAFE", "İstanbul", "istanbul", "ıstanbul", "ǆ", "ﬁle", "file",
	"東京", "東京都", "京都", "検索", "ガス", "カス", "검색", "ΣΊΣΥΦΟΣ", "σίσυφος", "internal/web/parse.go", "a.b-c", "100%", "_", "%_%", "'quote'",
	`"x"`, "--", "error", "errors", "eror", "connection", "conection", "__init__", "x86_64", "𝔘nicode", "unicode", "naïve", "กา", "กำ"}

// paper is a page of a test.
type paper struct {
	text
	ord, updated int64
}

func drawPaper(t *rapid.T, i int) paper {
	words := rapid.SliceOfN(rapid.SampledFrom(spellings), 0, 25).Draw(t, "body")
	if rapid.IntRange(0, 3).Draw(t, "odd") == 0 {
		words = append(words, strings.ToValidUTF8(strings.ReplaceAll(rapid.String().Draw(t, "text"), "\x00", ""), ""))
	}
	sep := rapid.SampledFrom([]string{" ", "\n", "\n# ", ", "}).Draw(t, "sep")
	return paper{text{
		Slug:  fmt.Sprintf("%s/%c%d", rapid.SampledFrom([]string{"a", "B", "ä", "_"}).Draw(t, "folder"), 'a'+i%3, i),
		Title: strings.Join(rapid.SliceOfN(rapid.SampledFrom(spellings), 0, 3).Draw(t, "title"), " "), Body: strings.Join(words, sep),
	}, int64(i), int64(rapid.IntRange(1, 3).Draw(t, "at"))}
}

func drawQuery(t *rapid.T) string {
	q := strings.Join(rapid.SliceOfN(rapid.SampledFrom(spellings), 1, 4).Draw(t, "q"), " ")
	switch rapid.IntRange(0, 5).Draw(t, "bend") {
	case 0:
		runes := []rune(q)
		q = string(runes[:max(1, len(runes)-2)])
	case 1:
		q = strings.ToUpper(q)
	case 2:
		q = rapid.String().Draw(t, "raw")
	case 3:
		q = strings.Repeat(q+" ", 10_000/(len(q)+1))
	}
	return q
}

// defined is the order by its definition, without a list.
func defined(papers []paper, q string, limit int) []place {
	words := queryWords(q)
	having := map[string]int{}
	all := make([]map[string]byte, len(papers))
	for i, p := range papers {
		all[i] = entries(p.text)
		for t := range all[i] {
			having[t]++
		}
	}
	sum, total := make([]int, len(papers)), 0
	for _, w := range words {
		mine := grams(w.Text)
		var ms []match
		for t := range having {
			theirs := grams(t)
			shared := 0
			for _, g := range mine {
				if slices.Contains(theirs, g) {
					shared++
				}
			}
			if shared == 0 {
				continue
			}
			if s := sim(w.Text, t, shared, len(mine), len(theirs)); s >= minSim {
				ms = append(ms, match{t, s})
			}
		}
		ms = best(ms, len(words))
		top := 1
		if len(ms) > 0 {
			top = having[ms[0].Term]
		}
		wt := weight(w, len(papers), top)
		total += wt * 1000
		for i := range papers {
			v := 0
			for _, m := range ms {
				if e, ok := all[i][m.Term]; ok {
					v = max(v, value(m.Sim, e))
				}
			}
			sum[i] += wt * v
		}
	}
	var out []place
	for i, s := range sum {
		if total > 0 && s*1000/total >= minScore {
			out = append(out, place{papers[i].ord, papers[i].updated, papers[i].Slug, s * 1000 / total})
		}
	}
	slices.SortFunc(out, func(a, b place) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.UpdatedAt, a.UpdatedAt), strings.Compare(a.Slug, b.Slug))
	})
	return out[:min(limit, len(out))]
}

// file writes a page as it is, past what a caller may send.
func file(tx *db.Tx, repoID string, p paper) error {
	index, err := hold(tx, repoID)
	if err != nil {
		return err
	}
	old, had, err := onePage.Maybe(tx, repoID, p.Slug)
	if err != nil {
		return err
	}
	var before map[string]byte
	row := pageRow{Body: p.Body, headRow: headRow{
		RepoID: repoID, Slug: p.Slug, Ord: index.NextOrd, Title: p.Title, Version: old.Version + 1,
	}}
	row.Links.V, row.Files.V, row.StaleFiles.V = []string{}, []string{}, []string{}
	row.CreatedAt, row.UpdatedAt = tx.Now, db.Time(p.updated)
	if had {
		row.Ord, before = old.Ord, entries(text{old.Slug, old.Title, old.Body})
	} else {
		index.Pages, index.NextOrd = index.Pages+1, index.NextOrd+1
	}
	if _, err := putPage.Exec(tx, row); err != nil {
		return err
	}
	if err := (stored{tx, repoID}).reindex(row.Ord, changed(before, entries(p.text))); err != nil {
		return err
	}
	_, err = moveIndex.Exec(tx, moveIndexArgs{repoID, index.Pages, index.NextOrd})
	return err
}

// After any row of writes both databases give the order of the definition: pages are replaced
// and deleted, and words are spelt in every way.
func TestSameOrderOnBothDatabases(t *testing.T) {
	t.Parallel()
	var all []*db.DB
	for _, e := range dbtest.Engines() {
		all = append(all, dbtest.Open(t, dbtest.DSN(t, e), db.Options{}))
	}
	for _, d := range all {
		if err := d.Write(t.Context(), func(tx *db.Tx) error { return seed.Add(tx, seed.Account{ID: "acme"}) }); err != nil {
			t.Fatal(err)
		}
	}
	n, kept := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		repoID := fmt.Sprintf("repo-%d", n)
		papers := make([]paper, rapid.IntRange(1, 12).Draw(rt, "pages"))
		for i := range papers {
			papers[i] = drawPaper(rt, i)
		}
		steps := slices.Clone(papers)
		for range rapid.IntRange(0, 6).Draw(rt, "replaced") {
			i := rapid.IntRange(0, len(papers)-1).Draw(rt, "which")
			p := drawPaper(rt, i)
			p.Slug = papers[i].Slug
			papers[i] = p
			steps = append(steps, p)
		}
		gone := rapid.IntRange(0, len(papers)-1).Draw(rt, "gone")
		for _, d := range all {
			ctx := policy.With(db.WithAccount(t.Context(), "acme"), policy.Actor{Credential: policy.Session, UserID: "ada"})
			err := d.Write(ctx, func(tx *db.Tx) error {
				if err := seed.Add(tx, seed.Repo{ID: repoID, Account: "acme", Owner: "acme", Name: repoID}); err != nil {
					return err
				}
				for _, p := range steps {
					if err := file(tx, repoID, p); err != nil {
						return err
					}
				}
				_, err := (&Service{}).drop(tx, repoID, papers[gone].Slug)
				return err
			})
			if err != nil {
				rt.Fatal(err)
			}
		}
		papers = slices.Delete(papers, gone, gone+1)
		for range 5 {
			q, limit := drawQuery(rt), rapid.IntRange(1, 25).Draw(rt, "limit")
			want := defined(papers, q, limit)
			if len(want) > 1 {
				kept++
			}
			for _, d := range all {
				var got []place
				err := d.Read(t.Context(), func(tx *db.Tx) (err error) {
					got, _, err = search(stored{tx, repoID}, q, limit)
					return err
				})
				if err != nil || !slices.Equal(want, got) {
					rt.Fatalf("%v %q: %v\nwant %v\ngot  %v", d.Engine(), q, err, want, got)
				}
			}
		}
	})
	if kept == 0 {
		t.Error("no query had an order to keep")
	}
}

func TestFoldIsStable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		if a, b := fold(s), fold(fold(s)); a != b {
			t.Fatalf("%q %q", a, b)
		}
	})
	for _, two := range [][2]string{
		{"Straße", "STRASSE"}, {"café", "CAFE\u0301"}, {"ﬁle", "FILE"}, {"ΣΊΣΥΦΟΣ", "σίσυφος"}, {"ÅNGSTRÖM", "ångstro\u0308m"},
	} {
		if fold(two[0]) != fold(two[1]) {
			t.Errorf("%q %q: %q %q", two[0], two[1], fold(two[0]), fold(two[1]))
		}
	}
	if fold("ガ") == fold("カ") {
		t.Error("a dakuten was taken for an accent")
	}
}
