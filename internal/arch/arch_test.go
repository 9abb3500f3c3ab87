package arch

import (
	"go/ast"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// edges is what each package may import of this module. Arrows point down:
// cmd, demo -> app -> domain/* -> foundation -> fault.
var edges = map[string]string{
	"fault":           "",
	"id":              "",
	"inert":           "",
	"idempotency":     "db event fault id op",
	"limit":           "",
	"limit/redistest": "",
	"leak":            "",
	"money":           "",
	"durable":         "",
	"seal":            "durable",
	"protocol":        "",
	"config":          "",
	"client":          "inert",
	"policy":          "fault",
	"ration":          "",
	"db/migrations":   "",
	"db":              "db/migrations fault",
	"db/dbtest":       "db db/migrations",
	"op":              "fault id limit policy",
	"chain":           "",
	"clock":           "db protocol",
	"page":            "fault op",
	"reference":       "",
	"event":           "chain db id policy",
	"mcp":             "fault op policy",
	"keys":            "db seal",
	"lease":           "db id",
	"mail":            "db event id keys seal",
	"notary":          "chain db durable event seal",
	"bus":             "fault protocol",
	"bus/boxconn":     "fault protocol",
	"bus/hostile":     "",

	"idp": "fault id",

	"codehost":         "fault",
	"codehost/builtin": "codehost fault ration",
	"llm":              "fault",
	"llm/scripted":     "",

	// The machine side. It shares the wire with the server, not its rooms.
	"agent":            "agent/broker agent/driver agent/exposure agent/limits agent/modelproxy agent/sandbox agent/scrub agent/selftest agent/spool agent/worktree bus/boxconn client fault id protocol seal",
	"agent/acp":        "",
	"agent/broker":     "agent/scrub",
	"agent/builtin":    "agent/acp",
	"agent/driver":     "agent/acp",
	"agent/exposure":   "",
	"agent/limits":     "",
	"agent/modelproxy": "fault llm",
	"agent/sandbox":    "",
	"agent/selftest":   "",
	"agent/scrub":      "",
	"agent/spool":      "agent/scrub protocol",
	"agent/worktree":   "ration",

	// The browser's side of getting a token.
	"oauth": "db domain/token event fault id op page policy seal",

	"app":            "domain/* bus chain clock codehost codehost/builtin config db event fault id idempotency idp keys lease limit llm llm/scripted mail mcp money notary oauth op page policy protocol reference seal",
	"demo":           "agent app client config",
	"chaos":          "agent chaos/astray client",
	"chaos/astray":   "",
	"cmd/yardmaster": "agent agent/builtin app chain chaos chaos/astray client config demo mail seal",
	"arch":           "",
	"e2e":            "",
	"sbom":           "",

	"e2e/environments": "",
}

// foundation is what any domain may import.
const foundation = "clock codehost db event fault id idp inert keys leak llm mail money op page policy protocol seal"

// between are the domains that build on another one, and why a function wired
// in app would not do.
var between = map[string]string{
	"domain/ask -> domain/escalation":    "an ask is handed to a person in one transaction",
	"domain/task -> domain/escalation":   "a task that its caller is unsure of becomes a question instead, in one transaction",
	"domain/run -> domain/task":          "a run is a try of a task: claiming moves both in one transaction",
	"domain/plan -> domain/task":         "approving a plan mints the tasks of all its groups in one transaction",
	"domain/pull -> domain/repo":         "a pull request is read and decided with its repository's policy",
	"domain/session -> domain/budget":    "a call is set aside for before it is made, and settled with its account",
	"domain/session -> domain/billing":   "the gateway spends the account's keys, call by call",
	"domain/account -> domain/grant":     "an account and a person are shown with what they were given",
	"domain/signin -> domain/account":    "X-Svc-Account names an account the user belongs to",
	"domain/signin -> domain/token":      "a presented token becomes an actor",
	"domain/sso -> domain/signin":        "who is vouched for elsewhere enters like everybody, and fails on the same page",
	"domain/access -> domain/invitation": "an applicant is decided about and invited in one transaction",
	"domain/member -> domain/invitation": "a member is invited in one transaction",
	"domain/repo -> codehost/builtin":    "the built-in host asks the domain who may read and push",
}

// measuring is the package that weighs the program and its parts against
// baselines. It may use anything; nothing may use it.
const measuring = "bench"

func TestImports(t *testing.T) {
	used := map[string]bool{}
	for _, f := range product(t) {
		from := f.pkg()
		if from == measuring {
			continue
		}
		allowed, known := edges[from]
		domain := strings.HasPrefix(from, "domain/")
		if domain {
			allowed, known = foundation, true
		}
		if !known {
			t.Errorf("%s: %s is in no table; say what it may import", f.path, from)
		}
		for _, imp := range f.imports() {
			to, own := strings.CutPrefix(imp, "own:")
			if !own {
				continue
			}
			edge := from + " -> " + to
			used[edge] = true
			if between[edge] != "" {
				continue
			}
			if !slices.ContainsFunc(strings.Fields(allowed), func(glob string) bool {
				ok, _ := path.Match(glob, to)
				return ok
			}) {
				t.Errorf("%s: %s is not allowed", f.path, edge)
			}
		}
	}
	for edge := range between {
		if !used[edge] {
			t.Errorf("%q is in the table but not in the program: remove it", edge)
		}
	}
	for from, list := range edges {
		for _, to := range strings.Fields(list) {
			if !strings.Contains(to, "*") && !used[from+" -> "+to] {
				t.Errorf("%s may import %s, and does not: remove it from the table", from, to)
			}
		}
	}
}

// importers are the packages whose files match, with the files.
func importers(t *testing.T, match func(file) bool) map[string][]string {
	users := map[string][]string{}
	for _, f := range product(t) {
		if f.pkg() != measuring && match(f) {
			users[f.pkg()] = append(users[f.pkg()], path.Base(f.path))
		}
	}
	return users
}

func imports(p string) func(file) bool {
	return func(f file) bool { return slices.Contains(f.imports(), p) }
}

func TestHTTP(t *testing.T) {
	exceptions(t, "imports net/http", importers(t, imports("net/http")), map[string]string{
		"op":               "serves the capabilities",
		"mcp":              "names the statuses of protocol errors",
		"notary":           "tells a webhook of audit heads",
		"app":              "serves the whole program",
		"client":           "calls the API",
		"codehost/builtin": "speaks git over HTTP",
		"idp":              "asks identity providers",
		"llm":              "is the gateway to model providers",
		"llm/scripted":     "is a model provider, to the gateway",
		"agent":            "enrolls over HTTP and serves its agents a model",
		"agent/broker":     "adds secrets to requests",
		"agent/builtin":    "calls a model",
		"agent/modelproxy": "stands between agents and the gateway",
		"agent/selftest":   "asks the proxies of a box",
		"demo":             "names methods to client",
		"chaos":            "names methods to client and gives its calls keys",
		"cmd/yardmaster":   "names methods to client",
	})
}

func TestSQL(t *testing.T) {
	exceptions(t, "imports database/sql", importers(t, imports("database/sql")), map[string]string{
		"db":        "is the door to the databases",
		"db/dbtest": "prepares what db declares",
		"chaos":     "reads what a stopped server has stored",
	})
	statement := regexp.MustCompile(`^\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH)\s`)
	for _, f := range product(t) {
		base := path.Base(f.path)
		switch {
		case (strings.HasPrefix(f.pkg(), "domain/") || f.pkg() == "oauth") && strings.HasPrefix(base, "store"):
			continue
		case f.pkg() == "db" || f.pkg() == "db/dbtest" || f.pkg() == measuring || f.pkg() == "chaos":
			continue
		case f.path == "internal/idempotency/store.go": // it serves every domain
			continue
		case f.path == "internal/clock/store.go": // what waits, waits in every domain
			continue
		case f.path == "internal/app/keys.go": // the keys of the installation are nobody's domain
			continue
		case f.path == "internal/lease/store.go": // servers are nobody's domain
			continue
		case f.path == "internal/keys/store.go": // sealed values are in every domain
			continue
		case f.path == "internal/notary/store.go": // the record is every domain's
			continue
		case f.path == "internal/mail/store.go": // the outbox is nobody's domain
			continue
		case f.path == "internal/event/audit.go": // audit rows are written for every domain
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil && statement.MatchString(text) {
					t.Errorf("%s holds a statement, which belongs in a store.go: %.60s", f.path, text)
				}
			}
			return true
		})
	}
}

func TestClock(t *testing.T) {
	users := importers(t, func(f file) bool { return f.uses("time", "Now", "Since", "Until") })
	maps.DeleteFunc(users, func(pkg string, _ []string) bool { return strings.HasPrefix(pkg, "agent") })
	exceptions(t, "reads the clock", users, map[string]string{
		"db":               "gives every transaction its time",
		"app":              "hands the clock to those who are given one",
		"op":               "measures requests and sets deadlines of sockets",
		"codehost/builtin": "sets deadlines of sockets",
		"llm":              "sets deadlines of sockets and knows how long they are idle",
		"bus":              "dates credentials and paces boxes",
		"bus/hostile":      "waits for an attack to show",
		"domain/run":       "measures how long events take to be stored",
		"clock":            "notices that it was set",
		"demo":             "prints how long the steps took",
		"chaos":            "harms at times of its own, outside of what it harms",
	})
}

func TestRandomness(t *testing.T) {
	exceptions(t, "draws randomness", importers(t, imports("crypto/rand")), map[string]string{
		"id":             "makes ids and tokens",
		"seal":           "makes keys and salts",
		"agent/builtin":  "names its sessions, which no server knows",
		"agent/sandbox":  "marks what is outside of a sandbox, so that it is known again inside",
		"agent/worktree": "names refs that must not collide in the cache",
		"demo":           "makes the password of a throwaway owner",
		"chaos":          "makes the secrets that it looks for",
	})
}

func TestPackageComments(t *testing.T) {
	said := map[string]int{}
	for _, f := range files(t) {
		if f.tree.Doc == nil || f.test {
			continue
		}
		said[f.pkg()]++
		begin := "Package " + f.tree.Name.Name + " "
		if f.tree.Name.Name == "main" {
			begin = ""
		}
		if text := f.tree.Doc.Text(); !strings.HasPrefix(text, begin) || len(text) < 80 {
			t.Errorf("%s: the comment must begin with %q and tell a newcomer what the room is for", f.path, begin)
		}
	}
	for _, p := range packages(product(t)) {
		if said[p] != 1 {
			t.Errorf("%s has %d package comments, not 1", p, said[p])
		}
		switch path.Base(p) {
		case "util", "utils", "common", "helper", "helpers", "manager", "misc":
			t.Errorf("%s: a package is named for what it is about", p)
		}
	}
}

// longest is the most lines a hand-written file may have.
const longest = 500

func TestFileLength(t *testing.T) {
	generated := regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	for _, f := range files(t) {
		if n := lines(f.text); n > longest && !generated.Match(f.text) {
			t.Errorf("%s has %d lines; split it by concern", f.path, n)
		}
	}
}

// spared are files that a domain does without.
var spared = map[string]string{
	"domain/service/store.go": "it answers for the process and stores nothing",
}

func TestDomainLayout(t *testing.T) {
	have := map[string]file{}
	for _, f := range product(t) {
		have[strings.TrimPrefix(f.path, "internal/")] = f
	}
	for _, p := range packages(product(t)) {
		if !strings.HasPrefix(p, "domain/") {
			continue
		}
		noun := path.Base(p)
		for _, name := range []string{noun + ".go", "ops.go", "store.go"} {
			at := p + "/" + name
			f, ok := have[at]
			switch {
			case !ok && spared[at] == "":
				t.Errorf("%s is missing", at)
			case ok && spared[at] != "":
				t.Errorf("%s exists: remove it from the table", at)
			case ok && name == noun+".go" && f.tree.Doc == nil:
				t.Errorf("%s must hold the package comment", at)
			}
		}
	}
}

// left are what is never committed: notes to oneself, tests that do not test,
// paths of one person's machine.
var left = map[string]*regexp.Regexp{
	"a note to oneself":    regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`),
	"a skipped test":       regexp.MustCompile(`\b[tb]\.Skip(f|Now)?\(`),
	"a path of a machine":  regexp.MustCompile(`/(root|Users|work)/`),
	"a registry's address": regexp.MustCompile(`(proxy\.golang|registry\.npmjs|pypi)\.org`),
}

func TestNothingLeft(t *testing.T) {
	for _, f := range files(t) {
		for what, re := range left {
			if m := re.Find(f.text); m != nil && f.path != "internal/arch/arch_test.go" {
				t.Errorf("%s holds %s: %s", f.path, what, m)
			}
		}
		// In a bubble of synctest, sleeping is how time is made to pass.
		if f.test && f.uses("time", "Sleep") && !imports("testing/synctest")(f) {
			t.Errorf("%s sleeps: wait for a signal, or poll with a deadline", f.path)
		}
	}
}
