package blocker

import (
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
)

// others implements Repos, Vault, Tasks and Asks, and notes their calls in the
// fixture.
type others struct{ f *fixture }

func (others) FullName(*db.Tx, string) (string, error) { return "acme/web", nil }

func (others) NameFault(name, _ string) string { return map[string]string{"PATH": "no"}[name] }

func (others) Has(_ *db.Tx, _, _, name string) (bool, error) { return name == "OLD", nil }

func (others) Masked(_ *db.Tx, _, text, mask string) (string, error) {
	return strings.ReplaceAll(text, "quoted", mask), nil
}

func (o others) Keep(_ *db.Tx, _ string, v Value) error {
	if v.Value == "refused" {
		return fault.Field("value", "is refused")
	}
	o.f.mu.Lock()
	defer o.f.mu.Unlock()
	o.f.kept = append(o.f.kept, v)
	return nil
}

func (others) Lock(tx *db.Tx, taskID string) error {
	_, err := lockTask.One(tx, taskID)
	return err
}

func (o others) Resume(_ *db.Tx, _, runID string, w Word, release bool) (string, error) {
	o.f.mu.Lock()
	defer o.f.mu.Unlock()
	o.f.resumed = append(o.f.resumed, runID)
	o.f.words, o.f.released = append(o.f.words, w.Text), release
	return o.f.how, nil
}

func (o others) LiveRun(*db.Tx, string) (string, error) { return o.f.live, nil }

func (o others) File(_ *db.Tx, a FollowUp) (string, error) {
	o.f.asks = append(o.f.asks, a)
	return "ask", nil
}
