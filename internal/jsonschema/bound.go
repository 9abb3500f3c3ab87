package jsonschema

import (
	"fmt"
	"maps"
	"net/url"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

// bound returns an error for a schema that could cost too much, or that refers to
// others. It removes formats, which draft-07 would assert.
func bound(doc map[string]any) error {
	w := walk{}
	if err := w.visit(doc, "", 1); err != nil {
		return err
	}
	_, err := w.weigh("")
	return err
}

// walk holds the subschemas of a schema by JSON pointer.
type walk map[string]*part

// part is one subschema with the pointers of its subschemas and references.
type part struct {
	of     []string
	self   weight
	sum    weight // with all its parts; zero until weighed
	onPath bool
}

// weight is the cost of a schema.
type weight struct {
	parts    int // number of schemas
	patterns int // steps of regular expressions
}

// The keywords whose values contain subschemas. Other keywords have none.
var (
	oneSchema = []string{"additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not",
		"propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}
	manySchemas = []string{"$defs", "allOf", "anyOf", "definitions", "dependencies", "dependentSchemas", "items", "oneOf",
		"patternProperties", "prefixItems", "properties"}
	// moving lists keywords that make a reference lead elsewhere than it says.
	moving = []string{"$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef"}
)

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// visit collects the parts of a subschema.
func (w walk) visit(schema any, at string, depth int) error {
	if depth > MaxDepth {
		return fmt.Errorf("must not be more than %d schemas deep", MaxDepth)
	}
	p := &part{self: weight{parts: 1}}
	w[at] = p
	keywords, _ := schema.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(keywords)) {
		value := keywords[name]
		place := at + "/" + pointerEscapes.Replace(name)
		if slices.Contains(moving, name) || name == "$id" && at != "" {
			return fmt.Errorf("has %s, which is not taken here", place)
		}
		text, isText := value.(string)
		switch {
		case name == "$ref":
			target, err := url.PathUnescape(strings.TrimPrefix(text, "#"))
			if !strings.HasPrefix(text, "#") || err != nil || target != "" && !strings.HasPrefix(target, "/") {
				return fmt.Errorf("has a %s that leads out of it; write #/$defs/name", place)
			}
			p.of = append(p.of, target)
		case name == "format" && isText:
			delete(keywords, name)
		case name == "pattern":
			p.self.patterns += steps(text)
		}
		inner := subschemas(name, value)
		for _, key := range slices.Sorted(maps.Keys(inner)) {
			of := place
			if key != "" {
				of += "/" + pointerEscapes.Replace(key)
			}
			if name == "patternProperties" {
				p.self.patterns += steps(key)
			}
			p.of = append(p.of, of)
			if err := w.visit(inner[key], of, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// subschemas returns the schemas in a keyword's value, by the part of the pointer
// after the keyword.
func subschemas(name string, value any) map[string]any {
	many := slices.Contains(manySchemas, name)
	switch v := value.(type) {
	case map[string]any:
		if many && name != "items" {
			inner := maps.Clone(v)
			// Dependencies may have lists of names instead of schemas.
			maps.DeleteFunc(inner, func(_ string, s any) bool { _, names := s.([]any); return names })
			return inner
		}
	case []any:
		inner := map[string]any{}
		for i, s := range v {
			if many {
				inner[strconv.Itoa(i)] = s
			}
		}
		return inner
	}
	if slices.Contains(oneSchema, name) {
		return map[string]any{"": value}
	}
	return nil
}

// weigh returns the cost of a part. It returns an error if the part contains
// itself.
func (w walk) weigh(at string) (weight, error) {
	p := w[at]
	switch {
	case p == nil:
		return weight{}, fmt.Errorf("refers to #%s, where there is no schema", at)
	case p.onPath:
		return weight{}, fmt.Errorf("refers to #%s from within; a result schema cannot be recursive", at)
	case p.sum.parts > 0:
		return p.sum, nil
	}
	p.onPath = true
	sum := p.self
	for _, of := range p.of {
		n, err := w.weigh(of)
		if err != nil {
			return weight{}, err
		}
		sum.parts += n.parts
		sum.patterns += n.patterns
		if sum.parts > MaxParts {
			return weight{}, fmt.Errorf("must not be of more than %d schemas, each reference counted as what it refers to", MaxParts)
		}
	}
	if sum.patterns > MaxPatterns {
		return weight{}, fmt.Errorf("must not have regular expressions of more than %d steps in all, "+
			"a repetition counted as often as it may repeat", MaxPatterns)
	}
	p.onPath, p.sum = false, sum
	return sum, nil
}

// steps returns the approximate length of a regular expression's program. It is 0
// for an invalid expression, which is refused elsewhere.
func steps(pattern string) int {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0
	}
	return length(re)
}

func length(re *syntax.Regexp) int {
	n := 1
	switch re.Op {
	case syntax.OpLiteral:
		n = len(re.Rune)
	case syntax.OpCharClass:
		n += len(re.Rune) / 64 // matching searches the ranges
	}
	for _, sub := range re.Sub {
		n += length(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Max, re.Min, 1)
	}
	return n
}
