package escalation

import (
	"context"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

const group = "Escalations"

// Ops lists the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{
			ID: "escalation.list", Method: "GET", Path: "/v1/escalations", Group: group, Rule: policy.Require(policy.ReadTasks),
			Paging:  &op.Paging{Default: 50, Max: 200, Filters: map[string][]string{"state": {"open", "resolved"}, "id": nil, "ask": nil}},
			Summary: "Questions to people, newest first",
			Doc:     "Without a filter resolved ones are listed too. filter=id:PART leaves those whose id begins or ends with it, filter=ask:ID those that an ask led to.",
		}, s.list),
		op.New(op.Row{
			ID: "escalation.get", Method: "GET", Path: "/v1/escalations/{id}", Group: group, Rule: policy.Require(policy.ReadTasks),
			Summary: "One escalation",
			Doc:     "Open or resolved, as the list shows it.",
		}, s.get),
		op.New(op.Row{
			ID: "escalation.resolve", Method: "POST", Path: "/v1/escalations/{id}/resolve", Group: group,
			Rule:    policy.Require(policy.WriteTasks).OfUser(),
			Summary: "Say that a person has dealt with an escalation; again is no error",
			Doc: "Notes who dealt with it and when. It starts nothing: whatever was decided is done with the other " +
				"capabilities. An issue that it was about stays escalated: issue.handoff hands it off, and it goes back to triage when a " +
				"person labels it anew at its host, or by ask.file with issue_id. A second call changes nothing and answers already_resolved.",
		}, s.resolve),
	}
}

type listIn struct{ op.PageIn }

func (s *Service) list(ctx context.Context, in listIn) (page op.Page[Escalation], err error) {
	var rows []row
	err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		rows, err = list(tx, in.PageIn)
		return err
	})
	if err != nil {
		return page, err
	}
	found := op.NewPage(in.PageIn, rows, func(r row) []string { return op.TimeKey(r.CreatedAt, r.ID) })
	page = op.Page[Escalation]{Data: make([]Escalation, len(found.Data)), NextCursor: found.NextCursor}
	for i := range found.Data {
		page.Data[i] = found.Data[i].wire()
	}
	return page, nil
}

type idIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the escalation"`
}

func (s *Service) get(ctx context.Context, in idIn) (out Escalation, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		r, ok, err := byID.Maybe(tx, tx.Account, in.ID)
		if err == nil && !ok {
			err = fault.Missing("escalation")
		}
		out = r.wire()
		return err
	})
	return out, err
}

type resolveIn struct {
	ID   string  `json:"id" format:"uuid" doc:"id of the escalation"`
	Note *string `json:"note,omitempty" maxLength:"2000" example:"We keep the year: legal wants it." doc:"what was decided, for those who read it later"`
}

// Resolved is the answer of escalation.resolve.
type Resolved struct {
	_          struct{}   `doc:"The escalation, and whether this call resolved it."`
	Kind       string     `json:"kind" enum:"resolved,already_resolved" doc:"already_resolved: somebody was first, and nothing was changed"`
	Escalation Escalation `json:"escalation" doc:"as it stands now"`
}

func (s *Service) resolve(ctx context.Context, in resolveIn) (out Resolved, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if !id.Valid(in.ID) {
			return fault.Missing("escalation")
		}
		n, err := resolve.Exec(tx, resolveArgs{
			AccountID: tx.Account, ID: in.ID, ResolvedAt: tx.Now, ResolvedBy: policy.From(ctx).Label(), Note: in.Note,
		})
		if err != nil {
			return err
		}
		r, ok, err := byID.Maybe(tx, tx.Account, in.ID)
		if err != nil {
			return err
		}
		if !ok {
			return fault.Missing("escalation")
		}
		out = Resolved{Kind: "resolved", Escalation: r.wire()}
		if n == 0 {
			out.Kind = "already_resolved"
			return nil
		}
		return ResolvedEvent.Record(tx, event.Subject{ID: r.ID}, resolvedData{Category: &r.Category, Note: in.Note})
	})
	return out, err
}
