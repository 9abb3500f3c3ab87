package audit

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

// Ops returns the capabilities of this package.
func (s *Service) Ops() []op.Op {
	const operators = "Account and platform operator"
	paging := &op.Paging{Default: 50, Max: 200}
	return []op.Op{
		op.New(op.Row{
			ID:      "account.platform_audit",
			Method:  "GET",
			Path:    "/v1/admin/audit",
			Group:   operators,
			Rule:    policy.Require(policy.AdminReadPlat),
			Paging:  paging,
			Summary: "What happened in every account, newest first",
			Doc:     "For operators. The look is written to the platform's audit log before it is answered.",
		}, s.platform),
		op.New(op.Row{
			ID:      "account.platform_trail",
			Method:  "GET",
			Path:    "/v1/admin/platform-audit",
			Group:   operators,
			Rule:    policy.Require(policy.AdminReadPlat),
			Paging:  paging,
			Summary: "Every look of an operator at a tenant's data, newest first",
			Doc:     "What operators called that shows tenants' data, and whose it was.",
		}, s.trail),
		op.New(op.Row{
			ID:      "audit.tail",
			Method:  "GET",
			Path:    "/v1/audit/events",
			Group:   "Sessions, audit, streams",
			Rule:    policy.Require(policy.ReadSessions),
			Paging:  &op.Paging{Default: 50, Max: 200, Filters: map[string][]string{"kind": nil, "actor": nil, "object": nil, "id": nil}},
			Summary: "What happened in the account, newest first; a filter looks at 20,000 rows a page, which may be short or empty and still have a next",
			Doc: "Every change in the account, with who made it. The rows are a chain: prev_hash is the hash of the row " +
				"before, so that a changed or missing row shows. Filters leave the rows of a kind (task.failed), of all kinds " +
				"of a noun (task.), of an actor as rows name it (user:<id>, system), and about an object (its id); filter=id:<id> finds one row by its id at once. " +
				"Addresses from which people sign in are shown to callers with write:members; to others withheld names them.",
		}, s.tail),
	}
}

type listIn struct{ op.PageIn }

// after returns the cursor's single value, the key of the last row of the page
// before, and whether there is a cursor. It returns a fault.Invalid about the field
// cursor for any other cursor.
func (in listIn) after() (string, bool, error) {
	switch key := in.After(); len(key) {
	case 0:
		return "", false, nil
	case 1:
		return key[0], true, nil
	}
	return "", false, badCursor()
}

func badCursor() error { return fault.Field("cursor", "is not a cursor of this collection") }

func (s *Service) tail(ctx context.Context, in listIn) (out op.Page[Event], err error) {
	before := int64(1) << 62
	if key, more, err := in.after(); err != nil {
		return out, err
	} else if more {
		if before, err = strconv.ParseInt(key, 10, 64); err != nil {
			return out, badCursor()
		}
	}
	kind := in.Want("kind")
	if kind != "" && !strings.Contains(kind, ".") {
		return out, fault.Field("filter", "is kind:<noun>.<verb>, such as kind:task.failed, or kind:<noun>. for all kinds of it")
	}
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		var end int64 // the oldest row that a filter looks at, if there may be more
		if len(in.Filter) > 0 && in.Want("id") == "" {
			head, _, err := selectHead.Maybe(tx, tx.Account)
			if err != nil {
				return err
			}
			before = min(before, head+1)
			end = max(before-searched, 0)
		}
		rows, err := ofAccount(tx, in, before, end)
		if err != nil {
			return err
		}
		for i, r := range rows {
			data, withheld, err := event.Withhold(policy.From(ctx), r.Kind, json.RawMessage(r.Data))
			if err != nil {
				return err
			}
			rows[i].Data, rows[i].withheld = string(data), withheld
		}
		out = page(in, rows, func(e Event) []string { return []string{strconv.FormatInt(e.Seq, 10)} })
		if out.NextCursor == nil && end > 1 {
			out.NextCursor = in.At([]string{strconv.FormatInt(end, 10)})
		}
		return nil
	})
	return out, err
}

// searched is how many rows behind its cursor a page with filters looks at: the log has no
// index of kinds, actors and objects, which every write of the program would pay for.
const searched = 20_000

// platform lists the changes of all accounts by id, newest first. Ids follow the time
// of the change.
func (s *Service) platform(ctx context.Context, in listIn) (op.Page[Event], error) {
	before, more, err := in.after()
	if err != nil {
		return op.Page[Event]{}, err
	}
	if !more {
		before = newest
	}
	var rows []row
	// ReadRecorded records the read before it reads, because the rows are of every
	// account.
	err = event.ReadRecorded(ctx, s.DB, event.OperatorRead{Capability: "account.platform_audit"}, func(tx *db.Tx) (err error) {
		rows, err = ofAll.All(tx, before, in.Size())
		return err
	})
	return page(in, rows, func(e Event) []string { return []string{e.ID} }), err
}

func page(in listIn, rows []row, key func(Event) []string) op.Page[Event] {
	events := make([]Event, len(rows))
	for i, r := range rows {
		events[i] = r.wire()
	}
	return op.NewPage(in.PageIn, events, key)
}

func (s *Service) trail(ctx context.Context, in listIn) (op.Page[TrailEntry], error) {
	before, more, err := in.after()
	if err != nil {
		return op.Page[TrailEntry]{}, err
	}
	if !more {
		before = newest
	}
	var rows []TrailEntry
	err = event.ReadRecorded(ctx, s.DB, event.OperatorRead{Capability: "account.platform_trail"}, func(tx *db.Tx) (err error) {
		rows, err = looks.All(tx, before, in.Size())
		return err
	})
	return op.NewPage(in.PageIn, rows, func(e TrailEntry) []string { return []string{e.ID} }), err
}
