package arch

import (
	"regexp"
	"strings"
	"testing"

	"yardmaster/internal/db"
)

var (
	reposByName = regexp.MustCompile(`(?s)FROM repos\s.*\bowner = .*\bname = `)
	blanks      = regexp.MustCompile(`\s+`)
)

// An account may have a repository of one name at several hosts. A statement that
// finds a repository by its name says which of them it finds: that of a host, the one
// that is enabled, or the one that the name addresses.
func TestLookupsByNameFindOneRepository(t *testing.T) {
	found := 0
	for _, d := range db.Declared() {
		sql := blanks.ReplaceAllString(d.SQL, " ")
		if strings.Contains(d.At, "_test.go") || !reposByName.MatchString(sql) {
			continue
		}
		found++
		one := strings.Contains(sql, "host = $") || strings.HasSuffix(sql, "AND enabled") ||
			strings.HasSuffix(sql, "ORDER BY enabled DESC, created_at, id LIMIT 1")
		if !one {
			t.Errorf("%s finds a repository of a name at any host; order them as byName of domain/repo does: %s", d.At, sql)
		}
	}
	if found == 0 {
		t.Error("no statement finds a repository by its name: correct the pattern")
	}
}
