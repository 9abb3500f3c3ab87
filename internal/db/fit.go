package db

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
)

// NewerError says that a database was migrated by a newer release, with a migration that this
// one does not know and that does not say that it may be worked with. Nothing was written.
type NewerError struct {
	Have, Know int64  // the newest migration of the database, and of this program
	Program    string // the version of the program that migrated it; empty if it is not known
}

func (e *NewerError) Error() string {
	by := "a newer yardmaster"
	if e.Program != "" {
		by = "yardmaster " + e.Program
	}
	return fmt.Sprintf("the database is at schema version %d, which %s made; this program knows it up to version %d, and has written nothing: "+
		"start %s again, or restore the backup that was made before the upgrade", e.Have, by, e.Know, by)
}

// unknown are the migrations of the database that are newer than one, and what they say of programs
// that do not know them.
const unknown = `SELECT v.version_id, COALESCE(MAX(r.oldest), v.version_id), COALESCE(MAX(r.program), '')
	FROM goose_db_version v LEFT JOIN schema_releases r ON r.version = v.version_id
	WHERE v.version_id > $1 GROUP BY v.version_id ORDER BY v.version_id`

// fit returns a NewerError if a database has migrations that this program does not know, unless
// each says that programs as old as this one may work with it.
func fit(ctx context.Context, pool *sql.DB, e Engine, schema fs.FS) error {
	know, err := newest(schema)
	if err != nil {
		return err
	}
	for _, table := range []string{"goose_db_version", "schema_releases"} {
		if there, err := exists(ctx, pool, e, table); err != nil || !there {
			return err // nothing was migrated yet, or by nobody newer than this program
		}
	}
	rows, err := pool.QueryContext(ctx, unknown, know)
	if err != nil {
		return fmt.Errorf("read the version of the schema: %w", err)
	}
	defer rows.Close()
	newer := &NewerError{Know: know}
	works := true
	for rows.Next() {
		var oldest int64
		var program string
		if err := rows.Scan(&newer.Have, &oldest, &program); err != nil {
			return fmt.Errorf("read the version of the schema: %w", err)
		}
		if program != "" {
			newer.Program = program
		}
		works = works && oldest <= know
	}
	if err := rows.Err(); err != nil || works {
		return err
	}
	return newer
}

func exists(ctx context.Context, pool *sql.DB, e Engine, table string) (is bool, err error) {
	query := `SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = $1)`
	if e == Postgres {
		query = `SELECT to_regclass($1) IS NOT NULL`
	}
	if err := pool.QueryRowContext(ctx, query, table).Scan(&is); err != nil {
		return false, fmt.Errorf("look for the table %s: %w", table, err)
	}
	return is, nil
}

// sign notes which program brought the schema to its newest version, so that an older one can say
// which to start.
func sign(ctx context.Context, pool *sql.DB, e Engine, schema fs.FS, program string) error {
	at, err := newest(schema)
	if err != nil {
		return err
	}
	if there, err := exists(ctx, pool, e, "schema_releases"); err != nil || !there || program == "" {
		return err
	}
	var signed bool
	const is = `SELECT EXISTS (SELECT 1 FROM schema_releases WHERE version = $1 AND program <> '')`
	if err := pool.QueryRowContext(ctx, is, at).Scan(&signed); err != nil || signed {
		return err
	}
	_, err = pool.ExecContext(ctx, `INSERT INTO schema_releases (version, oldest, program) VALUES ($1, $1, $2)
		ON CONFLICT (version) DO UPDATE SET program = excluded.program`, at, program)
	return err
}
