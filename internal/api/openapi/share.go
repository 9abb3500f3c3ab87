package openapi

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"yardmaster/internal/api/op"
	"yardmaster/internal/fault"
)

// shared are the answers and inputs that many operations have, each written once and referred to.
type shared struct{ responses, parameters object }

// refuse returns a reference to the response with which the row refuses for one of the slugs.
// Responses are named after what tells them apart: the kind, its further slugs, and the scopes or the
// input that the example names.
func (d *schemas) refuse(o *op.Op, status int, slugs []string) object {
	kind := kindOf(status)
	slugs = slices.Sorted(slices.Values(slugs))
	if i := slices.Index(slugs, kind.Slug()); i > 0 { // first what any call may be refused for
		slugs = slices.Insert(slices.Delete(slugs, i, i+1), 0, kind.Slug())
	}
	parts := []string{typeName(strings.ReplaceAll(kind.Slug(), "-", "_"))}
	if len(slugs) > 1 || slugs[0] != kind.Slug() {
		parts = append(parts, slugs...)
	}
	if slices.Contains(slugs, "missing-scope") {
		parts = append(parts, o.Rule.Names()...)
	}
	if field := faulty(o); slugs[0] == fault.Invalid.Slug() && field != "" {
		parts = append(parts, field)
	}
	name := strings.ReplaceAll(strings.Join(parts, "."), ":", "-")
	if d.shared.responses[name] == nil {
		d.shared.responses[name] = d.refusal(o, kind, slugs)
	}
	return object{"$ref": "#/components/responses/" + name}
}

func kindOf(status int) fault.Kind {
	for _, k := range fault.Kinds() {
		if k.Status() == status {
			return k
		}
	}
	return fault.Internal
}

// common are the inputs that mean the same in each operation that has them.
var common = []string{op.KeyHeader, "Last-Event-ID", "cursor", "q", "owner", "repo"}

// share returns a reference to a parameter that many operations have, and any other as it is.
func (d *schemas) share(p object) object {
	name := fmt.Sprint(p["name"])
	if !slices.Contains(common, name) {
		return p
	}
	if d.shared.parameters[name] == nil {
		d.shared.parameters[name] = p
	}
	if !reflect.DeepEqual(d.shared.parameters[name], p) {
		return p
	}
	return object{"$ref": "#/components/parameters/" + name}
}
