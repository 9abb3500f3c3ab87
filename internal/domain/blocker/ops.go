package blocker

import (
	"cmp"
	"context"
	"math"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/protocol"
	"yardmaster/internal/seal"
	"yardmaster/internal/secretscan"
)

const group = "Blockers"

// Ops lists the capabilities of this package.
func (s *Service) Ops() []op.Op {
	closed := op.Refusal{Status: 409, Slug: "blocker-closed"}
	landed := op.Refusal{Status: 409, Slug: "field-landed"}
	return []op.Op{
		op.New(op.Row{
			ID: "blocker.fix_link_form", Method: "GET", Path: "/blocker-fix/{jwt}", Group: group, Rule: policy.Public(), NoStore: true,
			Refuses: []op.Refusal{{Status: 410, Slug: "fix-link-expired"}},
			Summary: "The form of a blocker, for whoever has its link",
			Doc: "Shows which fields have their value and which wait, and stores nothing. A link that expired, or whose " +
				"blocker is closed, is 410.",
		}, s.form),
		op.New(op.Row{
			ID: "blocker.fix_link_redeem", Method: "POST", Path: "/blocker-fix/{jwt}", Group: group,
			Rule: policy.Public(), NoStore: true, Form: true,
			Refuses: []op.Refusal{closed, landed, {Status: 410, Slug: "fix-link-expired"}},
			Summary: "Fill in any of the form's fields, each once",
			Doc: "Stores what was filled in, as blocker.submit does, and answers a page, with the stanza to add for an MCP " +
				"server. For whom a page is shown, what cannot be stored is said beside its field, and the rest is kept. " +
				"The link is good for its hour while fields are missing.",
		}, s.redeem),
		op.New(op.Row{
			ID: "blocker.list", Method: "GET", Path: "/v1/blockers", Group: group, Rule: policy.Require(policy.ReadTasks),
			Paging: &op.Paging{Default: 25, Max: 100,
				Filters: map[string][]string{"state": {Open, Answered, Submitted, Withdrawn, Expired}, "id": nil}},
			Summary: "What runs wait for people to give: the open ones oldest first, or all newest first",
			Doc: "Open ones unless open=false or another state is sent; of a state other than open, newest first. With filter=id:PART, those of all states whose id begins or ends with it. Rows for missing credentials carry their form, and for callers who " +
				"may write secrets fix_url, a link that opens the form for an hour without an account. What was answered " +
				"is never shown.",
		}, s.list),
		op.New(op.Row{
			ID: "blocker.answer", Method: "POST", Path: "/v1/blockers/{blockerId}/answer", Group: group,
			Rule: policy.Require(policy.WriteTasks).OfUser(), NoStore: true,
			Refuses: []op.Refusal{closed},
			Summary: "Answer a blocker in words; say where a credential is, never the credential",
			Doc: "Closes the blocker and tells the answer to the agents that go on with the work. A text that looks like a " +
				"secret, or quotes one of the vault, is refused: put it into the vault and say its name. What happens " +
				"next is in kind. A closed blocker is refused.",
		}, s.answer),
		op.New(op.Row{
			ID: "blocker.withdraw", Method: "POST", Path: "/v1/blockers/{blockerId}/withdraw", Group: group,
			Rule:    policy.Require(policy.WriteTasks),
			Summary: "Retire an open blocker without an answer",
			Doc: "Nobody will answer it. A run that waits for it is told to go on without; a held task stays held. A " +
				"blocker that is not open is 404.",
		}, s.withdraw),
		op.New(op.Row{
			ID: "blocker.get", Method: "GET", Path: "/v1/blockers/{blockerId}", Group: group, Rule: policy.Require(policy.ReadTasks),
			Summary: "One blocker, open or closed",
			Doc:     "As the list shows it: with its form where it has one, and for callers who may write secrets with a link to it.",
		}, s.get),
		op.New(op.Row{
			ID: "blocker.spec", Method: "GET", Path: "/v1/blockers/{blockerId}/spec", Group: group,
			Rule:    policy.Require(policy.ReadTasks).OrFixLink(),
			Summary: "A blocker's form: the names and kinds of its fields, never a value",
			Doc:     "The link of the blocker's own form works as the bearer here.",
		}, s.spec),
		op.New(op.Row{
			ID: "blocker.submit", Method: "POST", Path: "/v1/blockers/{blockerId}/submit", Group: group,
			Rule: policy.Require(policy.WriteSecrets).OrFixLink(), NoStore: true,
			Refuses: []op.Refusal{closed, landed, {Status: 422, Slug: "unprocessable"}},
			Summary: "Fill in any of the form's fields, each once; the last one closes the blocker",
			Doc: "Values go sealed into the vault of the repository, the token of an MCP server into that of the account; " +
				"none is ever read back. Any of the fields may be filled in, each once, and the last one closes the " +
				"blocker. Refused when the blocker is closed or a field has its value; a name that is not of the form, or " +
				"a value that cannot be kept, is 422 and nothing is stored. The link of the blocker's own form works as " +
				"the bearer here.",
		}, s.submit),
	}
}

// find reads a blocker of tx.Account; unknown, foreign and malformed ids are the same
// fault.NotFound. The actor of a fix link finds the blocker of the link alone.
func find(tx *db.Tx, blockerID string) (row, error) {
	actor := policy.From(tx.Context())
	if !id.Valid(blockerID) || actor.Credential == policy.FixLink && actor.CredentialID != blockerID {
		return row{}, fault.Missing("blocker")
	}
	r, ok, err := byID.Maybe(tx, tx.Account, blockerID)
	if err == nil && !ok {
		err = fault.Missing("blocker")
	}
	return r, err
}

// errClosed is the refusal of a call that needs an open blocker.
var errClosed = fault.Reason("blocker-closed", "The blocker is closed.")

// fields reads the form of a blocker.
func (s *Service) fields(tx *db.Tx, r *row) ([]FormField, error) {
	rows, err := fieldsOf.All(tx, tx.Account, r.ID)
	if err != nil {
		return nil, err
	}
	out := make([]FormField, len(rows))
	for i, f := range rows {
		out[i] = FormField{
			Name: f.Name, Kind: protocol.FieldKind(f.Kind), Description: f.Description, Landed: f.LandedAt != nil,
			Submittable: f.LandedAt == nil && f.Kind != OAuthConnection && r.State == Open,
		}
		if f.Environment != "" {
			out[i].Environment = &rows[i].Environment
		}
		if !out[i].Submittable {
			continue
		}
		repoID, name := r.RepoID, f.Name
		if f.Kind == MCPServer {
			repoID, name = "", tokenRef(f.Name)
		}
		if out[i].Replaces, err = s.Vault.Has(tx, repoID, f.Environment, name); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// wire is a blocker as the actor of tx sees it.
func (s *Service) wire(tx *db.Tx, r *row) (Blocker, error) {
	b := Blocker{
		ID: r.ID, Kind: Kind(r.Kind), State: State(r.State), Question: r.Question, TaskID: r.TaskID, RunID: r.RunID,
		CreatedAt: r.CreatedAt, ClosedAt: r.ClosedAt, ClosedBy: r.ClosedBy,
	}
	var err error
	if b.Repo, err = s.Repos.FullName(tx, r.RepoID); err != nil || r.Kind != MissingCredential {
		return b, err
	}
	fields, err := s.fields(tx, r)
	b.Form = &Form{Fields: fields}
	if r.State == Open && policy.From(tx.Context()).Scopes.Has(policy.Scopes(policy.WriteSecrets)) {
		b.FixURL = new(s.FixURL(tx, r.ID, tx.Now))
	}
	return b, err
}

// FixURL makes the address of the form of a blocker of tx.Account that asks for a credential. It is for
// those who may write secrets: whoever has it may fill the form in. It works for an hour from
// the time at which it leaves: a mail may wait for the end of quiet hours.
func (s *Service) FixURL(tx *db.Tx, blockerID string, leaves time.Time) string {
	link := seal.Link{Subject: blockerID, Account: tx.Account, Expires: leaves.Add(linkTTL)}
	return s.BaseURL + "/blocker-fix/" + s.Ring.SignLink(linkPurpose, link)
}

type listIn struct {
	op.PageIn
	Open *bool `json:"open,omitempty" doc:"true unless given; false: the closed ones as well, all newest first"`
}

func (s *Service) list(ctx context.Context, in listIn) (out op.Page[Blocker], err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		at, after, more, err := in.AfterTime()
		if err != nil {
			return err
		}
		// A cursor without open continues its own list.
		open := in.Open == nil || *in.Open
		if after := in.After(); len(after) > 0 {
			ofOpen := len(after) == 2
			if in.Open != nil && open != ofOpen {
				return fault.Field("open", "must be what the cursor was made with, or left out")
			}
			open = ofOpen
		}
		state := in.Want("state")
		if in.Want("id") != "" && in.Open == nil {
			open = false
		}
		if state != "" && in.Open == nil && in.Cursor == "" {
			open = state == Open
		}
		if open && state != "" && state != Open {
			return fault.Field("filter", "state:"+state+" is of closed blockers; send open=false with it, or leave open out")
		}
		part, err := in.Part()
		if err != nil {
			return err
		}
		var rows []row
		if part != "" {
			if open {
				state = Open
			}
			if rows, err = named(tx, part, state, in.Size()-1); err != nil {
				return err
			}
		} else if open {
			rows, err = listOpen.All(tx, listOpenArgs{AccountID: tx.Account, CreatedAt: at, ID: after, Limit: in.Size()})
		} else {
			if !more {
				at = math.MaxInt64
			}
			args := listAllArgs{AccountID: tx.Account, CreatedAt: at, ID: after, Limit: in.Size()}
			if state == "" {
				rows, err = listAll.All(tx, args)
			} else {
				rows, err = listInState.All(tx, listInStateArgs{args, state})
			}
		}
		if err != nil {
			return err
		}
		page := op.NewPage(in.PageIn, rows, func(r row) []string {
			key := op.TimeKey(r.CreatedAt, r.ID)
			if !open {
				key = append(key, "all")
			}
			return key
		})
		out = op.Page[Blocker]{Data: make([]Blocker, len(page.Data)), NextCursor: page.NextCursor}
		for i := range page.Data {
			if out.Data[i], err = s.wire(tx, &page.Data[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

type answerIn struct {
	BlockerID string `json:"blockerId" format:"uuid" doc:"id of the blocker"`
	Answer    string `json:"answer" minLength:"1" maxLength:"4000" example:"Use the test account in the team's password manager, entry \"payments, test\"." doc:"what is missing, or where it is; a credential itself is refused, and a value of the vault is left out unless the caller has write:secrets, who is told"`
}

// Closed is the answer of calls that may close a blocker.
type Closed struct {
	_         struct{}    `doc:"What a call did to a blocker, and what goes on because of it."`
	BlockerID string      `json:"blocker_id" format:"uuid" doc:"id of the blocker"`
	State     State       `json:"state" example:"answered" doc:"its state after the call; still open while fields are missing"`
	Kind      Effect      `json:"kind" doc:"woken: the live run of the task was told, and a parked one goes on; released: the held task is in the queue again with all its tries; filed: the task is over, and an ask was filed about what is left; recorded: kept for the task, which waits for more, or is in the queue and is told when it starts"`
	TaskID    string      `json:"task_id" format:"uuid" doc:"the task that was blocked"`
	AskID     *string     `json:"ask_id" format:"uuid" example:"null" doc:"the ask that was filed; null unless kind is filed"`
	Landed    []string    `json:"landed" example:"[\"PAYMENT_TEST_KEY\"]" doc:"the fields that have their value now"`
	Stanzas   []MCPStanza `json:"stanzas" doc:"what to add to the policy file"`
}

func (s *Service) answer(ctx context.Context, in answerIn) (out Closed, err error) {
	text := strings.TrimSpace(in.Answer)
	var secret error = fault.Field("answer", "looks like a secret; keep it in the vault and say by what name")
	switch {
	case text == "":
		return out, fault.Field("answer", "must not be empty")
	case secretscan.Found(text):
		return out, secret
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, err := s.lock(tx, in.BlockerID)
		if err != nil {
			return err
		}
		// Agents and triage read the answer, so it must not hold a secret. That it would is
		// said to those alone who may have secrets: others would learn whether a guess is right.
		kept, err := s.Vault.Masked(tx, r.RepoID, text, masked)
		if err != nil {
			return err
		}
		if kept != text && policy.From(ctx).Scopes.Has(policy.Scopes(policy.WriteSecrets)) {
			return secret
		}
		sealed := s.Ring.Seal(answerPurpose(tx.Account, r.ID), []byte(kept))
		if err := s.finish(tx, &r, Answered, &sealed); err != nil {
			return err
		}
		if out, err = s.resume(tx, &r); err != nil {
			return err
		}
		return answeredEvent.Record(tx, event.Subject{ID: r.ID, RepoID: r.RepoID},
			answeredData{AskID: out.AskID, Kind: string(out.Kind), TaskID: r.TaskID})
	})
	return out, err
}

// masked stands for the value of a secret in an answer.
const masked = "[a secret of the vault]"

type blockerIn struct {
	BlockerID string `json:"blockerId" format:"uuid" doc:"id of the blocker"`
}

func (s *Service) withdraw(ctx context.Context, in blockerIn) (out Closed, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, err := s.lock(tx, in.BlockerID)
		if err != nil {
			return err
		}
		if r.State != Open {
			return fault.Missing("blocker")
		}
		if err := s.finish(tx, &r, Withdrawn, nil); err != nil {
			return err
		}
		out = closed(&r, Recorded)
		waiting, err := s.assign(tx, &r)
		if err != nil {
			return err
		}
		// A run that waits is told to go on, with the answers to its other blockers. A
		// held task is released only if there are such answers.
		if len(waiting) == 0 {
			answers, err := Said(tx, s.Ring, r.TaskID, r.RunID)
			if err != nil {
				return err
			}
			effect, err := s.Tasks.Resume(tx, r.TaskID, r.RunID, answers.with(withdrawnText), answers.Text != "")
			if err != nil {
				return err
			}
			out.Kind = Effect(cmp.Or(effect, Recorded))
		}
		return withdrawnEvent.Record(tx, event.Subject{ID: r.ID, RepoID: r.RepoID}, closedData{TaskID: r.TaskID})
	})
	return out, err
}

// Spec is the form of a blocker, with the question.
type Spec struct {
	_         struct{}    `doc:"The form of a blocker, with what it is for."`
	BlockerID string      `json:"blocker_id" format:"uuid" doc:"id of the blocker"`
	Kind      Kind        `json:"kind" doc:"what sort of thing is missing"`
	State     State       `json:"state" doc:"expired: its task was cancelled before anybody answered"`
	Question  string      `json:"question" example:"Which account of the payment provider is used in tests?" doc:"in the words of the agent"`
	Repo      string      `json:"repo" doc:"owner/name"`
	Fields    []FormField `json:"fields" doc:"what is to be filled in; empty unless a credential is missing"`
}

func (s *Service) get(ctx context.Context, in blockerIn) (out Blocker, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		r, err := find(tx, in.BlockerID)
		if err != nil {
			return err
		}
		out, err = s.wire(tx, &r)
		return err
	})
	return out, err
}

func (s *Service) spec(ctx context.Context, in blockerIn) (out Spec, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		r, err := find(tx, in.BlockerID)
		if err != nil {
			return err
		}
		out, err = s.specOf(tx, &r)
		return err
	})
	return out, err
}

// specOf reads the Spec of a blocker.
func (s *Service) specOf(tx *db.Tx, r *row) (Spec, error) {
	repo, err := s.Repos.FullName(tx, r.RepoID)
	if err != nil {
		return Spec{}, err
	}
	fields, err := s.fields(tx, r)
	return Spec{BlockerID: r.ID, Kind: Kind(r.Kind), State: State(r.State), Question: r.Question, Repo: repo, Fields: fields}, err
}

type submitIn struct {
	BlockerID string                    `json:"blockerId" format:"uuid" doc:"id of the blocker"`
	Fields    map[string]jsontext.Value `json:"fields" example:"{\"PAYMENT_TEST_KEY\":\"example-value\"}" doc:"by the name of the field: a string, or for mcp:<server> an object of url, transport (http or sse) and token"`
}

func (s *Service) submit(ctx context.Context, in submitIn) (out Closed, err error) {
	values := map[string]entry{}
	for name, raw := range in.Fields {
		e, err := readEntry(name, raw)
		if err != nil {
			return out, err
		}
		values[name] = e
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, err := s.lock(tx, in.BlockerID)
		if err == nil {
			out, err = s.fillIn(tx, &r, values)
		}
		return err
	})
	return out, err
}
