package openapi

import (
	"reflect"
	"testing"

	"yardmaster/internal/api/op"
)

type (
	openapiThing struct{}
	told         struct {
		_ struct{} `schema:"Said"`
	}
)

// TestSchemaNames holds that a type has the same name in the document whether it
// repeats its package's name or not, and another one only if its tag says so.
func TestSchemaNames(t *testing.T) {
	for _, c := range []struct{ pkg, name, want string }{
		{"task", "TaskHold", "TaskHold"}, {"task", "Hold", "TaskHold"}, {"task", "Task", "Task"}, {"audit", "AuditEvent", "AuditEvent"},
		{"audit", "Event", "AuditEvent"}, {"op", "Problem", "Problem"}, {"kb", "Entry", "KbEntry"}, {"plan", "PL", "PlanPL"},
	} {
		if got := qualified(c.pkg, c.name); got != c.want {
			t.Errorf("%s.%s is %s, not %s", c.pkg, c.name, got, c.want)
		}
	}
	for id, want := range map[string]string{"task.create": "TaskCreate", "account.floors_set": "AccountFloorsSet"} {
		if got := typeName(id); got != want {
			t.Errorf("%s is %s, not %s", id, got, want)
		}
	}
	for typ, want := range map[reflect.Type]string{
		reflect.TypeFor[openapiThing]():        "openapiThing",
		reflect.TypeFor[About]():               "OpenapiAbout",
		reflect.TypeFor[told]():                "Said",
		reflect.TypeFor[op.Page[told]]():       "SaidPage",
		reflect.TypeFor[op.Bounded[About]]():   "OpenapiAboutBounded",
		reflect.TypeFor[op.Page[op.Problem]](): "ProblemPage",
		reflect.TypeFor[struct{ A string }]():  "",
	} {
		if got := schemaName(typ); got != want {
			t.Errorf("%v is %s, not %s", typ, got, want)
		}
	}
}
