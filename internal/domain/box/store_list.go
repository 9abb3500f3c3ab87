package box

import (
	"fmt"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/fleet"
	"yardmaster/internal/domain/people"
)

// fill fills in what is not stored with boxes: the numbers of their runs, from the runs
// themselves, because beats report them later and are no changes that a client follows; who
// was asked to own them; and by what right those of other accounts take work of tx.Account.
func (s *Service) fill(tx *db.Tx, boxes []row) error {
	ids := make([]string, len(boxes))
	for i := range boxes {
		ids[i] = boxes[i].ID
	}
	live, err := s.Runs.Active(tx, ids)
	if err != nil {
		return err
	}
	asked, err := askedOf(tx, ids)
	if err != nil {
		return err
	}
	for i := range boxes {
		b := &boxes[i]
		b.Active = live[b.ID]
		if user, ok := asked[b.ID]; ok {
			b.Asked = &user
		}
		if b.AccountID == tx.Account {
			continue
		}
		right, ok, err := fleet.Holding(tx, b.ID, tx.Account)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("box %s is of another account", b.ID)
		}
		b.Outside, b.Asked = &right, nil
		if b.Home, err = people.AccountLogin(tx, b.AccountID); err != nil {
			return err
		}
	}
	return nil
}

// seen begins a list of the boxes that tx.Account sees: its own, and those of other accounts
// that may take its work, which are looked for among the shared ones and those about which
// somebody has agreed.
func seen(tx *db.Tx) *db.Builder {
	return db.Build(`SELECT `+columns+` FROM boxes WHERE retired_at IS NULL AND (account_id = `, tx.Account).
		SQL(` OR id IN (SELECT b.id FROM boxes b CROSS JOIN (SELECT CAST(`, tx.Account).
		SQL(` AS TEXT) AS account_id) w WHERE b.id IN (SELECT id FROM boxes WHERE owner_target = 'shared'
			UNION ALL SELECT box_id FROM box_consents WHERE account_id = `, tx.Account).
		SQL(`) AND b.account_id <> w.account_id AND b.state <> 'revoked' AND ` + fleet.May + `))`)
}

func (s *Service) page(tx *db.Tx, p op.PageIn) ([]row, error) {
	at, last, more, err := p.AfterTime()
	if err != nil {
		return nil, err
	}
	part, err := p.Part()
	if err != nil {
		return nil, err
	}
	b := seen(tx)
	if err := db.Named(tx, b, "id", `SELECT id FROM boxes WHERE account_id`, part); err != nil {
		return nil, err
	}
	if name := p.Want("name"); name != "" {
		b.And("name = ", name)
	}
	if states := p.Wants("state"); states != nil {
		b.In("state", states)
	}
	if some := p.Wants("presence"); some != nil {
		b.SQL(" AND (FALSE")
		for _, one := range some {
			present(b, one, tx.Now)
		}
		b.SQL(")")
	}
	if more {
		b.OlderThan("created_at", "id", at, last)
	}
	rows, err := db.Select[row](tx, b.Newest("created_at", "id", p.Size()))
	if err != nil {
		return nil, err
	}
	return rows, s.fill(tx, rows)
}

// present appends the condition that presenceAt answers a presence.
func present(b *db.Builder, presence string, now time.Time) {
	stale, offline := now.Add(-staleAfter), now.Add(-offlineAfter)
	switch presence {
	case Online:
		b.SQL(" OR (presence NOT IN (", Offline, left).SQL(") AND last_beat_at > ", stale).SQL(")")
	case Stale:
		b.SQL(" OR (presence NOT IN (", Offline, left).SQL(") AND last_beat_at <= ", stale).SQL(" AND last_beat_at > ", offline).SQL(")")
	case Offline:
		b.SQL(" OR presence IN (", Offline, left).SQL(") OR last_beat_at IS NULL OR last_beat_at <= ", offline)
	}
}

// Rows lists the boxes of tx.Account that have one of the ids or, for nil, its
// newest, up to limit, as the list shows them.
func (s *Service) Rows(tx *db.Tx, ids []string, limit int) ([]Box, error) {
	b := seen(tx)
	if ids != nil {
		b.In("id", ids).Few()
	}
	rows, err := db.Select[row](tx, b.Newest("created_at", "id", limit))
	if err == nil {
		err = s.fill(tx, rows)
	}
	out := make([]Box, len(rows))
	for i, r := range rows {
		out[i] = r.wire(tx.Now)
	}
	return out, err
}
