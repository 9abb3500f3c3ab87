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

// exchange tells whether a query is valid under GitHub's schema. The answer has the
// shape of the query by construction; only its status is judged.
func (g *grammar) exchange(e github.Exchange) error {
	if e.Status != http.StatusOK {
		return nil // limits and failures are not described
	}
	var asked struct {
		Query string `json:"query"`
	}
	if err := json.Unmarshal(e.Body, &asked); err != nil {
		return fmt.Errorf("read the query: %w", err)
	}
	if _, err := gqlparser.LoadQuery(g.schema, asked.Query); err != nil {
		return fmt.Errorf("the query is not one of GitHub's schema: %w", err)
	}
	return nil
}
