package openapi_test

import (
	"context"
	"testing"

	"github.com/go-json-experiment/json"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/openapi"
	"yardmaster/internal/policy"
)

type restIn struct {
	Empties *string `json:"empties,omitempty" null:"empty" doc:"null is the empty text"`
	Needs   *string `json:"needs,omitempty" doc:"null is left out"`
}

// A member of a body for which null means something says that it takes null, and no other does.
func TestMembersThatTakeNullSaySo(t *testing.T) {
	t.Parallel()
	b, err := openapi.Render(openapi.About{}, []op.Op{
		op.New(op.Row{ID: "item.rest", Method: "PUT", Path: "/v1/items", Group: "Items", Rule: policy.Require(policy.ReadTasks),
			Summary: "Rest"}, func(context.Context, restIn) (renamed, error) { return renamed{}, nil }),
	})
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	for member, want := range map[string]string{"empties": `["string","null"]`, "needs": `"string"`} {
		got, err := json.Marshal(walk(doc, []any{"components", "schemas", "ItemRestInput", "properties", member, "type"}))
		if err != nil || string(got) != want {
			t.Errorf("%s is of the type %s, want %s (%v)", member, got, want, err)
		}
	}
}
