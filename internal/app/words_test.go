package app

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// closedNames are fields whose values a client wants to switch on.
var closedNames = []string{"status", "state", "kind", "role", "outcome", "tier", "type"}

// openSets are those of them that are no closed set, and why.
var openSets = map[string]string{
	"CodeHostDelivery.kind": "each host has its own names of events",
	"AuditEvent.kind":       "every domain has kinds of its own, and a newer server more",
	"RunEvent.kind":         "agents, and boxes of newer versions, add kinds",
	"SessionEvent.kind":     "the events of a run, and what a session without one notes",
	"Problem.type":          "an address; its last segment is one of the slugs that the operations list",
}

// Whoever reads the description is told what each thing in it is.
func TestDescribed(t *testing.T) {
	t.Parallel()
	d := newJudge(t).Document
	fields := func(at string, s *jsonschema.Schema) {
		for name, f := range s.Properties {
			key := at + "." + name
			if f.Description == "" {
				t.Errorf("%s has no description: give the field a doc tag", key)
			}
			one := f
			if one.Items != nil {
				one = one.Items
			}
			bare := one.Type == "string" || slices.Contains(one.Types, "string")
			if bare && len(one.Enum) == 0 && slices.Contains(closedNames, name) && openSets[key] == "" {
				t.Errorf("%s does not say which values it has: give the field an enum tag", key)
			}
		}
	}
	for name, s := range d.Components.Schemas {
		if s.Description == "" {
			t.Errorf("%s has no description: give the struct a blank field with a doc tag", name)
		}
		fields(name, s)
	}
	for id, x := range d.Operations() {
		for _, p := range x.Parameters {
			if p.Description == "" {
				t.Errorf("the parameter %s of %s has no description", p.Name, id)
			}
		}
		if x.RequestBody != nil {
			fields(id, x.RequestBody.Content["application/json"].Schema)
		}
	}
	for _, o := range Ops() {
		if strings.HasPrefix(o.Path, "/v1/") && o.Doc == "" {
			t.Errorf("%s is described by its summary alone: give the row a Doc", o.ID)
		}
	}
}

const taskStatuses = "Task.status TaskDetail.status TaskReassigned.status TaskCancelled.status TaskRedispatched.status TaskResult.status PlanChild.status"

// What the description lists as the values of a field are the constants of the
// code, all of them. Each is named by one of its block.
func TestEnumsAreTheConstants(t *testing.T) {
	t.Parallel()
	d := newJudge(t).Document
	for _, c := range []struct {
		fields, dir, of string
		also, without   []string
	}{
		{fields: taskStatuses, dir: "domain/task", of: "Pending"},
		{fields: "Task.kind TaskDetail.kind", dir: "domain/task", of: "KindWork"},
		{fields: "Session.kind", dir: "domain/task", of: "KindWork", also: []string{"triage", "ask"}},
		{fields: "Task.sink TaskDispatched.sink", dir: "domain/task", of: "SinkQueued"},
		{fields: "Policy.conflicts", dir: "domain/queue", of: "ConflictsHold"},
		{fields: "Run.state TaskPulse.state", dir: "domain/measure", of: "RunLeased"},
		{fields: "Run.outcome TaskPulse.outcome TaskSavedWIP.ending Session.outcome", dir: "domain/measure", of: "RunSucceeded"},
		{fields: "MessageResult.status", dir: "domain/run", of: "MessageReplied"},
		{fields: "Ask.state AskFiled.state", dir: "domain/ask", of: "Pending"},
		{fields: "AskVerdict.kind", dir: "domain/ask", of: "Minted"},
		{fields: "Plan.status PlanDetail.status PlanApproved.status PlanCancelled.status PlanFiled.status", dir: "domain/plan",
			of: "Drafting"},
		{fields: "Plan.bucket PlanDetail.bucket", dir: "domain/plan", of: "BucketHeld"},
		{fields: "Plan.source PlanDetail.source", dir: "domain/plan", of: "SourceExecute"},
		{fields: "PlanGroup.status", dir: "domain/plan", of: "Waiting", also: []string{"held", "running", "done", "failed"}},
		{fields: "PlanEdge.kind", dir: "domain/plan", of: "Code"},
		{fields: "Blocker.state BlockerSpec.state BlockerClosed.state", dir: "domain/blocker", of: "Open"},
		{fields: "BlockerFormField.kind BlockerField.kind", dir: "protocol", of: "FieldEnvSecret"},
		{fields: "BlockerClosed.kind", dir: "domain/blocker", of: "Released"},
		{fields: "PullRequest.state PlanPR.state", dir: "domain/pull/record", of: "Open"},
		{fields: "PullRequest.checks", dir: "domain/pull/record", of: "ChecksPending"},
		{fields: "Need.why", dir: "domain/pull/moves", of: "NeedDecision"},
		{fields: "ReviewState.state", dir: "domain/pull/record", of: "ReviewDue"},
		{fields: "UnwantedFile.kind", dir: "codehost", of: "UnwantedBinary"},
		{fields: "PullRequest.closed_why", dir: "domain/pull/record", of: "ClosedCancelled"},
		{fields: "PendingAction.state Approval.state", dir: "domain/pull/record", of: "ActionPending"},
		{fields: "Babysit.state", dir: "domain/pull/record", of: "BabysitOff"},
		{fields: "Box.state", dir: "domain/box", of: "Enrolled"},
		{fields: "BoxPresence.status", dir: "domain/measure", of: "BoxOnline"},
		{fields: "BoxOwner.target", dir: "domain/box", of: "Shared"},
		{fields: "BoxRemoval.state", dir: "domain/box", of: "Enrolled", without: []string{"enrolled"}},
		{fields: "BoxRemoval.status", dir: "domain/box", of: "removed", also: []string{"draining"}},
		{fields: "Account.tier OrgSummary.tier OrgDetail.tier", dir: "domain/people", of: "TierFree"},
		{fields: "OSSApplication.state", dir: "domain/oss", of: "Pending"},
		{fields: "Invitation.status", dir: "domain/invitation", of: "Pending"},
		{fields: "AccessRequest.status", dir: "domain/access", of: "Pending"},
		{fields: "NextStep.state", dir: "domain/onboarding", of: "rungDone"},
		{fields: "OrgMember.role Membership.role RosterMember.role JoinedTenant.role UserOrg.role", dir: "policy", of: "Owner"},
		{fields: "Account.role", dir: "policy", of: "Owner", also: []string{""}},
		{fields: "CredentialInfo.kind", dir: "policy", of: "PAT", without: []string{"", "system", "fix_link", "action_link"}},
	} {
		want := slices.DeleteFunc(append(block(t, "../"+c.dir, c.of), c.also...),
			func(v string) bool { return slices.Contains(c.without, v) })
		slices.Sort(want)
		for _, key := range strings.Fields(c.fields) {
			name, field, _ := strings.Cut(key, ".")
			s := d.Components.Schemas[name]
			if s == nil || s.Properties[field] == nil {
				t.Errorf("there is no %s", key)
				continue
			}
			var got []string
			for _, v := range s.Properties[field].Enum {
				if v != nil {
					got = append(got, v.(string))
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%s may be %q, but the constants beside %s are %q", key, got, c.of, want)
			}
		}
	}
}

// block reads the strings of the const declaration that holds one.
func block(t *testing.T, dir, of string) (out []string) {
	t.Helper()
	files, err := filepath.Glob(dir + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if g, ok := decl.(*ast.GenDecl); ok && g.Tok == token.CONST {
				if values, found := stringsOf(t, g, of); found {
					return values
				}
			}
		}
	}
	t.Fatalf("%s declares no constant %s", dir, of)
	return nil
}

// stringsOf are the strings of a const declaration, and whether it holds name.
func stringsOf(t *testing.T, g *ast.GenDecl, name string) (values []string, found bool) {
	for _, spec := range g.Specs {
		v := spec.(*ast.ValueSpec)
		for i, n := range v.Names {
			found = found || n.Name == name
			if i >= len(v.Values) {
				continue
			}
			if lit, ok := v.Values[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
				s, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				values = append(values, s)
			}
		}
	}
	return values, found
}
