package arch

import (
	"path"
	"strings"
)

// parts lists what packages of one domain may import of each other, where arrows point down, too,
// and which of the domains that theirs may import. The table of moves imports nothing.
var parts = map[string]string{
	"domain/pull":         "domain/pull/babysit domain/pull/facts domain/pull/merge domain/pull/moves domain/pull/record domain/pull/trial",
	"domain/pull/babysit": "domain/pull/facts domain/pull/moves domain/pull/record domain/repo",
	"domain/pull/merge":   "domain/pull/facts domain/pull/moves domain/pull/record domain/pull/trial domain/intent domain/repo",
	"domain/pull/facts":   "domain/pull/moves domain/pull/record domain/repo",
	"domain/pull/trial":   "domain/pull/record domain/repo",
	"domain/pull/record":  "domain/pull/moves domain/repo",
}

// domainOf is the domain that a package is of or a part of, say domain/pull.
func domainOf(pkg string) string {
	for path.Dir(pkg) != "domain" && strings.HasPrefix(pkg, "domain/") {
		pkg = path.Dir(pkg)
	}
	return pkg
}
