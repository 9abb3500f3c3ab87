package chaos

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Percent spells every byte as %XX.
func Percent(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

// Traces are the forms of a secret that must not be found: plain, in hexadecimal, as
// in URLs, and in base64 at each of its three alignments, without the characters
// that depend on the surrounding bytes.
func Traces(secret string) [][]byte {
	out := [][]byte{[]byte(secret), []byte(hex.EncodeToString([]byte(secret))), []byte(strings.ToUpper(hex.EncodeToString([]byte(secret)))),
		[]byte(url.QueryEscape(secret)), []byte(Percent(secret))}
	for before := range 3 {
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := enc.EncodeToString(append(make([]byte, before), secret...))
			out = append(out, []byte(text[(before*8+5)/6:(before+len(secret))*8/6]))
		}
	}
	return out
}

// Scan calls look with everything that is stored: each file below dir, each row of
// the database (the values of a row may be spread over the pages of a file), and the
// objects of each git repository below dir (which are compressed).
func Scan(ctx context.Context, dir string, d *sql.DB, look func(where string, text []byte)) error {
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && e.Name() == "objects" {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), "HEAD")); err == nil {
				git := exec.CommandContext(ctx, "git", "--git-dir", filepath.Dir(path), "cat-file", "--batch-all-objects", "--batch")
				text, err := git.Output()
				if err != nil {
					return fmt.Errorf("%s: %w", git, err)
				}
				look("objects of "+filepath.Dir(path), text)
			}
		}
		if !e.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(path)
		look(path, text)
		return err
	})
	if err != nil {
		return err
	}
	r := Record{DB: d}
	tables, err := r.rows(ctx, `SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()`)
	if err != nil { // SQLite
		tables, err = r.rows(ctx, `SELECT name FROM sqlite_schema WHERE type = 'table'`)
	}
	for _, table := range tables {
		rows, err := r.rows(ctx, fmt.Sprintf(`SELECT * FROM %q`, table[0]))
		if err != nil {
			return err
		}
		for _, row := range rows {
			look(fmt.Sprintf("table %s", table[0]), fmt.Appendf(nil, "%s", row))
		}
	}
	return err
}

// contains is the index of the first trace in the text; -1 if there is none.
func contains(text []byte, traces [][]byte) int {
	for i, trace := range traces {
		if bytes.Contains(text, trace) {
			return i
		}
	}
	return -1
}
