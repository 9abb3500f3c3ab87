package db

import (
	"fmt"
	"regexp"
	"slices"
)

// keeper is a query whose rows stay in memory, and the tables it reads.
type keeper struct{ tables []string }

// Kept has the rows stay in memory between transactions that write, for the
// little that is read for every change and seldom changes itself. It holds on
// SQLite, whose one writer sees every change pass; PostgreSQL is always asked.
// What the rows point to is shared and must not be changed. The parameters are
// texts, three at most.
func (q Query[T]) Kept() Query[T] {
	if commaJoin.MatchString(q.text) {
		panic("db: " + q.at + ": a kept query names its tables behind FROM and JOIN")
	}
	q.keep = &keeper{}
	for _, m := range readFrom.FindAllStringSubmatch(q.text, -1) {
		q.keep.tables = append(q.keep.tables, m[1])
	}
	return q
}

var (
	readFrom  = regexp.MustCompile(`\b(?:FROM|JOIN)\s+([a-z_]+)`)
	commaJoin = regexp.MustCompile(`\bFROM\s+[a-z_]+(?:\s+[a-z]+)?\s*,`)
	writtenTo = regexp.MustCompile(`\b(?:INTO|UPDATE|FROM)\s+([a-z_]+)`)
)

// mostKept bounds the results of one query in memory.
const mostKept = 1024

// keptArgs are the parameters of a kept query.
type keptArgs [3]string

// memory is what kept queries have read. It belongs to the writer.
type memory struct {
	results map[*keeper]map[keptArgs]any // each a []T
	version int64                        // of the database; other connections move it
	targets map[string]string            // statement -> the table it changes, "" for any
}

// check forgets everything if another connection has changed the database.
// Call it when a transaction has just begun.
func (m *memory) check(conn *sqliteConn) error {
	if len(m.results) == 0 {
		return nil
	}
	version, err := conn.version()
	if err == nil && version != m.version {
		m.forget()
	}
	return err
}

func (m *memory) forget() { clear(m.results) }

// change forgets what a statement that is about to run may change.
func (m *memory) change(text string) {
	if len(m.results) == 0 {
		return
	}
	table, ok := m.targets[text]
	if !ok {
		if found := writtenTo.FindStringSubmatch(text); found != nil {
			table = found[1]
		}
		if m.targets == nil || len(m.targets) >= maxStatements {
			m.targets = map[string]string{}
		}
		m.targets[text] = table
	}
	for k := range m.results {
		if table == "" || slices.Contains(k.tables, table) {
			delete(m.results, k)
		}
	}
}

// keptRows answers the rows of a kept query from memory, or reads them.
func keptRows[T any](tx *Tx, m *member, q *Query[T], args []any) ([]T, error) {
	if err := tx.usable(); err != nil {
		return nil, fmt.Errorf("%s: %w", q.at, err)
	}
	var key keptArgs
	for i, a := range args {
		text, ok := a.(string)
		if !ok || i == len(key) {
			return nil, fmt.Errorf("%s: the parameters of a kept query are texts, three at most", q.at)
		}
		key[i] = text
	}
	memory := &m.writer.memory
	if rows, ok := memory.results[q.keep][key]; ok {
		return rows.([]T), nil
	}
	rows, err := selectRows[T](tx, q.at, q.text, args, -1)
	if err != nil {
		return nil, err
	}
	if len(memory.results) == 0 {
		if memory.version, err = m.writer.conn.version(); err != nil {
			return nil, tx.fail(err)
		}
		memory.results = map[*keeper]map[keptArgs]any{}
	}
	of := memory.results[q.keep]
	if of == nil || len(of) >= mostKept {
		of = map[keptArgs]any{}
		memory.results[q.keep] = of
	}
	of[key] = rows
	return rows, nil
}
