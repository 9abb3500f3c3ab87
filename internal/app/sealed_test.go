package app

import (
	"context"
	"database/sql"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"yardmaster/internal/db"
)

// sealers are the places of the program that seal something, and where that is
// kept: in a column that can be moved to another key, or nowhere.
var sealers = map[string]string{
	"internal/app/keys.go rememberSealed":          "meta.value",
	"internal/app/keys.go replaceSealed":           "meta.value",
	"internal/domain/webhook/own.go add":           "webhooks.sealed",
	"internal/proof/bench/webhook.go hookService":  "webhooks.sealed",
	"internal/domain/push/push.go Tell":            "push_messages.sealed",
	"internal/domain/push/ops.go subscribe":        "push_subscriptions.sealed",
	"internal/domain/source/source.go seal":        "sources.sealed",
	"internal/domain/tracker/ops.go set":           "trackers.sealed",
	"internal/domain/modelkey/modelkey.go seal":    "provider_keys.sealed",
	"internal/domain/logsink/ops.go set":           "log_sinks.sealed",
	"internal/domain/vault/vault.go Put":           "secrets.sealed",
	"internal/domain/sso/ops.go set":               "org_sso.sealed",
	"internal/domain/hosttoken/ops.go set":         "host_tokens.sealed",
	"internal/domain/connection/connection.go Add": "code_hosts.sealed",
	"internal/domain/blocker/ops.go answer":        "blockers.answer",
	"internal/domain/blocker/adopt.go closeAs":     "blockers.answer",
	"internal/mail/outbox.go Post":                 "mails.sealed",
	"internal/seal/keys/keys.go Rotate":            "in the column it came from",
	"internal/domain/sso/flow.go sendAway":         "in a cookie, for ten minutes",
	"internal/codehost/relay/lfs.go address":       "in an address, for an hour",
	"internal/domain/oauth/authorize.go issue":     "in a form, for some minutes",
	"internal/domain/oauth/client.go register":     "as a client_id, under a key that does not change",
}

// Whoever seals something stores it in a column that is in the registry, or not
// at all: what a rotation does not know of is lost with the old key.
func TestEverySealerIsRegistered(t *testing.T) {
	t.Parallel()
	registered := map[string]bool{}
	for _, c := range sealedColumns() {
		registered[c.String()] = false
	}
	found := map[string]bool{}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		rel = filepath.ToSlash(rel)
		if err != nil || d.IsDir() || !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") ||
			filepath.ToSlash(filepath.Dir(rel)) == "internal/seal" {
			return err
		}
		tree, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		for _, decl := range tree.Decls {
			name := "a variable"
			if f, ok := decl.(*ast.FuncDecl); ok {
				name = f.Name.Name
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 2 {
					if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Seal" {
						found[rel+" "+name] = true
					}
				}
				return true
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for at := range found {
		where := sealers[at]
		if where == "" {
			t.Errorf("%s seals something: say here where that is kept, and register the column", at)
		}
		if _, ok := registered[where]; ok {
			registered[where] = true
		} else if strings.Contains(where, ".") {
			t.Errorf("%s seals for %s, which is not in the registry", at, where)
		}
	}
	for at := range sealers {
		if !found[at] {
			t.Errorf("%s seals nothing: remove the line", at)
		}
	}
	for column, used := range registered {
		if !used {
			t.Errorf("%s is in the registry, and nobody seals anything for it", column)
		}
	}
}

// textColumns are all columns of a database that can hold a sealed value.
func textColumns(t *testing.T, e db.Engine, dsn string) (columns [][2]string, sealed func(table, column string) bool) {
	t.Helper()
	ctx := context.Background()
	var list string
	var query func(text string, each func(scan func(...any) error))
	if e == db.Postgres {
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close(ctx) })
		list = `SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public' AND data_type = 'text'`
		query = func(text string, each func(func(...any) error)) {
			rows, err := conn.Query(ctx, text)
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			for rows.Next() {
				each(rows.Scan)
			}
		}
	} else {
		conn, err := sql.Open("sqlite", "file:"+strings.TrimPrefix(dsn, "sqlite:"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		list = `SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND c.type = 'TEXT'`
		query = func(text string, each func(func(...any) error)) {
			rows, err := conn.QueryContext(ctx, text)
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			for rows.Next() {
				each(rows.Scan)
			}
		}
	}
	query(list, func(scan func(...any) error) {
		var c [2]string
		if err := scan(&c[0], &c[1]); err != nil {
			t.Fatal(err)
		}
		columns = append(columns, c)
	})
	return columns, func(table, column string) bool {
		found := false
		query(fmt.Sprintf(`SELECT 1 FROM %q WHERE %q LIKE 'v1.%%' OR %q LIKE 'v2.________.%%' LIMIT 1`, table, column, column),
			func(func(...any) error) { found = true })
		return found
	}
}

// unregistered are the columns of a database that hold sealed values and are
// not in the registry.
func unregistered(t *testing.T, e db.Engine, dsn string) (out []string) {
	t.Helper()
	columns, sealed := textColumns(t, e, dsn)
	if len(columns) < 100 {
		t.Fatalf("only %d columns of text", len(columns))
	}
	known := map[string]bool{}
	for _, c := range sealedColumns() {
		known[c.String()] = true
	}
	for _, c := range columns {
		if sealed(c[0], c[1]) && !known[c[0]+"."+c[1]] {
			out = append(out, c[0]+"."+c[1])
		}
	}
	return out
}
