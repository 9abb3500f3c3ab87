package config

import (
	"fmt"
	"io"
	"strings"
)

// Print writes the effective configuration: one setting and its source on each line.
// Secrets are masked.
func (c *Config) Print(w io.Writer) {
	for _, s := range c.settings() {
		v := fmt.Sprint(s.value.Interface())
		if s.secret && v != "" && !strings.HasPrefix(v, "sqlite:") && !c.plainBlob(v) {
			v = "(set)"
		}
		fmt.Fprintf(w, "%-23s %-44q # %s\n", s.key+":", v, c.sources[s.key])
	}
}
