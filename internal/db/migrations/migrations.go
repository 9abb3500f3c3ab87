// Package migrations holds the schema as numbered SQL files. A file is one
// portable text for both engines, NNNN_name.sql; where the engines differ there
// is a pair, NNNN_name.sqlite.sql and NNNN_name.postgres.sql. A file that was
// released is never changed: the next change is the next number.
package migrations

import "embed"

// FS holds all files.
//
//go:embed *.sql
var FS embed.FS
