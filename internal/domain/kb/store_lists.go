package kb

import (
	"yardmaster/internal/db"
)

const (
	chunk    = 256  // rows of one insert
	mostList = 4096 // values of one list
)

type gramRow struct {
	Gram  int64
	Words []byte
}

var pagesOf = db.Q[int64](`SELECT pages FROM kb_indexes WHERE repo_id = $1`)

// stored reads the index of a repository in a transaction.
type stored struct {
	tx     *db.Tx
	repoID string
}

func (s stored) pages() (int64, error) {
	n, _, err := pagesOf.Maybe(s.tx, s.repoID)
	return n, err
}

func (s stored) words(gs []gram) (map[gram][]byte, error) {
	out := make(map[gram][]byte, len(gs))
	err := inChunks(gs, func(g gram) any { return int64(g) }, func(list any) error {
		rows, err := db.Select[gramRow](s.tx,
			db.Build(`SELECT gram, words FROM kb_grams WHERE repo_id = `, s.repoID).And("gram IN ", list))
		for _, r := range rows {
			out[gram(r.Gram)] = r.Words
		}
		return err
	})
	return out, err
}

func (s stored) posts(words []string) (map[string][]block, error) {
	out := make(map[string][]block, len(words))
	err := inChunks(words, asParam, func(list any) error {
		rows, err := db.Select[block](s.tx,
			db.Build(`SELECT term, block, posts FROM kb_terms WHERE repo_id = `, s.repoID).And("term IN ", list))
		for _, r := range rows {
			out[r.Term] = append(out[r.Term], r)
		}
		return err
	})
	return out, err
}

func (s stored) latest(ords []int64, most int) ([]place, error) {
	var out []place
	err := inChunks(ords, func(o int64) any { return o }, func(list any) error {
		rows, err := db.Select[place](s.tx,
			db.Build(`SELECT ord, updated_at, slug FROM kb_pages WHERE repo_id = `, s.repoID).And("ord IN ", list).
				SQL(` ORDER BY updated_at DESC, slug LIMIT `, most))
		out = append(out, rows...)
		return err
	})
	return newest(out, most), err
}

func asParam(s string) any { return s }

// inChunks calls f with lists of the values, each filled up with its last one to a power of
// two, so that lists of all lengths make few different statements.
func inChunks[T any](values []T, param func(T) any, f func(list any) error) error {
	for len(values) > 0 {
		n := min(mostList, len(values))
		size := 1
		for size < n {
			size *= 2
		}
		list := make([]any, size)
		for i := range list {
			list[i] = param(values[min(i, n-1)])
		}
		if err := f(db.Tuple(list...)); err != nil {
			return err
		}
		values = values[n:]
	}
	return nil
}

// inRows inserts rows in chunks of powers of two: begin and end are the parts of the
// statement before and behind its VALUES.
func inRows[T any](tx *db.Tx, rows []T, begin func() *db.Builder, row func(T) any, end func(*db.Builder) *db.Builder) error {
	for len(rows) > 0 {
		n := chunk
		for n > len(rows) {
			n /= 2
		}
		b := begin()
		for i, r := range rows[:n] {
			if i > 0 {
				b.SQL(", ")
			}
			b.SQL("", row(r))
		}
		if _, err := db.Select[int64](tx, end(b)); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// reindex changes the lists of a repository by the words of one page that differ. The
// caller holds the row of the repository.
func (s stored) reindex(ord int64, diff map[string]byte) error {
	words := make([]string, 0, len(diff))
	for w := range diff {
		words = append(words, w)
	}
	have, err := s.posts(words)
	if err != nil {
		return err
	}
	change := postings(ord, diff, have)
	err = inChunks(change.drop, asParam, func(list any) error {
		_, err := db.Select[int64](s.tx, db.Build(`DELETE FROM kb_terms WHERE repo_id = `, s.repoID).
			And("block = ", ord>>blockBits).And("term IN ", list).SQL(` RETURNING block`))
		return err
	})
	if err != nil {
		return err
	}
	if err := s.save(change.put); err != nil {
		return err
	}
	return s.rewordAll(change)
}

// save writes lists of pages.
func (s stored) save(lists []block) error {
	return inRows(s.tx, lists, func() *db.Builder {
		return db.Build(`INSERT INTO kb_terms (repo_id, term, block, posts) VALUES `)
	}, func(b block) any {
		return db.Tuple(s.repoID, b.Term, b.Block, b.Posts)
	}, func(b *db.Builder) *db.Builder {
		return b.SQL(` ON CONFLICT (repo_id, term, block) DO UPDATE SET posts = excluded.posts RETURNING block`)
	})
}

// rewordAll writes the lists of the dictionary that change.
func (s stored) rewordAll(change posting) error {
	lists, err := s.words(change.ordered)
	if err != nil {
		return err
	}
	var put []gramRow
	var gone []int64
	for _, g := range change.ordered {
		if next := reword(lists[g], change.grams[g]); len(next) > 0 {
			put = append(put, gramRow{int64(g), next})
		} else {
			gone = append(gone, int64(g))
		}
	}
	err = inChunks(gone, func(g int64) any { return g }, func(list any) error {
		_, err := db.Select[int64](s.tx, db.Build(`DELETE FROM kb_grams WHERE repo_id = `, s.repoID).
			And("gram IN ", list).SQL(` RETURNING gram`))
		return err
	})
	if err != nil {
		return err
	}
	return inRows(s.tx, put, func() *db.Builder {
		return db.Build(`INSERT INTO kb_grams (repo_id, gram, words) VALUES `)
	}, func(r gramRow) any {
		return db.Tuple(s.repoID, r.Gram, r.Words)
	}, func(b *db.Builder) *db.Builder {
		return b.SQL(` ON CONFLICT (repo_id, gram) DO UPDATE SET words = excluded.words RETURNING gram`)
	})
}
