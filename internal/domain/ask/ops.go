package ask

import (
	"context"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/escalation"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/op"
	"yardmaster/internal/policy"
)

const group = "Asks"

// Ops are the capabilities of this package.
func (s *Service) Ops() []op.Op {
	read, write := policy.Require(policy.ReadTasks), policy.Require(policy.WriteTasks)
	var states []string
	for _, st := range States() {
		states = append(states, string(st))
	}
	return []op.Op{
		op.New(op.Row{ID: "ask.file", Method: "POST", Path: "/v1/asks", Group: group, Rule: write, Status: 202, Also: []int{200},
			Summary: "File something wanted, for triage to decide what becomes of it",
			Refuses: []op.Refusal{{Status: 404, Slug: "not-found"}, {Status: 409, Slug: "repo_disabled"}}}, s.fileOne),
		op.New(op.Row{ID: "ask.list", Method: "GET", Path: "/v1/asks", Group: group, Rule: read,
			Paging:  &op.Paging{Default: 50, Max: 200, Q: true, Filters: map[string][]string{"state": states, "repo": nil}},
			Summary: "List the account's asks, newest first; q searches the title, 20,000 asks a page, which may be short or empty and still have a next"}, s.list),
		op.New(op.Row{ID: "ask.get", Method: "GET", Path: "/v1/asks/{askId}", Group: group, Rule: read,
			Summary: "One ask, and what became of it"}, s.get),
		op.New(op.Row{ID: "ask.redrive", Method: "POST", Path: "/v1/asks/{askId}/redrive", Group: group, Rule: write,
			Summary: "Give an ask that found no judge back to triage",
			Refuses: []op.Refusal{{Status: 409, Slug: "not_redrivable"}}}, s.redrive),
	}
}

type fileIn struct {
	Repo      string            `json:"repo,omitempty" pattern:"^[^/\\s]+/[^/\\s]+$" maxLength:"200" doc:"owner/name; without it the judge may pick among the account's"`
	Title     string            `json:"title" minLength:"1" maxLength:"200" doc:"one line"`
	Body      string            `json:"body" minLength:"1" maxLength:"20000"`
	Source    string            `json:"source,omitempty" pattern:"^[a-z][a-z0-9_-]*$" maxLength:"32" doc:"where it comes from, api unless given"`
	DedupeKey string            `json:"dedupe_key,omitempty" maxLength:"200" doc:"the account has one ask for each key; filing again answers it"`
	Labels    map[string]string `json:"labels,omitempty" maxItems:"50" maxLength:"200"`
}

// AskFiled is the answer of ask.file.
type AskFiled struct {
	Kind  string `json:"kind" enum:"filed,existing"`
	AskID string `json:"askId"`
	State State  `json:"state" enum:"pending,triaged,dropped,escalated"`
}

// StatusCode tells a new ask from one that was there.
func (a AskFiled) StatusCode() int {
	if a.Kind == "existing" {
		return 200
	}
	return 202
}

func (s *Service) fileOne(ctx context.Context, in fileIn) (out AskFiled, err error) {
	in.Title = strings.TrimSpace(in.Title)
	switch in.Source {
	case FromRun, FromPlan, FromBlocker, FromInbound, FromBacklog:
		return out, fault.Field("source", "is one that the platform files under; give another")
	}
	switch {
	case in.Title == "":
		return out, fault.Field("title", "must not be empty")
	case strings.ContainsAny(in.Title, "\r\n"):
		return out, fault.Field("title", "must be one line")
	case strings.TrimSpace(in.Body) == "":
		return out, fault.Field("body", "must not be empty")
	}
	actor := policy.From(ctx)
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		enabled := true
		f := Filing{Title: in.Title, Body: in.Body, Source: in.Source, Labels: in.Labels, DedupeKey: in.DedupeKey, Scopes: actor.Scopes}
		if in.Repo != "" {
			owner, name, _ := strings.Cut(in.Repo, "/")
			r, ok, err := repoByName.Maybe(tx, tx.Account, owner, name)
			if err != nil {
				return err
			}
			if !ok {
				return fault.Missing("repository")
			}
			f.RepoIDs, enabled = []string{r.ID}, r.Enabled
		}
		a, existing, err := s.File(tx, f)
		if err != nil {
			return err
		}
		out = AskFiled{"filed", a.AskID, a.State}
		switch {
		case existing:
			out.Kind = "existing"
		case !enabled:
			return fault.Reason("repo_disabled", "The repository "+in.Repo+" is not enabled.")
		}
		return nil
	})
	return out, err
}

type listIn struct{ op.PageIn }

func (s *Service) list(ctx context.Context, in listIn) (page op.Page[Ask], err error) {
	var rows []row
	var end []string
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		var repoID string
		if full := in.Want("repo"); full != "" {
			owner, name, _ := strings.Cut(full, "/")
			r, ok, err := repoByName.Maybe(tx, tx.Account, owner, name)
			if err != nil || !ok {
				return err
			}
			repoID = r.ID
		}
		rows, end, err = list(tx, in.PageIn, repoID)
		return err
	})
	if err != nil {
		return page, err
	}
	found := op.NewPage(in.PageIn, rows, func(r row) []string { return op.TimeKey(r.CreatedAt, r.ID) })
	page = op.Page[Ask]{Data: make([]Ask, len(found.Data)), NextCursor: found.NextCursor}
	if end != nil {
		page.NextCursor = in.At(end)
	}
	for i := range found.Data {
		page.Data[i] = found.Data[i].wire()
	}
	return page, nil
}

type idIn struct {
	AskID string `json:"askId"`
}

func (s *Service) get(ctx context.Context, in idIn) (out Ask, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		r, err := find(tx, in.AskID, false)
		out = r.wire()
		return err
	})
	return out, err
}

// AskRedriven is the answer of ask.redrive.
type AskRedriven struct {
	AskID  string `json:"askId"`
	State  State  `json:"state" enum:"pending"`
	Nudged bool   `json:"nudged" doc:"false: no judge was free to take it up at once; a sweep will"`
}

func (s *Service) redrive(ctx context.Context, in idIn) (out AskRedriven, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, err := find(tx, in.AskID, true)
		if err != nil {
			return err
		}
		if !Allowed(r.State, Pending, deref(r.EscalationReason)) {
			return fault.Reason("not_redrivable", "Only an ask that was escalated because no judge answered goes back to triage; this one is "+standing(&r)+".")
		}
		if _, err := revive.Exec(tx, tx.Account, r.ID, tx.Now); err != nil {
			return err
		}
		if err := escalation.ResolveOfAsk(tx, r.ID, JudgeUnavailable, "The ask went back to triage."); err != nil {
			return err
		}
		out = AskRedriven{AskID: r.ID, State: Pending, Nudged: s.free() > 0}
		s.Hub.Notify(tx, event.AskTopic)
		return event.Record(tx, event.Change{Kind: "ask.redriven", Object: r.ID, RepoID: deref(r.RepoID)})
	})
	return out, err
}

// standing is an ask's state in words.
func standing(r *row) string {
	if r.EscalationReason != nil {
		return string(r.State) + " for " + *r.EscalationReason
	}
	return string(r.State)
}
