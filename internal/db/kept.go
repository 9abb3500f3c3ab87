package db

import (
	"fmt"
	"slices"
	"strings"
)

// keeper identifies a query whose rows stay in memory, and lists the tables it
// reads.
type keeper struct{ tables []string }

// Kept keeps the rows of the query in memory between writing transactions. It is
// for small tables that every change reads and few changes write. It works on
// SQLite, where all changes go through one writer; PostgreSQL is asked each time.
// The rows are shared, so nothing that they point to may be changed. The parameters
// are texts, three at most.
func (q Query[T]) Kept() Query[T] {
	reads, _ := Tables(q.text)
	q.keep = &keeper{reads}
	return q
}

// mostKept limits the results in memory for one query.
const mostKept = 1024

// keptArgs are the parameters of a kept query.
type keptArgs [3]string

// memory holds the rows of kept queries. It belongs to the writer.
type memory struct {
	results map[*keeper]map[keptArgs]any // each a []T
	version int64                        // of the database; changes of other connections increase it
	effects map[string]effect            // by statement
}

// effect says which tables a statement changes.
type effect struct {
	tables  []string
	unknown bool // it may change any table
}

func effectOf(text string) effect {
	_, writes := Tables(text)
	return effect{writes, len(writes) == 0 && !strings.HasPrefix(text, "SELECT") && !strings.HasPrefix(text, "WITH")}
}

func (e effect) changes(k *keeper) bool {
	return e.unknown || slices.ContainsFunc(e.tables, func(table string) bool { return slices.Contains(k.tables, table) })
}

// check forgets all rows if another connection has changed the database. It has to
// be called when a transaction has just begun.
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

// change forgets the rows that a statement may change, before the statement runs.
func (m *memory) change(text string) {
	if len(m.results) == 0 {
		return
	}
	e, ok := m.effects[text]
	if !ok {
		e = effectOf(text)
		if m.effects == nil || len(m.effects) >= maxStatements {
			m.effects = map[string]effect{}
		}
		m.effects[text] = e
	}
	for k := range m.results {
		if e.changes(k) {
			delete(m.results, k)
		}
	}
}

// keptRows returns the rows of a kept query from memory, or reads them.
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
