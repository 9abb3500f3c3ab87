package dashboard

import (
	"fmt"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
)

// version is that of the built-in boards: a board of another one is made anew.
const version = 1

// builtin is a board that every account has.
type builtin struct {
	key, name string
	widgets   []Spec
}

// all are the built-in boards. The first is the one by which behind finds accounts.
func all() []builtin {
	return []builtin{
		{"work", "Work", []Spec{
			{Kind: Stat, Title: "Waiting for people", Source: "waiting"}, {Kind: Stat, Title: "Running", Source: "tasks_running"},
			{Kind: Stat, Title: "Tasks that succeeded", Source: "tasks_ended", Window: "7d"},
			{Kind: Stat, Title: "Boxes online", Source: "boxes_online"},
			{Kind: Series, Title: "Tasks filed", Source: "tasks_filed", Window: "30d"},
			{Kind: Feed, Title: "What waits", Source: "waiting"}, {Kind: Feed, Title: "What failed", Source: "tasks_failed", Window: "7d"},
		}},
		{"delivery", "Delivery", []Spec{
			{Kind: Table, Title: "How often things go well", Source: "health", Window: "30d"},
			{Kind: Stat, Title: "Merged", Source: "pulls_merged", Window: "7d"},
			{Kind: Stat, Title: "Merged of those that ended", Source: "pulls_ended", Window: "30d"},
			{Kind: Series, Title: "Merged by day", Source: "pulls_merged", Window: "30d"},
			{Kind: Series, Title: "Checks that passed", Source: "checks_ended", Window: "30d"},
			{Kind: Table, Title: "Merged by repository", Source: "pulls_merged", Window: "30d"},
			{Kind: Feed, Title: "Merged lately", Source: "pulls_merged", Window: "7d"},
		}},
		{"spending", "Spending", []Spec{
			{Kind: Stat, Title: "In the last hour", Source: "cost", Window: "1h"},
			{Kind: Stat, Title: "In 30 days", Source: "cost", Window: "30d"},
			{Kind: Series, Title: "By day", Source: "cost", Window: "30d"},
			{Kind: Table, Title: "By repository", Source: "cost", Window: "30d"},
			{Kind: Stat, Title: "Sessions", Source: "sessions", Window: "30d"},
		}},
	}
}

// Placed makes the built-in boards of an account together with the account.
func (s *Service) Placed(tx *db.Tx, accountID string) error { return s.sync(tx, accountID, false) }

// sync makes the built-in boards of an account, or makes them anew: those of another version, or
// each if so ordered.
func (s *Service) sync(tx *db.Tx, account string, each bool) error {
	rows, err := builtins.All(tx, account)
	if err != nil {
		return err
	}
	has := map[string]row{}
	for _, r := range rows {
		has[*r.Builtin] = r
	}
	for _, b := range all() {
		r, there := has[b.key]
		delete(has, b.key)
		if there && r.Version == version && !each {
			continue
		}
		if r.Name, err = s.free(tx, account, b.name, r.ID); err != nil {
			return err
		}
		r.NameKey, r.Version, r.UpdatedAt = strings.ToLower(r.Name), version, tx.Now
		if there {
			_, err = update.Exec(tx, r)
		} else {
			r.ID, r.AccountID, r.Builtin, r.CreatedBy, r.CreatedAt = id.New(), account, &b.key, "system", tx.Now
			r.Layout.V = []Place{}
			_, err = insert.Exec(tx, r)
		}
		if err != nil {
			return err
		}
		if err := fillIn(tx, r, b.widgets); err != nil {
			return err
		}
		if !there {
			continue // it comes with the account, and is nobody's doing
		}
		if err := replacedEvent.Record(tx, event.Subject{ID: r.ID}, r.data(len(b.widgets))); err != nil {
			return err
		}
	}
	for _, r := range has { // there is no such one any more
		if err := fillIn(tx, r, nil); err != nil {
			return err
		}
		if _, err := remove.Exec(tx, account, r.ID); err != nil {
			return err
		}
	}
	return nil
}

// free is a name that no other shared board of the account has: the given one, or one like it.
func (s *Service) free(tx *db.Tx, account, name, boardID string) (string, error) {
	for n, try := 1, name; ; n++ {
		r, there, err := byName.Maybe(tx, account, "", strings.ToLower(try))
		if err != nil || !there || r.ID == boardID {
			return try, err
		}
		if try = name + " (built-in)"; n > 1 {
			try = fmt.Sprintf("%s (built-in %d)", name, n)
		}
	}
}
