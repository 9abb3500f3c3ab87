package run

import (
	"regexp"
	"slices"
	"strings"
)

var citation = regexp.MustCompile(`\b((?:[\w.-]+/)*[\w-]+(?:\.[\w-]+)+):(\d+(?:-\d+)?)\b`)

// survey reads the context out of a scout's report: its first line of prose
// and the files it cites, in the order of their first mention.
func survey(repo, report string) *ScoutContext {
	c := &ScoutContext{Repo: repo, Files: []ScoutFile{}}
	for line := range strings.Lines(report) {
		line = strings.TrimSpace(strings.TrimLeft(line, "#>*- "))
		if line != "" {
			c.Summary = line
			break
		}
	}
	for _, m := range citation.FindAllStringSubmatch(report, -1) {
		i := slices.IndexFunc(c.Files, func(f ScoutFile) bool { return f.Path == m[1] })
		if i < 0 {
			i = len(c.Files)
			c.Files = append(c.Files, ScoutFile{Path: m[1], Citations: []string{}})
		}
		if !slices.Contains(c.Files[i].Citations, m[0]) {
			c.Files[i].Citations = append(c.Files[i].Citations, m[0])
		}
	}
	return c
}
