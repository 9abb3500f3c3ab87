package openapi

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/google/jsonschema-go/jsonschema"

	"yardmaster/internal/api/op"
	"yardmaster/internal/fault"
)

// shared are the answers, inputs and examples that many operations have, each written once and
// referred to.
type shared struct{ responses, parameters, examples object }

// refuse returns a reference to the response with which rows refuse for one of the slugs. Responses
// are named after what tells them apart: the kind, and its further slugs.
func (d *schemas) refuse(status int, slugs []string) object {
	kind := kindOf(status)
	slugs = slices.Sorted(slices.Values(slugs))
	if i := slices.Index(slugs, kind.Slug()); i > 0 { // first what any call may be refused for
		slugs = slices.Insert(slices.Delete(slugs, i, i+1), 0, kind.Slug())
	}
	parts := []string{typeName(strings.ReplaceAll(kind.Slug(), "-", "_"))}
	if len(slugs) > 1 || slugs[0] != kind.Slug() {
		parts = append(parts, slugs...)
	}
	name := strings.Join(parts, ".")
	if d.shared.responses[name] == nil {
		d.shared.responses[name] = d.refusal(kind, slugs)
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

// example returns a reference to the example of a problem, which has the name of its slug.
func (d *schemas) example(kind fault.Kind, slug string) object {
	name, e := slug, object{"value": d.problem(kind, slug)}
	if was := d.shared.examples[name]; was != nil && !reflect.DeepEqual(was, e) { // several kinds have the slug
		name += "." + strconv.Itoa(kind.Status())
	}
	d.shared.examples[name] = e
	return object{"$ref": "#/components/examples/" + name}
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

// often is how many operations have a parameter that is written once.
const often = 3

// plain says whether a generator needs no type of its own for a parameter: it has one for what is
// written under components, and a list, a choice or an object would change its name there.
func plain(p object) bool {
	s, ok := p["schema"].(*jsonschema.Schema)
	return ok && slices.Contains([]string{"string", "integer", "number", "boolean"}, s.Type) && len(s.Enum) == 0
}

// gather has those parameters written once that are often the same and plain.
func (d *schemas) gather(paths map[string]object) error {
	uses := map[string][]*object{}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		for _, method := range slices.Sorted(maps.Keys(paths[path])) {
			x, _ := paths[path][method].(object)
			params, _ := x["parameters"].([]object)
			for i, p := range params {
				if !plain(p) {
					continue
				}
				text, err := json.Marshal(p, json.Deterministic(true))
				if err != nil {
					return err
				}
				uses[string(text)] = append(uses[string(text)], &params[i])
			}
		}
	}
	for _, text := range slices.Sorted(maps.Keys(uses)) {
		all := uses[text]
		name := paramName(*all[0])
		if len(all) < often || len(name) > 50 || d.shared.parameters[name] != nil {
			continue
		}
		d.shared.parameters[name] = *all[0]
		for _, p := range all {
			*p = object{"$ref": "#/components/parameters/" + name}
		}
	}
	return nil
}

// paramName is the name of a shared parameter: id-of-the-task, per_page-25.
func paramName(p object) string {
	name, says := fmt.Sprint(p["name"]), fmt.Sprint(p["description"])
	if s, ok := p["schema"].(*jsonschema.Schema); ok && s.Default != nil {
		return name + "-" + string(s.Default)
	}
	if !strings.HasPrefix(says, name+" ") {
		says = name + " " + says
	}
	words := strings.FieldsFunc(says, func(r rune) bool {
		return r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
	return strings.Join(words, "-")
}
