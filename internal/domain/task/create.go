package task

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"yardmaster/internal/api/op"
	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/escalation"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/jsonschema"
	"yardmaster/internal/policy"
)

// DefaultPriority is the priority of a task that names none.
const DefaultPriority = 50

const (
	minConfidence  = 0.5
	directPriority = 100
	maxAttempts    = 3
)

// createIn is the body of task.create.
type createIn struct {
	Repo         string            `json:"repo" pattern:"^[^/\\s]+/[^/\\s]+$" says:"must have the form OWNER/NAME" maxLength:"200" doc:"the repository to work in, owner/name"`
	Title        string            `json:"title" minLength:"1" maxLength:"200" doc:"one line; the branch of the task is named after it"`
	Problem      string            `json:"problem" minLength:"1" maxLength:"20000" example:"The footer shows last year. Compute the year when the page is rendered." doc:"what is to be done and why, in words: all the agent is told; links alone are refused"`
	Sink         Sink              `json:"sink,omitempty" doc:"queued unless given; direct goes to the head of the queue; gh opens an issue at the code host and queues nothing: 422 sink-not-configured if that keeps no issues; linear opens one at Linear and queues nothing: 422 sink-not-configured unless integration.linear_set has given a key"`
	Kind         string            `json:"kind,omitempty" enum:"work,scout,setup,kb,devops" doc:"work unless given; kb proposes texts for the pages that problem names in backticks; devops is about how the repository is built, checked and delivered, and changes nothing that is deployed"`
	Template     string            `json:"template,omitempty" maxLength:"100" example:"default" doc:"name of the agent template; unless given the repository's, else the server's default"`
	Priority     *int64            `json:"priority,omitempty" minimum:"0" maximum:"100" doc:"higher is claimed first; 50 unless given, 100 with sink direct"`
	Confidence   *float64          `json:"confidence,omitempty" minimum:"0" maximum:"1" example:"0.8" doc:"how sure the caller is that this is worth doing; below 0.5 a person is asked instead"`
	DependsOn    []string          `json:"depends_on,omitempty" maxItems:"50" format:"uuid" doc:"ids of tasks that must succeed before this one starts; one that failed or was cancelled is refused"`
	Labels       map[string]string `json:"labels,omitempty" maxItems:"50" maxLength:"200" example:"{\"team\":\"web\"}" doc:"names and values of your own, to filter lists by; a name holds no ="`
	Files        []string          `json:"files,omitempty" maxItems:"200" maxLength:"500" doc:"paths the work is expected to touch, relative to the root of the repository"`
	BudgetUSD    *float64          `json:"budget_usd,omitempty" minimum:"0.01" maximum:"100000" example:"5" doc:"the most that all tries of the task may spend on models, in US dollars; without it only the limits of plan, member and account hold"`
	ResultSchema jsontext.Value    `json:"result_schema,omitempty" doc:"JSON Schema (2020-12 or draft-07) of a result that the report must end with; at most 64 KiB, with references only to its own parts, and none in a circle"`
	AskID        *string           `json:"ask_id,omitempty" format:"uuid" doc:"the ask this task answers"`
}

// Dispatched is the answer of task.create and project.setup: the place in the queue, or the
// escalation that was filed instead.
type Dispatched struct {
	_             struct{} `doc:"The new task's place in the queue, or the escalation that was filed instead."`
	Kind          string   `json:"kind" enum:"dispatched,escalated" doc:"escalated: a person is asked, and there is no task"`
	TaskID        *string  `json:"task_id" format:"uuid" doc:"id of the new task; null when a person is asked instead, and with the sinks gh and linear"`
	IssueID       *string  `json:"issue_id,omitempty" format:"uuid" doc:"with the sink gh: id of the issue that the code host opens; with linear: id of the issue there, see integration.linear_issues"`
	EscalationID  *string  `json:"escalation_id,omitempty" format:"uuid" doc:"id of the escalation, when a person is asked instead"`
	Sink          *Sink    `json:"sink,omitempty" doc:"where the task went"`
	QueuePosition *int64   `json:"queue_position,omitempty" doc:"its place among the tasks that wait, from 1"`
	QueueDepth    *int64   `json:"queue_depth,omitempty" doc:"how many tasks of the account wait, this one included"`
	QueueDepthCap *int64   `json:"queue_depth_cap,omitempty" example:"1000" doc:"how many may wait at most; -1 is uncapped"`
}

func (s *Service) create(ctx context.Context, in createIn) (out Dispatched, err error) {
	if err := in.check(); err != nil {
		return out, err
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		repo, err := s.references(tx, &in)
		if err != nil {
			return err
		}
		if !repo.Enabled {
			return fault.Reason("repo_disabled", "The repository "+repo.FullName()+" is not enabled.")
		}
		if codehost.OnlyLinks(in.Problem) {
			return fault.New(fault.Unprocessable, "problem-is-only-link",
				"The problem consists of links to issues or pull requests; say what is to be done, an agent cannot follow them.")
		}
		if in.Confidence != nil && *in.Confidence < minConfidence {
			out, err = escalate(tx, repo, &in)
			return err
		}
		if in.Sink == SinkGH || in.Sink == SinkLinear {
			out, err = s.track(tx, repo, &in)
			return err
		}
		t, err := s.Create(tx, repo, in.spec())
		if err != nil {
			return err
		}
		out, err = s.dispatched(tx, &t)
		return err
	})
	return out, err
}

// noSink says that nothing is behind a sink.
func noSink(sink Sink) error {
	f := fault.Newf(fault.Unprocessable, "sink-not-configured",
		"Nothing is connected behind the sink %s for this repository; send queued or direct.", sink)
	f.Fields = map[string][]string{"sink": {"has nothing behind it for this repository"}}
	return f
}

// track has the code host of a repository, or Linear, open an issue instead of a task.
func (s *Service) track(tx *db.Tx, repo Repo, in *createIn) (Dispatched, error) {
	labels := make([]string, 0, len(in.Labels))
	for _, name := range slices.Sorted(maps.Keys(in.Labels)) {
		labels = append(labels, strings.TrimSuffix(name+": "+in.Labels[name], ": "))
	}
	issueID, ok, err := s.Tracker.Open(tx, in.Sink, NewIssue{RepoID: repo.ID, Title: in.Title, Problem: in.Problem, Labels: labels})
	if err == nil && !ok {
		err = noSink(in.Sink)
	}
	return Dispatched{Kind: "dispatched", IssueID: &issueID, Sink: new(in.Sink)}, err
}

// dispatched returns the place of a task that tx has created.
func (s *Service) dispatched(tx *db.Tx, t *Row) (Dispatched, error) {
	depth, err := s.Queue.Depth(tx)
	if err != nil {
		return Dispatched{}, err
	}
	depth++ // and this one
	place, err := s.Queue.Place(tx, t)
	most := s.Queue.Cap()
	return Dispatched{Kind: "dispatched", TaskID: &t.ID, Sink: &t.Sink, QueuePosition: &place, QueueDepth: &depth,
		QueueDepthCap: &most}, err
}

// check returns a fault for a field that is wrong by itself, and fills in defaults.
func (in *createIn) check() error {
	in.Title = strings.TrimSpace(in.Title)
	switch {
	case in.Title == "":
		return fault.Field("title", "must not be empty")
	case strings.ContainsAny(in.Title, "\r\n"):
		return fault.Field("title", "must be one line")
	case strings.TrimSpace(in.Problem) == "":
		return fault.Field("problem", "must not be empty")
	}
	for i, f := range in.Files {
		if f == "" || strings.HasPrefix(f, "/") || strings.Contains(f, `\`) || slices.Contains(strings.Split(f, "/"), "..") {
			return fault.Field(fmt.Sprintf("files.%d", i), "must be a path inside the repository")
		}
	}
	for name := range in.Labels {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return fault.Field("labels", "must have names, without the character =")
		}
	}
	if len(in.ResultSchema) > 0 {
		if _, err := jsonschema.Parse(in.ResultSchema); err != nil {
			return fault.Field("result_schema", err.Error())
		}
	}
	if in.Sink == "" {
		in.Sink = SinkQueued
	}
	if in.Kind == "" {
		in.Kind = KindWork
	}
	return nil
}

// references looks up the repository, the template and the ask that the body names.
func (s *Service) references(tx *db.Tx, in *createIn) (Repo, error) {
	owner, name, _ := strings.Cut(in.Repo, "/")
	repo, ok, err := s.RepoByName(tx, owner, name)
	if err != nil {
		return repo, err
	}
	if !ok {
		return repo, fault.Missing("repository")
	}
	if in.Template == "" {
		in.Template = cmp.Or(repo.Template, s.DefaultTemplate)
	}
	if ok, err := s.Templates.Exists(tx, tx.Account, in.Template); err != nil {
		return repo, err
	} else if !ok {
		return repo, fault.Field("template", fmt.Sprintf("there is no template %q", in.Template))
	}
	if in.AskID != nil {
		exists := false
		if id.Valid(*in.AskID) {
			if exists, err = s.Related.AskExists(tx, *in.AskID); err != nil {
				return repo, err
			}
		}
		if !exists {
			return repo, fault.Field("ask_id", "is not an ask of this account")
		}
	}
	return repo, nil
}

func (in *createIn) spec() Spec {
	sp := Spec{Kind: in.Kind, Sink: in.Sink, Title: in.Title, Problem: in.Problem, Template: in.Template, Priority: DefaultPriority,
		Confidence: 1, DependsOn: in.DependsOn, Labels: in.Labels, Files: in.Files, AskID: in.AskID}
	if in.Sink == SinkDirect {
		sp.Priority = directPriority
	}
	if in.Priority != nil {
		sp.Priority = *in.Priority
	}
	if in.Confidence != nil {
		sp.Confidence = *in.Confidence
	}
	if in.BudgetUSD != nil {
		micros := int64(math.Round(*in.BudgetUSD * 1e6))
		sp.BudgetMicros = &micros
	}
	if len(in.ResultSchema) > 0 {
		text := string(in.ResultSchema)
		sp.ResultSchema = &text
	}
	return sp
}

// Spec describes a new task.
type Spec struct {
	Kind, Title, Problem      string
	Sink                      Sink
	Template                  string
	Command                   []string // of kind ci: what to run
	Checkout                  string   // of kind ci: the commit to run it on
	Priority                  int64
	Confidence                float64
	DependsOn                 []string
	Labels                    map[string]string
	Files                     []string
	BudgetMicros              *int64
	ResultSchema, AskID, PRID *string
	Branch                    string // empty: one of the task's own
	Start                     string // the commit that Branch begins at; empty: the default branch
	// RequestedBy is the person at the beginning of the chain, for whom the work is
	// done. Nil is the actor, and empty is nobody.
	RequestedBy *string
	Unbound     bool // git goes without the token that the requester has bound
}

// Create puts a task into the queue of the repository's account, tx.Account.
// It returns the faults of Queue.Admit, or one for a field of depends_on. Tasks of kind
// ci need no seat and are always admitted.
func (s *Service) Create(tx *db.Tx, repo Repo, sp Spec) (Row, error) {
	if sp.Kind != KindCI {
		if _, err := LockAll(tx, tx.Account, sp.DependsOn); err != nil {
			return Row{}, err
		}
		if err := s.Queue.Admit(tx); err != nil {
			return Row{}, err
		}
	}
	return s.add(tx, repo, sp, nil)
}

// add is Create for a task that the queue has admitted. The tasks in fresh were created
// by tx, a microsecond one after the other; no other transaction can end them.
func (s *Service) add(tx *db.Tx, repo Repo, sp Spec, fresh map[string]bool) (Row, error) {
	switch {
	case sp.Kind == KindCI:
		sp.Template = ""
	case sp.Template == "":
		sp.Template = cmp.Or(repo.Template, s.DefaultTemplate)
	}
	taskID := id.Random()
	if sp.Kind == KindWork && s.Lanes != nil {
		var err error
		if sp.Template, err = s.Lanes.Split(tx, sp.Template, taskID); err != nil {
			return Row{}, err
		}
	}
	t := Row{
		ID: taskID, AccountID: tx.Account, RepoID: repo.ID, Kind: sp.Kind, Sink: sp.Sink, Title: sp.Title, Problem: sp.Problem,
		Status: Pending, MaxAttempts: maxAttempts, Priority: sp.Priority, NotBefore: time.UnixMicro(0), QueuedAt: tx.Now,
		Template: sp.Template, Confidence: sp.Confidence, BudgetMicros: sp.BudgetMicros, ResultSchema: sp.ResultSchema, AskID: sp.AskID,
		PRID: sp.PRID, CreatedBy: policy.From(tx.Context()).Label(), CreatedAt: tx.Now.Add(time.Duration(len(fresh)) * time.Microsecond),
		UpdatedAt: tx.Now, Unbound: sp.Unbound,
		WIPPaths: db.JSON[[]string]{V: []string{}}, Files: db.JSON[[]string]{V: append([]string{}, sp.Files...)},
		Command: db.JSON[[]string]{V: append([]string{}, sp.Command...)}, Labels: db.JSON[map[string]string]{V: map[string]string{}},
	}
	actor := policy.From(tx.Context())
	if actor.Anonymous() {
		t.CreatedBy = "system"
	}
	if t.RequestedBy = sp.RequestedBy; t.RequestedBy == nil {
		t.RequestedBy = &actor.UserID
	}
	if *t.RequestedBy == "" {
		t.RequestedBy = nil
	}
	if sp.Labels != nil {
		t.Labels.V = sp.Labels
	}
	if sp.Checkout != "" {
		t.CheckoutSHA = &sp.Checkout
	}
	if sp.Start != "" {
		t.StartSHA = &sp.Start
	}
	if t.Branch = sp.Branch; t.Branch == "" {
		t.Branch = branchName(t.Title, t.ID)
	}
	deps, err := s.dependencies(tx, &t, sp.DependsOn, fresh)
	if err != nil {
		return t, err
	}
	if err := insert(tx, &t); err != nil {
		return t, err
	}
	for _, name := range slices.Sorted(maps.Keys(t.Labels.V)) {
		if _, err := insertLabel.Exec(tx, insertLabelArgs{
			AccountID: t.AccountID, Name: name, Value: t.Labels.V[name], CreatedAt: t.CreatedAt, TaskID: t.ID,
		}); err != nil {
			return t, err
		}
	}
	for _, d := range deps {
		if _, err := insertDep.Exec(tx, t.ID, d); err != nil {
			return t, err
		}
	}
	if err := Moved.Send(tx, Move{&t, ""}); err != nil {
		return t, err
	}
	return t, tell(s.Hub, tx, &t, createdEvent, createdData{Kind: t.Kind, Sink: string(t.Sink), Title: t.Title})
}

// dependencies locks the tasks that t is to wait for, so that none of them ends
// meanwhile, and counts in t those that have not succeeded.
func (s *Service) dependencies(tx *db.Tx, t *Row, ids []string, fresh map[string]bool) ([]string, error) {
	deps := slices.Clone(ids)
	slices.Sort(deps)
	deps = slices.Compact(deps)
	ups, err := LockAll(tx, tx.Account, slices.DeleteFunc(slices.Clone(deps), func(d string) bool { return fresh[d] }))
	if err != nil {
		return nil, err
	}
	for _, d := range deps {
		if fresh[d] {
			t.WaitingDeps++
			continue
		}
		up, ok := ups[d]
		path := fmt.Sprintf("depends_on.%d", slices.Index(ids, d))
		switch {
		case !ok:
			return nil, fault.Field(path, "is not a task of this account")
		case up.Status == Failed || up.Status == Cancelled:
			return nil, fault.Field(path, "is a task that is "+string(up.Status)+" and would never let this one start")
		case !up.Status.succeeded():
			t.WaitingDeps++
		}
	}
	return deps, nil
}

// escalate raises an escalation instead of creating a task.
func escalate(tx *db.Tx, repo Repo, in *createIn) (Dispatched, error) {
	reason := fmt.Sprintf("The caller's confidence of %.2f is below %.1f.", *in.Confidence, minConfidence)
	raised, err := escalation.Raise(tx,
		escalation.Draft{RepoID: &repo.ID, Category: "low_confidence", Title: in.Title, Body: in.Problem, Reason: reason, AskID: in.AskID})
	return Dispatched{Kind: "escalated", EscalationID: &raised}, err
}
