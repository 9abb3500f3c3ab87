package template

import (
	"slices"
	"time"

	"yardmaster/internal/db"
)

type row struct {
	Name      string
	Body      db.JSON[Template]
	CreatedAt time.Time
	UpdatedAt time.Time
}

var (
	byName = db.Q[row](`SELECT name, body, created_at, updated_at FROM templates WHERE account_id = $1 AND name = $2`).Kept()
	all    = db.Q[row](`SELECT name, body, created_at, updated_at FROM templates WHERE account_id = $1 ORDER BY name`)
	names  = db.Q[string](`SELECT name FROM templates WHERE account_id = $1 ORDER BY name LIMIT 50`)
	count  = db.Q[int64](`SELECT COUNT(*) FROM templates WHERE account_id = $1`)
	put    = db.SWith[putArgs](`INSERT INTO templates (account_id, name, body, created_at, updated_at)
		VALUES (:account_id, :name, :body, :created_at, :created_at)
		ON CONFLICT (account_id, name) DO UPDATE SET body = excluded.body, updated_at = excluded.updated_at`)
	remove = db.S(`DELETE FROM templates WHERE account_id = $1 AND name = $2`)
)

// putArgs are the parameters of put.
type putArgs struct {
	AccountID, Name string
	Body            db.JSON[Template]
	CreatedAt       time.Time
}

func (r row) template() Template {
	t, created, updated := r.Body.V, r.CreatedAt.Truncate(time.Millisecond), r.UpdatedAt.Truncate(time.Millisecond)
	t.Name, t.CreatedAt, t.UpdatedAt = r.Name, &created, &updated
	return t
}

// Names lists the names of an account's templates that are set, by name, 50 at
// most.
func Names(tx *db.Tx, account string) ([]string, error) { return names.All(tx, account) }

// ByNames finds the templates of an account that have one of the names, by
// name. Default is always found.
func ByNames(tx *db.Tx, account string, names []string) (map[string]Template, error) {
	rows, err := db.Select[row](tx, db.Build(`SELECT name, body, created_at, updated_at FROM templates
		WHERE account_id = `, account).In("name", names))
	out := map[string]Template{}
	if slices.Contains(names, Default) {
		out[Default] = Defaults(Default)
	}
	for _, r := range rows {
		out[r.Name] = r.template()
	}
	return out, err
}

// ByName finds an account's template by its name. Default is always found.
func ByName(tx *db.Tx, account, name string) (Template, bool, error) {
	r, ok, err := byName.Maybe(tx, account, name)
	switch {
	case err != nil:
		return Template{}, false, err
	case ok:
		return r.template(), true, nil
	}
	return Defaults(name), name == Default, nil
}

// splitTask notes the lane of a new task.
var splitTask = db.SWith[splitArgs](`INSERT INTO template_lanes (task_id, account_id, template, lane, created_at)
	VALUES (:task_id, :account_id, :template, :lane, :created_at)`)
