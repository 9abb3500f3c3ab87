package openapi_test

import (
	"context"
	"encoding/json"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/openapi"
	"yardmaster/internal/policy"
)

type shelfIn struct {
	Shelf string `json:"shelf" doc:"name of the shelf"`
	Order string `json:"order,omitempty" enum:"up,down" doc:"the order"`
}

// A generator makes a type of its own of a choice that is written under components, so that sharing
// it would change what its users write.
func TestOnlyPlainParametersAreShared(t *testing.T) {
	t.Parallel()
	list := func(context.Context, shelfIn) (op.Page[renamed], error) { return op.Page[renamed]{}, nil }
	var ops []op.Op
	for _, id := range []string{"box", "book", "cup"} {
		ops = append(ops, op.New(op.Row{ID: id + ".list", Method: "GET", Path: "/v1/" + id + "/{shelf}", Group: "Things",
			Rule: policy.Public(), Summary: "List"}, list))
	}
	text, err := openapi.Render(openapi.About{Title: "T", Groups: map[string]string{"box": "B.", "book": "B.", "cup": "C."}}, ops)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]struct {
			Get struct {
				Parameters []struct {
					Ref  string `json:"$ref"`
					Name string `json:"name"`
				} `json:"parameters"`
			} `json:"get"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	is := doc.Paths["/v1/cup/{shelf}"].Get.Parameters
	if len(is) != 2 || is[0].Ref != "#/components/parameters/shelf-name-of-the-shelf" || is[1].Name != "order" {
		t.Errorf("the parameters are %v, want one that is shared, and the choice as it is", is)
	}
}
