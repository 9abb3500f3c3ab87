package kb

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/proof/seed"
)

// sources are the paragraphs of the documents and of some of the source of the program, whose
// words have the lengths and repetitions that decide what a list costs.
func sources(b *testing.B) (all []string) {
	err := filepath.WalkDir("../../..", func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || len(all) > 40000 {
			return err
		}
		if ext := filepath.Ext(p); ext != ".md" && (ext != ".go" || len(p)%5 != 0) {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil || len(text) > 300<<10 || !utf8.Valid(text) || strings.ContainsRune(string(text), 0) {
			return err
		}
		for part := range strings.SplitSeq(string(text), "\n\n") {
			if part = strings.TrimSpace(part); len(part) >= 40 && len(part) <= 3000 {
				all = append(all, part)
			}
		}
		return nil
	})
	if err != nil || len(all) < 1000 {
		b.Fatal(len(all), err)
	}
	return all
}

// load writes pages and their lists at once.
func load(tx *db.Tx, repoID string, papers []paper) error {
	lists, last := map[string][]block{}, map[string]int64{}
	for _, p := range papers {
		no, low := p.ord>>blockBits, p.ord&(1<<blockBits-1)
		for t, e := range entries(p.text) {
			bs := lists[t]
			if len(bs) == 0 || bs[len(bs)-1].Block != no {
				bs, last[t] = append(bs, block{Term: t, Block: no}), 0
			}
			of := &bs[len(bs)-1]
			of.Posts, last[t] = appendPost(of.Posts, last[t], low, e), low
			lists[t] = bs
		}
		row := pageRow{Body: p.Body, headRow: headRow{RepoID: repoID, Slug: p.Slug, Ord: p.ord, Title: p.Title, Version: 1}}
		row.Links.V, row.Files.V, row.StaleFiles.V = []string{}, []string{}, []string{}
		row.CreatedAt, row.UpdatedAt = tx.Now, db.Time(p.updated)
		if _, err := putPage.Exec(tx, row); err != nil {
			return err
		}
	}
	change := posting{grams: map[gram]map[string]bool{}}
	for _, t := range slices.Sorted(maps.Keys(lists)) {
		change.put = append(change.put, lists[t]...)
		for _, g := range grams(t) {
			if change.grams[g] == nil {
				change.grams[g] = map[string]bool{}
			}
			change.grams[g][t] = true
		}
	}
	change.ordered = slices.Sorted(maps.Keys(change.grams))
	if _, err := hold(tx, repoID); err != nil {
		return err
	}
	if _, err := moveIndex.Exec(tx, moveIndexArgs{repoID, int64(len(papers)), int64(len(papers))}); err != nil {
		return err
	}
	s := stored{tx, repoID}
	if err := s.save(change.put); err != nil {
		return err
	}
	return s.rewordAll(change)
}

// BenchmarkSearch searches 10,000 pages of 2 to 20 kB for what people type, with ten excerpts,
// and replaces one of them. It reports the percentiles of a search in milliseconds, beside reading
// ten pages by name, and fails if the engines find different pages.
func BenchmarkSearch(b *testing.B) {
	const pages = 10_000
	all := sources(b)
	random := rand.New(rand.NewPCG(1, 7))
	papers := make([]paper, pages)
	for i := range papers {
		var body strings.Builder
		for size, at := 2000+random.IntN(18000), random.IntN(len(all)); body.Len() < size; {
			part := all[(at+random.IntN(40))%len(all)]
			if random.IntN(4) == 0 {
				part = all[random.IntN(len(all))]
			}
			body.WriteString(part + "\n\n")
		}
		words := strings.Fields(all[random.IntN(len(all))])
		title := strings.Join(words[:min(3, len(words))], " ")
		papers[i] = paper{
			text{fmt.Sprintf("area-%d/page-%06d", random.IntN(40), i), title, body.String()}, int64(i),
			1_700_000_000_000_000 + int64(random.IntN(1000))*1e9,
		}
	}
	queries := []string{"error", "the", "http", "go", "c", "id", "parseHTTPHeader", "%", "how do I configure the request timeout of the client",
		"conection refussed", "the and for with this that from have not are can will when your use one"}
	for len(queries) < 300 {
		words := strings.FieldsFunc(papers[random.IntN(pages)].Body, func(r rune) bool { return !isWord(r) })
		at := random.IntN(len(words))
		queries = append(queries, strings.Join(words[at:min(len(words), at+1+random.IntN(4))], " "))
	}
	found := map[string]string{}
	for _, e := range dbtest.Engines() {
		b.Run(e.String(), func(b *testing.B) {
			d := dbtest.Open(b, dbtest.DSN(b, e), db.Options{})
			err := d.Write(b.Context(), func(tx *db.Tx) error {
				if err := seed.Add(tx, seed.Account{ID: "acme"}, seed.Repo{ID: "web", Account: "acme"}); err != nil {
					return err
				}
				return load(tx, "web", papers)
			})
			if err != nil {
				b.Fatal(err)
			}
			var rounds, bareRounds [][]time.Duration
			for b.Loop() {
				searched, read := race(b, d, papers, queries, func(q string, hits []Hit) {
					said := fmt.Sprint(hits)
					if first, known := found[q]; known && first != said {
						b.Fatalf("%q finds %s, and on the other engine %s", q, said, first)
					}
					found[q] = said
				})
				rounds, bareRounds = append(rounds, searched), append(bareRounds, read)
			}
			took, bare := middles(rounds), middles(bareRounds)
			for _, p := range []int{50, 90, 99} {
				b.ReportMetric(millis(took[(len(took)-1)*p/100]), fmt.Sprintf("p%d-ms", p))
				b.ReportMetric(millis(bare[(len(bare)-1)*p/100]), fmt.Sprintf("bare-p%d-ms", p))
			}
			var replaced, rows time.Duration
			for i := range 20 {
				p := papers[random.IntN(pages)]
				p.Body, p.updated = p.Body+"\n\n"+all[i], p.updated+1
				replaced += timed(b, d, func(tx *db.Tx) error { return file(tx, "web", p) })
				rows += timed(b, d, func(tx *db.Tx) error { _, err := bareReplace.Exec(tx, "web", p.Slug, p.Body); return err })
			}
			b.ReportMetric(millis(rows/20), "bare-replace-ms")
			b.ReportMetric(millis(replaced/20), "replace-ms")
		})
	}
}

// bareReplace is a page without its lists and versions.
var bareReplace = db.S(`UPDATE kb_pages SET body = $3 WHERE repo_id = $1 AND slug = $2`)

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// timed writes, and tells how long it took.
func timed(b *testing.B, d *db.DB, write func(*db.Tx) error) time.Duration {
	began := time.Now()
	if err := d.Write(b.Context(), write); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

// middles are the middle times of each query over the rounds, sorted: what else the machine does
// falls on some rounds of a query, and not on all.
func middles(rounds [][]time.Duration) (out []time.Duration) {
	for q := range rounds[0] {
		var of []time.Duration
		for _, r := range rounds {
			of = append(of, r[q])
		}
		slices.Sort(of)
		out = append(out, of[len(of)/2])
	}
	slices.Sort(out)
	return out
}

// race searches for each query in turn with reading ten pages by their names, which is the least
// that an answer with ten excerpts needs.
func race(b *testing.B, d *db.DB, papers []paper, queries []string, seen func(string, []Hit)) (took, bare []time.Duration) {
	read := func(fn func(*db.Tx) error) time.Duration {
		began := time.Now()
		if err := d.Read(b.Context(), fn); err != nil {
			b.Fatal(err)
		}
		return time.Since(began)
	}
	for i, q := range queries {
		var slugs []string
		for k := range 10 {
			slugs = append(slugs, papers[(i*37+k*991)%len(papers)].Slug)
		}
		bare = append(bare, read(func(tx *db.Tx) error { _, err := pagesNamed(tx, "web", slugs); return err }))
		var hits []Hit
		took = append(took, read(func(tx *db.Tx) (err error) { hits, err = Search(tx, "web", q, 10); return err }))
		seen(q, hits)
	}
	return took, bare
}
