package run

import (
	"encoding/json"
	"errors"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/fault"
	"yardmaster/internal/protocol"
)

// The limits of a declaration, in bytes, and of its fields.
const (
	maxTitle  = 200
	maxBody   = protocol.MaxDeclaredBytes
	maxFields = 20
)

var (
	blockerKinds = map[string]bool{"missing_credential": true, "missing_access": true, "decision": true}
	fieldKinds   = map[string]bool{"env_secret": true, "service_url": true, "mcp_server": true, "oauth_connection": true}
)

// declared sends on what a run declares. The box has checked it already, but a box is
// not trusted: a declaration that is malformed or beyond the limits, or of a run that
// declares nothing, is stored as an event and has no other effect.
func (s *Service) declared(tx *db.Tx, t *task.Row, r *Row, e protocol.Event) error {
	n, err := countDeclared.One(tx, r.ID, e.Seq)
	if err != nil {
		return err
	}
	if n > protocol.MaxDeclared {
		s.Logger.Debug("declaration beyond the limit", "run", r.ID, "seq", e.Seq)
		return nil
	}
	if declares, err := s.Setup.Declares(tx, t); err != nil {
		return err
	} else if !declares {
		s.Logger.Debug("declaration of a run about a fork", "run", r.ID, "seq", e.Seq)
		return nil
	}
	switch e.Kind {
	case protocol.EventAsk:
		a, ok := ask(s, r, e)
		if !ok {
			return nil
		}
		err = AskFiled.Send(tx, Declaration[protocol.AskFiled]{t, r, a})
	case protocol.EventAction:
		a, ok := read[protocol.ActionProposed](s, r, e)
		if !ok {
			return nil
		}
		err = ActionProposed.Send(tx, Declaration[protocol.ActionProposed]{t, r, a})
	case protocol.EventPage:
		p, ok := proposed(s, r, e)
		if !ok {
			return nil
		}
		err = PageProposed.Send(tx, Declaration[protocol.PageProposed]{t, r, p})
	default:
		b, ok := blocker(s, r, e)
		if !ok {
			return nil
		}
		err = BlockerDeclared.Send(tx, Declaration[protocol.BlockerDeclared]{t, r, b})
	}
	if _, refused := errors.AsType[*fault.Error](err); refused && !fault.IsKind(err, fault.Internal) {
		s.Logger.Debug("declaration refused", "run", r.ID, "seq", e.Seq, "error", err)
		return nil
	}
	return err
}

func ask(s *Service, r *Row, e protocol.Event) (protocol.AskFiled, bool) {
	a, ok := read[protocol.AskFiled](s, r, e)
	a.ID, a.Repo, a.DedupeKey = clean(a.ID, maxWord), clean(a.Repo, maxWord), clean(a.DedupeKey, maxWord)
	a.Title, a.Body = strings.Join(strings.Fields(clean(a.Title, maxTitle)), " "), clean(a.Body, maxBody)
	return a, ok && a.ID != "" && a.Title != "" && strings.TrimSpace(a.Body) != ""
}

func proposed(s *Service, r *Row, e protocol.Event) (protocol.PageProposed, bool) {
	p, ok := read[protocol.PageProposed](s, r, e)
	p.ID, p.Slug, p.Why = clean(p.ID, maxWord), clean(p.Slug, maxWord), clean(p.Why, maxError)
	p.Title = strings.Join(strings.Fields(clean(p.Title, maxTitle)), " ")
	p.Body, p.Add = clean(p.Body, maxBody), clean(p.Add, maxBody)
	return p, ok && p.ID != "" && p.Slug != "" && (strings.TrimSpace(p.Body) == "") != (strings.TrimSpace(p.Add) == "")
}

func blocker(s *Service, r *Row, e protocol.Event) (protocol.BlockerDeclared, bool) {
	b, ok := read[protocol.BlockerDeclared](s, r, e)
	b.ID, b.Question = clean(b.ID, maxWord), clean(b.Question, maxError)
	fields := b.Fields[:min(len(b.Fields), maxFields)]
	b.Fields = nil
	for _, f := range fields {
		f.Name, f.Environment, f.Description = clean(f.Name, maxWord), clean(f.Environment, maxWord), clean(f.Description, maxError)
		if f.Name != "" && fieldKinds[string(f.Kind)] {
			b.Fields = append(b.Fields, f)
		}
	}
	return b, ok && b.ID != "" && blockerKinds[b.Kind] && strings.TrimSpace(b.Question) != ""
}

// RawTask is further work that a try noticed and declared.
type RawTask struct {
	_     struct{} `doc:"Further work that a try noticed and left to others." schema:"RawTask"`
	ID    string   `json:"id" example:"ask-1" doc:"the run's own name for it"`
	RunID string   `json:"run_id" format:"uuid" doc:"the try that filed it"`
	Repo  *string  `json:"repo" doc:"owner/name; null: the task's own"`
	Title string   `json:"title" doc:"one line"`
	Body  string   `json:"body" doc:"what is wanted, in the words of the agent"`
}

// DeclaredBlocker is the thing without which a try could not go on.
type DeclaredBlocker struct {
	_        struct{}                `doc:"What a try could not go on without." schema:"DeclaredBlocker"`
	ID       string                  `json:"id" example:"blocker-1" doc:"the run's own name for it"`
	RunID    string                  `json:"run_id" format:"uuid" doc:"the try that declared it"`
	Kind     string                  `json:"kind" enum:"missing_credential,missing_access,decision" doc:"what sort of thing only a person can give"`
	Question string                  `json:"question" example:"Which account of the payment provider is used in tests?" doc:"in the words of the agent"`
	Fields   []protocol.BlockerField `json:"fields" doc:"what is to be filled in; empty unless a credential is missing"`
}

// foldDeclared adds the declarations of all tries of the task to its result, if its runs
// declare anything.
func (s *Service) foldDeclared(tx *db.Tx, t *task.Row, runs []Row, out *TaskResult) error {
	all, err := selectDeclared.All(tx, tx.Account, t.ID)
	if err != nil || len(all) == 0 {
		return err
	}
	if declares, err := s.Setup.Declares(tx, t); err != nil || !declares {
		return err
	}
	for _, d := range all {
		e, r := protocol.Event{Kind: d.Kind, Data: json.RawMessage(d.Data)}, &Row{ID: d.RunID}
		if d.Kind == protocol.EventAsk {
			if a, ok := ask(s, r, e); ok {
				out.RawTasks = append(out.RawTasks,
					RawTask{ID: a.ID, RunID: d.RunID, Repo: db.NullText(a.Repo), Title: a.Title, Body: a.Body})
			}
		} else if b, ok := blocker(s, r, e); ok {
			out.Blocker = &DeclaredBlocker{ID: b.ID, RunID: d.RunID, Kind: b.Kind, Question: b.Question,
				Fields: append([]protocol.BlockerField{}, b.Fields...)}
		}
	}
	if len(out.RawTasks) == 0 {
		return nil
	}
	ids := make([]string, len(runs))
	for i := range runs {
		ids[i] = runs[i].ID
	}
	out.AskIDs, err = s.Asks.OfRuns(tx, ids)
	return err
}
