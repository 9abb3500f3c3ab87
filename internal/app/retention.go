package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/artifact"
	"yardmaster/internal/domain/delivery"
	"yardmaster/internal/domain/digest"
	"yardmaster/internal/domain/notification"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/source"
	"yardmaster/internal/domain/webhook"
	"yardmaster/internal/event"
	"yardmaster/internal/mail"
)

// old are the tables that a setting ends, with the days of it and what counts the rows that go next.
// Of artifacts each row has the time of its end.
var old = []struct {
	table string
	days  func(*config.Config) int
	count func(*db.Tx, time.Time) (int64, error)
}{
	{"audit", func(c *config.Config) int { return c.KeepAudit }, event.Old},
	{"run_events", func(c *config.Config) int { return c.KeepEvents }, run.Old},
	{"notifications", func(c *config.Config) int { return c.KeepInbox }, notification.Old},
	{"digests", func(c *config.Config) int { return c.KeepDigests }, digest.Old},
	{"artifacts", func(*config.Config) int { return 0 }, artifact.Old},
	{"webhook_events", func(c *config.Config) int { return c.KeepWebhooks }, webhook.OldEvents},
	{"webhook_deliveries", func(c *config.Config) int { return c.KeepWebhooks }, webhook.OldDeliveries},
	{"host_deliveries", func(c *config.Config) int { return c.KeepHost }, delivery.Old},
	{"source_deliveries", func(c *config.Config) int { return c.KeepSource }, source.Old},
	{"mails", func(c *config.Config) int { return c.KeepMails }, mail.Old},
}

// Retention writes what the server that c configures stores, how long that is kept, and which rows
// go next by the settings of c. It changes nothing. The server may run.
func Retention(ctx context.Context, c *config.Config, out io.Writer) (err error) {
	if _, err := exists(c); err != nil {
		return err
	}
	have, err := db.Count(ctx, c.Database)
	if err != nil {
		return err
	}
	next, err := goingNext(ctx, c)
	if err != nil {
		return err
	}
	ends := map[string]config.Kept{}
	for _, k := range config.Retention {
		for _, table := range k.Tables {
			ends[table] = k
		}
	}
	var tables []string
	for table := range have.Rows {
		tables = append(tables, table)
	}
	slices.SortFunc(tables, func(a, b string) int {
		return cmp.Or(cmp.Compare(have.Rows[b], have.Rows[a]), strings.Compare(a, b))
	})
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TABLE\tROWS\tGO NEXT\tEND\tBECAUSE")
	for _, table := range tables {
		k, n := ends[table], "-"
		if k.Ends == config.ByDays {
			n = fmt.Sprint(next[table])
		}
		end := cmp.Or(k.Setting, string(k.Ends), "not known to this program")
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\n", table, have.Rows[table], n, end, k.Why)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return disk(c, out)
}

// goingNext counts the rows that go next, by table.
func goingNext(ctx context.Context, c *config.Config) (next map[string]int64, err error) {
	d, err := db.Open(ctx, c.Database, db.Options{AsIs: true})
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return next, d.Read(ctx, func(tx *db.Tx) error {
		next = map[string]int64{}
		for _, o := range old {
			n := o.days(c)
			if n == 0 && o.table == "mails" {
				continue // for good
			}
			rows, err := o.count(tx, tx.Now.Add(-days(n)))
			if err != nil {
				return err
			}
			next[o.table] = rows
		}
		return nil
	})
}

// disk writes how many bytes the parts of the data have.
func disk(c *config.Config, out io.Writer) error {
	parts := [][2]string{{"repositories", filepath.Join(c.Data, "git")}}
	if at, ok := c.BlobFolder(); ok {
		parts = append(parts, [2]string{"objects", at})
	}
	if path, ok := strings.CutPrefix(c.Database, "sqlite:"); ok {
		parts = append(parts, [2]string{"database", path}, [2]string{"its newest rows", path + "-wal"})
	}
	for _, p := range parts {
		var bytes int64
		err := filepath.WalkDir(p[1], func(_ string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			info, err := d.Info()
			if err == nil {
				bytes += info.Size()
			}
			if errors.Is(err, os.ErrNotExist) {
				err = nil
			}
			return err
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %d bytes in %s\n", p[0], bytes, p[1])
	}
	return nil
}
