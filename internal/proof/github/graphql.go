package github

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
)

// gnode is an object of GraphQL. A member may be a function of its arguments.
type gnode map[string]any

type field func(args map[string]any) any

// gfault is an error of GraphQL, which is answered with status 200.
type gfault struct{ kind, message string }

// query is a GraphQL request while it is carried out.
type query struct {
	*call
	variables map[string]any
	document  *ast.QueryDocument
	errors    []obj
}

// points is what a GraphQL request costs of the secondary limit.
func (c *call) points() int {
	var in struct{ Query string }
	_ = json.Unmarshal(c.body, &in)
	if strings.HasPrefix(strings.TrimSpace(in.Query), "mutation") {
		return 5
	}
	return 1
}

// graph carries out GraphQL.
func (c *call) graph() (int, any) {
	var in struct {
		Query         string
		Variables     map[string]any
		OperationName string
	}
	c.in(&in)
	q := &query{call: c, variables: in.Variables}
	document, err := parser.ParseQuery(&ast.Source{Input: in.Query})
	if err != nil {
		return http.StatusOK, obj{"errors": []obj{{"message": err.Error()}}}
	}
	q.document = document
	operation := document.Operations.ForName(in.OperationName)
	if operation == nil {
		return http.StatusOK, obj{"errors": []obj{{"message": "No operation named " + in.OperationName}}}
	}
	root := q.root()
	if operation.Operation == ast.Mutation {
		root = q.mutations()
	}
	data := q.selected(root, operation.SelectionSet, nil)
	answer := obj{"data": data}
	if q.errors != nil {
		answer["errors"] = q.errors
	}
	return http.StatusOK, answer
}

// selected answers the members of an object that a query asks for.
func (q *query) selected(n gnode, set ast.SelectionSet, path []any) obj {
	out := obj{}
	for _, selection := range set {
		switch v := selection.(type) {
		case *ast.Field:
			out[v.Alias] = q.member(n, v, append(path[:len(path):len(path)], v.Alias))
		case *ast.InlineFragment:
			if v.TypeCondition == "" || n.is(v.TypeCondition) {
				for name, value := range q.selected(n, v.SelectionSet, path) {
					out[name] = value
				}
			}
		case *ast.FragmentSpread:
			if f := q.document.Fragments.ForName(v.Name); f != nil && n.is(f.TypeCondition) {
				for name, value := range q.selected(n, f.SelectionSet, path) {
					out[name] = value
				}
			}
		}
	}
	return out
}

func (n gnode) is(kind string) bool {
	return n["__typename"] == kind || kind == "Actor" || kind == "Node"
}

// member answers one member.
func (q *query) member(n gnode, f *ast.Field, path []any) (out any) {
	defer func() {
		r := recover()
		if fault, ok := r.(gfault); ok {
			q.errors = append(q.errors, obj{
				"type": fault.kind, "path": path, "message": fault.message,
				"locations": []obj{{"line": f.Position.Line, "column": f.Position.Column}},
			})
			out = nil
		} else if r != nil {
			panic(r)
		}
	}()
	value, known := n[f.Name]
	if !known {
		panic(gfault{"undefinedField", fmt.Sprintf("Field '%s' doesn't exist on type '%v'", f.Name, n["__typename"])})
	}
	if compute, ok := value.(field); ok {
		args := map[string]any{}
		for _, a := range f.Arguments {
			v, err := a.Value.Value(q.variables)
			if err != nil {
				panic(gfault{"INVALID", err.Error()})
			}
			args[a.Name] = v
		}
		value = compute(args)
	}
	return q.shape(value, f, path)
}

func (q *query) shape(value any, f *ast.Field, path []any) any {
	switch v := value.(type) {
	case gnode:
		if v == nil {
			return nil
		}
		return q.selected(v, f.SelectionSet, path)
	case []gnode:
		return each(v, func(n gnode) obj { return q.selected(n, f.SelectionSet, path) })
	}
	return value
}

// forbid ends a member as GitHub does for a missing permission.
func (q *query) need(r *Repo, permissions ...string) {
	for _, p := range permissions {
		if !q.who.covers(r) || !q.who.has(p) {
			panic(gfault{"FORBIDDEN", "Resource not accessible by integration"})
		}
	}
	if r.archived && strings.Contains(strings.Join(permissions, " "), "=write") {
		panic(gfault{"UNPROCESSABLE", "Repository was archived so is read-only."})
	}
}

func (q *query) root() gnode {
	return gnode{
		"__typename": "Query",
		"viewer":     field(func(map[string]any) any { return q.actor(q.who.account()) }),
		"rateLimit": gnode{
			"__typename": "RateLimit", "limit": 5000, "cost": 1, "remaining": 4999, "used": 1, "resetAt": stamp(q.seconds()),
		},
		"repository": field(func(args map[string]any) any {
			r := q.byName(fmt.Sprint(args["owner"]) + "/" + fmt.Sprint(args["name"]))
			if id := q.moved[strings.ToLower(fmt.Sprint(args["owner"])+"/"+fmt.Sprint(args["name"]))]; r == nil && q.repos[id] != nil {
				r = q.repos[id] // GraphQL follows old names
			}
			if r == nil || !q.sees(r) {
				panic(gfault{"NOT_FOUND", fmt.Sprintf("Could not resolve to a Repository with the name '%v/%v'.", args["owner"], args["name"])})
			}
			return q.repository(r)
		}),
		"node": field(func(args map[string]any) any {
			if p := q.pullByNode(args["id"]); p != nil {
				return q.pullNode(p)
			}
			if t := q.threadByNode(args["id"]); t != nil {
				return q.thread(t)
			}
			panic(missingNode(args["id"]))
		}),
	}
}

func missingNode(id any) gfault {
	return gfault{"NOT_FOUND", fmt.Sprintf("Could not resolve to a node with the global id of '%v'", id)}
}

func (q *query) pullByNode(id any) *Pull {
	for _, p := range q.pulls() {
		if nodeID("PR", p.ID) == id && q.sees(p.repo) {
			return p
		}
	}
	return nil
}

func (q *query) threadByNode(id any) *Thread {
	for _, p := range q.pulls() {
		for _, t := range p.threads {
			if nodeID("PRRT", t.id) == id && !t.gone && q.sees(p.repo) {
				return t
			}
		}
	}
	return nil
}

// input reads the one argument of a mutation.
func input(args map[string]any) map[string]any {
	in, _ := args["input"].(map[string]any)
	return in
}

func (q *query) mutations() gnode {
	mutation := func(kind string, do func(in map[string]any) gnode) field {
		return func(args map[string]any) any {
			in := input(args)
			n := do(in)
			n["__typename"], n["clientMutationId"] = kind, in["clientMutationId"]
			return n
		}
	}
	thread := func(resolved bool) func(in map[string]any) gnode {
		return func(in map[string]any) gnode {
			t := q.threadByNode(in["threadId"])
			if t == nil {
				panic(missingNode(in["threadId"]))
			}
			// Documented nowhere: with pull_requests: write alone it is forbidden.
			q.need(t.pull.repo, "pull_requests=write", "contents=write")
			q.resolve(t, q.who, resolved)
			return gnode{"thread": q.thread(t)}
		}
	}
	pull := func(in map[string]any, name string, permissions ...string) *Pull {
		p := q.pullByNode(in[name])
		if p == nil {
			panic(missingNode(in[name]))
		}
		q.need(p.repo, permissions...)
		return p
	}
	draft := func(want bool) func(in map[string]any) gnode {
		return func(in map[string]any) gnode {
			p := pull(in, "pullRequestId", "pull_requests=write")
			q.setDraft(p, q.who, want)
			return gnode{"pullRequest": q.pullNode(p)}
		}
	}
	return gnode{
		"__typename":                    "Mutation",
		"resolveReviewThread":           mutation("ResolveReviewThreadPayload", thread(true)),
		"unresolveReviewThread":         mutation("UnresolveReviewThreadPayload", thread(false)),
		"markPullRequestReadyForReview": mutation("MarkPullRequestReadyForReviewPayload", draft(false)),
		"convertPullRequestToDraft":     mutation("ConvertPullRequestToDraftPayload", draft(true)),
		"enqueuePullRequest": mutation("EnqueuePullRequestPayload", func(in map[string]any) gnode {
			p := pull(in, "pullRequestId", "pull_requests=write", "merge_queues=write")
			head, _ := in["expectedHeadOid"].(string)
			jump, _ := in["jump"].(bool)
			e, why := q.enqueue(p, q.who, head, jump)
			if why != "" {
				panic(gfault{"UNPROCESSABLE", why})
			}
			return gnode{"mergeQueueEntry": q.entry(e)}
		}),
		"dequeuePullRequest": mutation("DequeuePullRequestPayload", func(in map[string]any) gnode {
			p := pull(in, "id", "pull_requests=write", "merge_queues=write")
			if p.entry == nil {
				panic(gfault{"UNPROCESSABLE", "Pull request is not in the merge queue"})
			}
			n := q.entry(p.entry)
			q.leaveQueue(p, q.who.account(), "dequeued", "MANUAL")
			return gnode{"mergeQueueEntry": n}
		}),
	}
}

// setDraft makes a pull request a draft, or ready.
func (s *Server) setDraft(p *Pull, by who, draft bool) {
	if p.draft == draft {
		return
	}
	p.draft, p.updated = draft, s.seconds()
	action := "ready_for_review"
	if draft {
		action = "converted_to_draft"
	}
	s.pullEvent(p, action, by, nil)
}
