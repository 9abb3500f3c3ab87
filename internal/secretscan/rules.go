package secretscan

import (
	_ "embed"
	"regexp"
	"strings"
	"sync"
)

//go:embed rules.tsv
var ruleFile string

// rule is one line of the rule file.
type rule struct {
	name  string
	shape func() *regexp.Regexp // compiled when a text first contains one of the rule's words
}

// index finds the rules whose words a text contains.
type index struct {
	rules  []rule
	starts [256][]word // by first byte
}

type word struct {
	text string
	rule int
}

var rules = sync.OnceValue(func() *index {
	x := &index{}
	for line := range strings.Lines(ruleFile) {
		columns := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(columns) != 3 || strings.HasPrefix(line, "#") {
			continue
		}
		for _, w := range strings.Fields(columns[1]) {
			x.starts[w[0]] = append(x.starts[w[0]], word{w, len(x.rules)})
		}
		shape := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(columns[2]) })
		x.rules = append(x.rules, rule{columns[0], shape})
	}
	return x
})

// of returns the rules that text could match, in the order of the file.
func (x *index) of(text string) (out []rule) {
	var has []bool
	lower := strings.ToLower(text)
	for i := range len(lower) {
		for _, w := range x.starts[lower[i]] {
			if strings.HasPrefix(lower[i:], w.text) {
				if has == nil {
					has = make([]bool, len(x.rules))
				}
				has[w.rule] = true
			}
		}
	}
	for i, yes := range has {
		if yes {
			out = append(out, x.rules[i])
		}
	}
	return out
}

// scrub replaces the matches of a rule.
func (r rule) scrub(s string) string {
	var b strings.Builder
	end := 0
	for _, at := range r.shape().FindAllStringSubmatchIndex(s, -1) {
		from, to := at[0], at[1]
		if len(at) > 2 && at[2] >= 0 {
			from, to = at[2], at[3]
		}
		b.WriteString(s[end:from])
		b.WriteString(Mark)
		end = to
	}
	return b.String() + s[end:]
}
