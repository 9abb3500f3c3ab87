package config

import (
	"errors"
	"strings"

	"go.yaml.in/yaml/v3"
)

// text is a value of the file in the form of a flag: a list is joined by commas. An
// empty value is not set.
func text(n *yaml.Node) (v string, set bool, err error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch n.Kind {
	case yaml.ScalarNode:
		return n.Value, n.Tag != "!!null", nil
	case yaml.SequenceNode:
		var parts []string
		for _, e := range n.Content {
			part, _, err := text(e)
			if err != nil {
				return "", false, err
			}
			parts = append(parts, part)
		}
		return strings.Join(parts, ","), true, nil
	}
	return "", false, errors.New("must be a value or a list of values")
}
