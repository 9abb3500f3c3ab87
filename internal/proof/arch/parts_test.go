package arch

import (
	"path"
	"strings"
)

// parts lists what packages of one domain may import of each other: arrows point down there, too.
var parts = map[string]string{
	"domain/pull":        "domain/pull/moves domain/pull/record",
	"domain/pull/record": "domain/pull/moves",
}

// domainOf is the domain that a package is of or a part of, say domain/pull.
func domainOf(pkg string) string {
	for path.Dir(pkg) != "domain" && strings.HasPrefix(pkg, "domain/") {
		pkg = path.Dir(pkg)
	}
	return pkg
}
