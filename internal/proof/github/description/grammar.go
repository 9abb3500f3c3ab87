package description

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"yardmaster/internal/proof/github"
	"yardmaster/internal/proof/github/description/source"
)

// grammar judges GraphQL.
type grammar struct{ schema *ast.Schema }

func loadGrammar(ctx context.Context) (*grammar, error) {
	at, err := source.File(ctx, "schema.graphql")
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(at)
	if err != nil {
		return nil, err
	}
	document, err := parser.ParseSchemas(validator.Prelude, &ast.Source{Name: "schema.graphql", Input: string(text)})
	if err != nil {
		return nil, fmt.Errorf("read the GraphQL schema: %w", err)
	}
	// GitHub's schema defines a member of EnterpriseOwnerInfo twice.
	for _, d := range document.Definitions {
		seen := map[string]bool{}
		d.Fields = slices.DeleteFunc(d.Fields, func(f *ast.FieldDefinition) bool {
			again := seen[f.Name]
			seen[f.Name] = true
			return again
		})
	}
	schema, err := validator.ValidateSchemaDocument(document)
	if err != nil {
		return nil, fmt.Errorf("read the GraphQL schema: %w", err)
	}
	return &grammar{schema}, nil
}

// exchange tells whether a query is valid under GitHub's schema, and its answer is one
// to it. Where the answer has an error, null is allowed.
func (g *grammar) exchange(e github.Exchange) error {
	if e.Status != http.StatusOK {
		return nil // limits and failures are not described
	}
	var asked struct {
		Query         string `json:"query"`
		OperationName string `json:"operationName"`
	}
	if err := json.Unmarshal(e.Body, &asked); err != nil {
		return fmt.Errorf("read the query: %w", err)
	}
	query, wrong := gqlparser.LoadQueryWithRules(g.schema, asked.Query, rules.NewDefaultRules())
	if wrong != nil {
		return fmt.Errorf("the query is not one of GitHub's schema: %w", wrong)
	}
	var answered struct {
		Data   map[string]any `json:"data"`
		Errors []any          `json:"errors"`
	}
	if err := json.Unmarshal(e.Answer, &answered); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if len(answered.Errors) > 0 {
		return nil
	}
	operation := query.Operations.ForName(asked.OperationName)
	if operation == nil {
		return fmt.Errorf("the query has no operation %q", asked.OperationName)
	}
	return g.object(operation.SelectionSet, answered.Data, "")
}

// object judges the members of an object.
func (g *grammar) object(set ast.SelectionSet, value map[string]any, path string) error {
	kind, _ := value["__typename"].(string)
	for _, one := range set {
		switch v := one.(type) {
		case *ast.Field:
			got, there := value[v.Alias]
			if !there {
				return fmt.Errorf("%s/%s is missing", path, v.Alias)
			}
			if err := g.value(v.Definition.Type, v.SelectionSet, got, path+"/"+v.Alias); err != nil {
				return err
			}
		case *ast.InlineFragment:
			if len(v.SelectionSet) > 0 && (kind == "" || kind == v.TypeCondition) && present(v.SelectionSet, value) {
				if err := g.object(v.SelectionSet, value, path); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// present tells whether the object has a member of a fragment: without __typename that
// is how a fragment of another type is known.
func present(set ast.SelectionSet, value map[string]any) bool {
	return slices.ContainsFunc(set, func(s ast.Selection) bool {
		f, ok := s.(*ast.Field)
		return ok && value[f.Alias] != nil
	})
}

// value judges a value by its type.
func (g *grammar) value(t *ast.Type, set ast.SelectionSet, value any, path string) error {
	if value == nil {
		if t.NonNull {
			return fmt.Errorf("%s is null, and %s may not be", path, t)
		}
		return nil
	}
	if t.Elem != nil {
		list, ok := value.([]any)
		if !ok {
			return fmt.Errorf("%s is no list", path)
		}
		for i, one := range list {
			if err := g.value(t.Elem, set, one, fmt.Sprintf("%s/%d", path, i)); err != nil {
				return err
			}
		}
		return nil
	}
	var ok bool
	switch d := g.schema.Types[t.NamedType]; {
	case d.Kind == ast.Enum:
		text, _ := value.(string)
		ok = d.EnumValues.ForName(text) != nil
	case t.NamedType == "Int" || t.NamedType == "Float":
		_, ok = value.(float64)
	case t.NamedType == "Boolean":
		_, ok = value.(bool)
	case d.Kind == ast.Scalar:
		_, ok = value.(string)
	default:
		var members map[string]any
		if members, ok = value.(map[string]any); ok {
			return g.object(set, members, path)
		}
	}
	if !ok {
		return fmt.Errorf("%s is %v, and no %s", path, value, t)
	}
	return nil
}
