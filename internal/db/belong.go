package db

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Reference is a column that names a row of another table.
type Reference struct{ Table, Column, To string }

// Part is the rows of a table that belong to something: Where is a condition over $1, the id of that.
// Its texts are of the program, never of a caller.
type Part struct{ Table, Where string }

// TableNames lists all tables of the database by name.
func TableNames(tx *Tx) ([]string, error) {
	text := `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY name`
	if tx.Engine() == Postgres {
		text = `SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename`
	}
	return selectRows[string](tx, built, text, nil, -1)
}

// ColumnNames lists the columns of a table in the order of the table.
func ColumnNames(tx *Tx, table string) ([]string, error) {
	text := `SELECT name FROM pragma_table_info($1) ORDER BY cid`
	if tx.Engine() == Postgres {
		text = `SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = $1
			ORDER BY ordinal_position`
	}
	return selectRows[string](tx, built, text, []any{table}, -1)
}

// References lists the foreign keys of all tables.
func References(tx *Tx) ([]Reference, error) {
	text := `SELECT m.name AS "table", f."from" AS "column", f."table" AS "to" FROM sqlite_master m, pragma_foreign_key_list(m.name) f
		WHERE m.type = 'table' ORDER BY 1, 2, 3`
	if tx.Engine() == Postgres {
		text = `SELECT t.relname AS "table", a.attname AS "column", o.relname AS "to" FROM pg_constraint c
			JOIN pg_class t ON t.oid = c.conrelid JOIN pg_class o ON o.oid = c.confrelid
			JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = ANY (c.conkey)
			WHERE c.contype = 'f' AND c.connamespace = current_schema()::regnamespace ORDER BY 1, 2, 3`
	}
	return selectRows[Reference](tx, built, text, nil, -1)
}

// SchemaVersion is the number of the newest migration.
func SchemaVersion(tx *Tx) (int64, error) {
	all, err := selectRows[int64](tx, built, `SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version`, nil, -1)
	if err != nil {
		return 0, err
	}
	return all[0], nil
}

// Order sorts parts so that the rows of one can be removed before those of the next: what names rows
// of a table, by a foreign key or in its condition, comes before that table.
func Order(parts []Part, refs []Reference) ([]Part, error) {
	before := map[string][]string{} // by table: those that go first
	for _, r := range refs {
		before[r.To] = append(before[r.To], r.Table)
	}
	by := map[string]Part{}
	for _, p := range parts {
		by[p.Table] = p
		reads, _ := Tables(`SELECT 1 FROM ` + quoted(p.Table) + ` WHERE ` + p.Where)
		for _, other := range reads {
			before[other] = append(before[other], p.Table)
		}
	}
	const under, done = 1, 2
	state := map[string]int{}
	var out []Part
	var visit func(table string) error
	visit = func(table string) error {
		p, is := by[table]
		if !is || state[table] == done {
			return nil
		}
		if state[table] == under {
			return fmt.Errorf("the tables name each other in a circle, %s among them", table)
		}
		state[table] = under
		for _, first := range before[table] {
			if first != table {
				if err := visit(first); err != nil {
					return err
				}
			}
		}
		state[table] = done
		out = append(out, p)
		return nil
	}
	for _, p := range parts {
		if err := visit(p.Table); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// CountPart counts the rows of a part.
func CountPart(tx *Tx, p Part, of string) (int64, error) {
	all, err := selectRows[int64](tx, built, `SELECT COUNT(*) FROM `+quoted(p.Table)+` WHERE `+p.Where, p.args(of), -1)
	if err != nil {
		return 0, fmt.Errorf("count %s: %w", p.Table, err)
	}
	return all[0], nil
}

// RemovePart removes the rows of a part and returns how many there were.
func RemovePart(tx *Tx, p Part, of string) (int64, error) {
	result, err := run(tx, built, `DELETE FROM `+quoted(p.Table)+` WHERE `+p.Where, p.args(of), tx.q.exec)
	if err != nil {
		return 0, fmt.Errorf("remove from %s: %w", p.Table, err)
	}
	return result.RowsAffected()
}

// EachOf calls f with every row of a part as a line of JSON: an object with some columns, in their order.
func EachOf(tx *Tx, p Part, columns []string, of string, f func(line []byte) error) error {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = quoted(c)
	}
	text := `SELECT ` + strings.Join(names, ", ") + ` FROM ` + quoted(p.Table) + ` WHERE ` + p.Where + ` ORDER BY 1`
	rows, err := run(tx, built, text, p.args(of), func(ctx context.Context, text string, args []any) (*sql.Rows, error) {
		return tx.q.query(ctx, text, args)
	})
	if err != nil {
		return fmt.Errorf("read %s: %w", p.Table, err)
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		return err
	}
	values, into := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		line := []byte("{")
		for i, v := range values {
			if line, err = appendMember(line, columns[i], plain(v, types[i].DatabaseTypeName())); err != nil {
				return fmt.Errorf("%s.%s: %w", p.Table, columns[i], err)
			}
		}
		if err := f(append(line, '}', '\n')); err != nil {
			return err
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// IndexReferences gives each foreign key an index that has none, until the transaction drops them: a row
// that is removed is looked for in every column that could name it.
func IndexReferences(tx *Tx, refs []Reference) (drop func() error, err error) {
	has := `SELECT COUNT(*) FROM pragma_index_list($1) l, pragma_index_info(l.name) i WHERE i.seqno = 0 AND i.name = $2 AND l.partial = 0`
	if tx.Engine() == Postgres {
		has = `SELECT COUNT(*) FROM pg_index x JOIN pg_class t ON t.oid = x.indrelid
			JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = x.indkey[0]
			WHERE t.relnamespace = current_schema()::regnamespace AND t.relname = $1 AND a.attname = $2 AND x.indpred IS NULL`
	}
	var made []string
	do := func(text string) error {
		_, err := run(tx, built, text, nil, tx.q.exec)
		return err
	}
	for _, r := range refs {
		n, err := selectRows[int64](tx, built, has, []any{r.Table, r.Column}, -1)
		if err != nil {
			return nil, err
		}
		if n[0] > 0 {
			continue
		}
		name := quoted("leaving_" + r.Table + "_" + r.Column)
		if err := do(`CREATE INDEX IF NOT EXISTS ` + name + ` ON ` + quoted(r.Table) + ` (` + quoted(r.Column) + `)`); err != nil {
			return nil, err
		}
		made = append(made, name)
	}
	return func() error {
		for _, name := range made {
			if err := do(`DROP INDEX IF EXISTS ` + name); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

func appendMember(line []byte, name string, value any) ([]byte, error) {
	if len(line) > 1 {
		line = append(line, ',')
	}
	key, err := json.Marshal(name)
	if err != nil {
		return line, err
	}
	text, err := json.Marshal(value)
	return slices.Concat(line, key, []byte(":"), text), err
}

// plain is a value as both engines mean it.
func plain(v any, kind string) any {
	switch v := v.(type) {
	case int64:
		if strings.HasPrefix(kind, "BOOL") {
			return v != 0
		}
	case []byte:
		if kind != "BLOB" && kind != "BYTEA" {
			return string(v)
		}
	}
	return v
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func (p Part) args(of string) []any {
	if strings.Contains(p.Where, "$1") {
		return []any{of}
	}
	return nil
}
