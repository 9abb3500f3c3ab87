package box

import (
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/fleet"
)

// fill fills in what is not stored with boxes of tx.Account: the numbers of their runs, from
// the runs themselves, because beats report them later and are no changes that a client
// follows; and who was asked to own them.
func (s *Service) fill(tx *db.Tx, boxes []row) error {
	ids := idsOf(boxes)
	live, err := s.Runs.Active(tx, ids, "")
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
	}
	return nil
}

// fillOutside is fill for boxes of other accounts: by what right they take work of
// tx.Account, and how much of it they have.
func (s *Service) fillOutside(tx *db.Tx, boxes []row) error {
	ids := idsOf(boxes)
	live, err := s.Runs.Active(tx, ids, tx.Account)
	if err != nil {
		return err
	}
	rights, err := fleet.Rights(tx, tx.Account, ids)
	for i := range boxes {
		right := rights[boxes[i].ID]
		boxes[i].Active, boxes[i].Outside = live[boxes[i].ID], &right
	}
	return err
}

func idsOf(boxes []row) []string {
	ids := make([]string, len(boxes))
	for i := range boxes {
		ids[i] = boxes[i].ID
	}
	return ids
}

// owned begins a list of the boxes of tx.Account.
func owned(tx *db.Tx) *db.Builder {
	return db.Build(`SELECT `+columns+` FROM boxes WHERE retired_at IS NULL AND account_id = `, tx.Account)
}

// outside begins a list of the boxes of other accounts that may take work of tx.Account,
// which are looked for among the shared ones, those that are lent, and those about which somebody
// has agreed.
func outside(tx *db.Tx) *db.Builder {
	return db.Build(`SELECT `+columns+` FROM boxes WHERE retired_at IS NULL AND id IN (SELECT b.id FROM boxes b
		CROSS JOIN (SELECT CAST(`, tx.Account).
		SQL(` AS TEXT) AS account_id) w WHERE b.id IN (SELECT id FROM boxes WHERE owner_target = 'shared'
			UNION ALL SELECT box_id FROM donations WHERE kind = 'compute' AND parked_at IS NULL
			UNION ALL SELECT box_id FROM box_consents WHERE account_id = `, tx.Account).
		SQL(`) AND b.account_id <> w.account_id AND b.state <> 'revoked' AND ` + fleet.May + `)`).Few()
}

func (s *Service) page(tx *db.Tx, p op.PageIn) ([]row, error) {
	b, fill := owned(tx), s.fill
	at, last, more, err := p.AfterTime()
	if err != nil {
		return nil, err
	}
	part, err := p.Part()
	if err != nil {
		return nil, err
	}
	if p.Want("outside") != "" {
		b, fill = outside(tx), s.fillOutside
		if part != "" {
			b.And("(id LIKE ", part+"%").SQL(" OR id LIKE ", "%"+part).SQL(")")
		}
	} else if err := db.Named(tx, b, "id", `SELECT id FROM boxes WHERE account_id`, part); err != nil {
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
	return rows, fill(tx, rows)
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
	b := owned(tx)
	if ids != nil {
		b.In("id", ids).Few()
	}
	return s.shown(tx, b, limit)
}

// Fleet lists the boxes of tx.Account that are not revoked, the newest first, up to limit, as the
// list shows them.
func (s *Service) Fleet(tx *db.Tx, limit int) ([]Box, error) {
	return s.shown(tx, owned(tx).And("state <> ", Revoked), limit)
}

func (s *Service) shown(tx *db.Tx, b *db.Builder, limit int) ([]Box, error) {
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

// allOf are the boxes of an account that are not revoked, the oldest first.
var allOf = db.Q[row](`SELECT ` + columns + ` FROM boxes WHERE account_id = $1 AND retired_at IS NULL AND state <> 'revoked'
	ORDER BY created_at, id`)
