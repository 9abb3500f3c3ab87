package db

import (
	"slices"
	"strings"
	"testing"
)

func TestTables(t *testing.T) {
	for _, c := range []struct{ sql, reads, writes string }{
		{`SELECT 1`, "", ""},
		{`SELECT a FROM tasks WHERE id = $1 AND kind = 'FROM boxes' -- FROM runs`, "tasks", ""},
		{`SELECT t.a FROM tasks t, boxes AS b, runs WHERE t.x IN ($1, $2)`, "boxes runs tasks", ""},
		{`SELECT a, b FROM tasks t LEFT JOIN boxes b USING (id), runs r ORDER BY a, b`, "boxes runs tasks", ""},
		{`SELECT a FROM (SELECT b FROM tasks) t JOIN repos r ON r.id = t.b`, "repos tasks", ""},
		{`SELECT a FROM (tasks t JOIN repos r ON TRUE) JOIN boxes b ON TRUE`, "boxes repos tasks", ""},
		{`SELECT (SELECT COUNT(*) FROM runs r WHERE r.id = b.id) AS n, EXISTS (SELECT 1 FROM pulls) FROM boxes b`, "boxes pulls runs", ""},
		{`SELECT a FROM x UNION ALL SELECT b FROM y ORDER BY a, b LIMIT 1`, "x y", ""},
		{`SELECT EXTRACT(epoch FROM created_at), SUBSTRING(name FROM 2) FROM tasks WHERE a IS DISTINCT FROM b`, "tasks", ""},
		{`SELECT value FROM json_each($1) JOIN tasks ON TRUE`, "tasks", ""},
		{`SELECT a FROM public.tasks FOR NO KEY UPDATE SKIP LOCKED`, "tasks", ""},
		{`SELECT "from" FROM "tasks" FOR UPDATE`, "tasks", ""},
		{`SELECT "UPDATE", boxes FROM tasks`, "tasks", ""},
		{`INSERT INTO tasks (id, title) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET title = excluded.title`, "", "tasks"},
		{`INSERT INTO tasks (id) SELECT id FROM boxes WHERE a = (SELECT MAX(b) FROM tasks)`, "boxes tasks", "tasks"},
		{`INSERT OR IGNORE INTO tasks (id) VALUES ($1)`, "", "tasks"},
		{`UPDATE tasks SET a = $1, b = $2 WHERE id = $3`, "", "tasks"},
		{`UPDATE OR IGNORE tasks SET a = 1`, "", "tasks"},
		{`UPDATE tasks SET a = b.a FROM boxes b, runs r WHERE b.id = tasks.id`, "boxes runs", "tasks"},
		{`UPDATE tasks SET a = 1 WHERE id IN (SELECT task_id FROM runs) RETURNING id, a`, "runs", "tasks"},
		{`DELETE FROM tasks WHERE id = $1`, "", "tasks"},
		{`DELETE FROM tasks USING runs r WHERE r.task_id = tasks.id RETURNING id`, "runs", "tasks"},
		{`TRUNCATE TABLE tasks`, "", "tasks"},
		{`WITH page AS (SELECT id FROM tasks) SELECT p.id FROM page p JOIN boxes b ON TRUE`, "boxes tasks", ""},
		{`WITH RECURSIVE below (id, n) AS (SELECT task_id, 1 FROM task_deps UNION SELECT d.task_id, 2 FROM below JOIN task_deps d ON TRUE),
			other AS NOT MATERIALIZED (SELECT id FROM below) SELECT id FROM tasks, other`, "task_deps tasks", ""},
		{`WITH tasks AS (SELECT id FROM tasks) SELECT id FROM tasks`, "tasks", ""},
		{`SELECT a FROM b WHERE c IN (WITH x AS (SELECT 1 FROM y) SELECT 1 FROM x) AND d IN (SELECT 1 FROM x)`, "b x y", ""},
		{`WITH gone AS (DELETE FROM runs RETURNING id), x AS (SELECT id FROM gone)
			UPDATE tasks SET a = 1 FROM x WHERE x.id = tasks.run_id`, "", "runs tasks"},
		{`SELECT a FROM timestamps WHERE b = CAST($1 AS TIMESTAMP WITH TIME ZONE)`, "timestamps", ""},
		{`ALTER TABLE tasks ADD COLUMN a TEXT`, "", ""},
	} {
		reads, writes := Tables(c.sql)
		if !slices.Equal(reads, strings.Fields(c.reads)) || !slices.Equal(writes, strings.Fields(c.writes)) {
			t.Errorf("%s\nreads %v, want %s\nwrites %v, want %s", c.sql, reads, c.reads, writes, c.writes)
		}
	}
}

func FuzzTables(f *testing.F) {
	for _, s := range []string{
		`SELECT a FROM b`, `WITH a (`, `'`, `"`, `/*`, `--`, `UPDATE OR`, `FROM (((`, `)))`, `WITH RECURSIVE`, `INSERT INTO "a"."b`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		reads, writes := Tables(sql)
		for _, name := range slices.Concat(reads, writes) {
			if !strings.Contains(sql, name) {
				t.Errorf("%q is not in %q", name, sql)
			}
		}
	})
}
