package db

import (
	"bytes"
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// sqliteImage is the file of SQLite with the schema and nothing else, packed: the pages that
// schema/sqlite.sql makes. SQLite needs a fifth of the time for them that it needs for the script,
// as it reads its own table of objects again for each of the hundreds of statements.
//
//go:embed schema/sqlite.db.zst
var sqliteImage []byte

const (
	imagePage = 4096 // bytes of a page, SQLite's own default
	imagePart = 64   // pages that are written by one statement
)

// lay writes the pages of a packed file into the empty database of a transaction. The first page,
// which says what the others are, is written last: a statement after it would look for its tables
// in what the connection remembers of the empty one. After the commit the connection has to forget
// that (forgetPages), and then finds a schema that has changed.
func lay(ctx context.Context, tx *sql.Tx, image []byte) error {
	unpacked, err := zstd.NewReader(bytes.NewReader(image), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return err
	}
	defer unpacked.Close()
	first, part := make([]byte, imagePage), make([]byte, imagePart*imagePage)
	if _, err := io.ReadFull(unpacked, first); err != nil {
		return fmt.Errorf("read the image: %w", err)
	}
	for done := 1; ; {
		n, err := io.ReadFull(unpacked, part)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) || n%imagePage > 0 {
			return errors.Join(errors.New("read the image"), err)
		}
		if n == 0 {
			break
		}
		if _, err := tx.ExecContext(ctx, layPages, part[:n], done, n/imagePage); err != nil {
			return fmt.Errorf("write pages: %w", err)
		}
		done += n / imagePage
	}
	if _, err = tx.ExecContext(ctx, layPages, first, 0, 1); err != nil {
		err = fmt.Errorf("write the first page: %w", err)
	}
	return err
}

// layPages writes pages, so many after so many others. datedNow says when the migrations were
// applied that a new database has.
const (
	layPages = `WITH RECURSIVE page (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM page WHERE n + 1 < $3)
		INSERT INTO sqlite_dbpage (pgno, data) SELECT $2 + n + 1, substr($1, n * 4096 + 1, 4096) FROM page`
	forgetPages = `PRAGMA shrink_memory`
	datedNow    = `UPDATE goose_db_version SET tstamp = datetime('now')`
)
