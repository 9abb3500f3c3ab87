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

// edges lists what each package may import of this module. Arrows point down: cmd,
// proof -> app -> domain/* -> foundation -> fault.
var edges = map[string]string{
	"fault":               "",
	"id":                  "",
	"client/inert":        "",
	"api/idempotency":     "api/op db event fault id observe",
	"api/limit":           "",
	"api/limit/drawn":     "api/limit db/nodes observe",
	"api/held":            "api/limit api/op fault",
	"api/limit/redistest": "proof/loopback proof/patience",
	"secretscan":          "",
	"jsonschema":          "",
	"minisign":            "",
	"version":             "",
	"gitlfs":              "",
	"gitmodules":          "",
	"flake":               "codehost lazy",
	"lazy":                "",
	"proxies":             "",
	"reach":               "",
	"citation":            "",
	"attestation":         "event/hashchain",
	"money":               "",
	"durable":             "",
	"seal":                "durable",
	"backup":              "durable",
	"departure":           "attestation db event id seal",
	"blob":                "durable fault observe seal",
	"protocol":            "",
	"config":              "dial",
	"client":              "client/inert lazy proxies terminal",
	"terminal":            "client/inert",
	"observe":             "",
	"observe/telemetry":   "observe",
	"policy":              "fault",
	"rlimit":              "",
	"child":               "",
	"db/migrations":       "",
	"db":                  "db/migrations durable fault",
	"db/dbtest":           "db db/migrations seal",
	"db/dbtest/cluster":   "db/dbtest",
	"api/op":              "api/limit client/inert fault observe policy",
	"api/rest":            "api/op fault id observe",
	"api/openapi":         "api/op fault policy",
	"event/hashchain":     "",
	"clock":               "db observe",
	"stencil":             "",
	"web":                 "api/op client/inert docs fault policy stencil",
	"docs":                "",
	"api/reference":       "lazy stencil",
	"event":               "db event/hashchain id observe policy",
	"api/mcp":             "api/op api/openapi fault observe policy",
	"seal/keys":           "db seal",
	"db/due":              "db event id observe policy",
	"db/due/duetest":      "db db/due event",
	"db/lease":            "db db/meta id observe",
	"db/nodes":            "db id observe",
	"db/meta":             "db seal/keys",
	"mail":                "client/inert db event id lazy observe seal seal/keys stencil",
	"event/notary":        "db db/meta durable event event/hashchain observe policy seal",
	"bus":                 "fault protocol",
	"box/conn":            "fault protocol",
	"bus/hostile":         "",
	"certificate":         "",
	"proof/acme":          "",

	"idp":               "dial fault id",
	"dial":              "",
	"hook":              "client/inert dial secretscan",
	"remote":            "rlimit",
	"remote/remotetest": "",
	"webpush":           "dial",
	"webpush/pushtest":  "webpush",

	"inbound": "client/inert secretscan",
	"linear":  "", "stripe": "", "bundle": "lazy minisign version",

	"codehost":         "fault lazy",
	"codehost/builtin": "codehost codehost/gitfolder codehost/smarthttp fault observe unixfile",
	"codehost/homes":   "codehost codehost/builtin fault",
	"llm":              "fault llm/answer llm/frames observe",
	"llm/answer":       "lazy", "llm/frames": "",
	"llm/scripted": "",
	"llm/sink":     "box/scrub dial fault id lazy llm llm/answer secretscan",

	"codehost/gitfolder": "codehost fault rlimit",
	"codehost/github":    "codehost codehost/gitfolder codehost/pace fault lazy",
	"codehost/pace":      "codehost",
	"codehost/relay":     "codehost codehost/smarthttp fault gitlfs lazy observe",
	"codehost/smarthttp": "codehost fault lazy observe",
	"codehost/hosttest":  "codehost fault",

	"flow": "codehost db domain/* domain/pull/babysit domain/pull/merge domain/pull/record event fault id inbound llm mail money " +
		"policy protocol reach seal",
	"needs": "",

	"calendar": "",

	// The packages of the box. They share the wire with the server, not its packages.
	"box": "gitmodules lazy proxies box/broker box/conn box/driver box/exposure box/limits box/modelproxy box/prepared box/program box/roots box/sandbox box/scrub box/selftest " +
		"box/spool box/worktree client fault id minisign protocol seal unixfile",
	"box/acp":      "",
	"box/broker":   "box/gate box/scrub",
	"box/coder":    "box/acp lazy llm/answer version",
	"box/driver":   "box/acp version",
	"box/exposure": "", "box/gate": "", "box/prepared": "box/worktree",
	"box/limits":     "unixfile",
	"unixfile":       "",
	"box/modelproxy": "box/gate fault llm",
	"box/program":    "child minisign protocol unixfile version",
	"box/roots":      "", "box/selftest": "",
	"box/sandbox":  "child",
	"box/scrub":    "",
	"box/spool":    "box/scrub protocol",
	"box/worktree": "gitlfs gitmodules lazy rlimit unixfile",

	"app": "backup bundle certificate proxies api/held api/idempotency api/limit api/limit/drawn api/mcp api/op api/openapi api/reference api/rest " +
		"blob bus clock codehost codehost/builtin codehost/github codehost/homes codehost/pace codehost/relay config db db/due db/lease db/meta " +
		"db/nodes departure dial durable " +
		"domain/* domain/pull/merge domain/pull/record event event/hashchain " +
		"unixfile event/notary fault flow hook id idp linear llm " +
		"llm/scripted mail observe observe/telemetry policy remote rlimit seal seal/keys secretscan stripe web webpush",
	"demo":                 "app box child client config",
	"proof/lab":            "app cli/machine demo proof/chaos proof/chaos/astray proof/github",
	"proof/chaos":          "box child client proof/chaos/astray proof/loopback",
	"proof/chaos/astray":   "",
	"cmd/yardmaster":       "cli cli/machine cmd/yardmaster/early",
	"cmd/yardmaster/early": "",
	"cmd/yardmaster-lab":   "cli cli/machine proof/lab",

	"proof/arch": "",
	"proof/e2e":  "",
	"proof/sbom": "",

	"proof/e2e/environments": "",
	"proof/document":         "",
	"proof/frontdoor":        "",
	"proof/github":           "id lazy",

	"proof/github/description":        "proof/github proof/github/description/source proof/npm",
	"proof/github/description/get":    "proof/github/description/source",
	"proof/github/description/source": "proof/npm",

	"proof/npm":      "proof/cache",
	"proof/cache":    "",
	"proof/gate":     "proof/cache",
	"proof/patience": "",
	"proof/chance":   "",
	"proof/browser":  "proof/patience",
	"proof/loopback": "",
	"proof/program":  "", "proof/till": "", "proof/writers": "", "proof/executable": "",
	"proof/odd":      "",
	"proof/estate":   "proof/loopback proof/patience",
	"proof/bundle":   "proof/npm",
	"proof/parts":    "proof/browser proof/npm",
	"proof/smallbox": "box",

	"proof/provider": "id",
	"proof/recorded": "",
	"proof/seed":     "db",
	"proof/standin":  "db domain/budget domain/measure domain/queue domain/task event",
	"proof/rig": "box box/coder client config db db/dbtest domain/blocker domain/task domain/token id policy proof/loopback " +
		"proof/patience protocol",
	"proof/transcript": "api/mcp api/op app codehost config db db/dbtest domain/* event id mail policy proof/document proof/github " +
		"proof/github/description proof/provider proof/rig proof/seed remote/remotetest",
}

// foundation lists what any domain may import. All other domains build on the rows of people.
const foundation = "api/limit api/op attestation blob calendar citation client/inert clock codehost codehost/pace codehost/smarthttp db db/due dial domain/measure domain/people event fault flake gitlfs gitmodules hook id idp inbound jsonschema " +
	"lazy linear llm llm/sink mail minisign money needs observe policy protocol reach remote seal seal/keys secretscan stencil stripe version web webpush"

// between lists the domains that import another one, and why a function wired in app would not do.
var between = map[string]string{
	"domain/rollout -> domain/box":          "what a box is told, and says of it, is read and written in the transaction of its rollout",
	"domain/rollout -> domain/release":      "the way of a box through the ledger is found in the transaction that tells it",
	"domain/ask -> domain/escalation":       "an ask is handed to a person in one transaction",
	"domain/task -> domain/escalation":      "a task that its caller is unsure of becomes a question instead, in one transaction",
	"domain/queue -> domain/task":           "the queue orders tasks and holds them back, in the transactions that move them",
	"domain/modelkey -> domain/donation":    "which keys an account may use, of its own and of what it was given, is one list",
	"domain/gateway -> domain/donation":     "what a call over a lent key cost is counted for its gift in the transaction that stores the call",
	"domain/box -> domain/donation":         "a box that is revoked is lent no more, in one transaction",
	"domain/queue -> domain/fleet":          "which boxes may take whose work is one condition in the statements of the queue",
	"domain/run -> domain/fleet":            "what a box is given of a run is read with the condition that the box may have it",
	"domain/box -> domain/fleet":            "whose work a box takes, and what people have agreed to, change in one transaction",
	"domain/run -> domain/queue":            "a claim takes the next task of the queue, locked, in the transaction of the run",
	"domain/run -> domain/task":             "a run is a try of a task: claiming moves both in one transaction",
	"domain/run -> domain/session":          "a run's session begins and ends in the run's transaction",
	"domain/plan -> domain/task":            "approving a plan mints the tasks of all its groups in one transaction",
	"domain/ci -> domain/repo":              "a check is the command of a repository's policy",
	"domain/review -> domain/intent":        "what a host is told of a review is put in the transaction that ends it",
	"domain/ci -> domain/intent":            "what a host is to do about a check is put in the transaction that decides it",
	"domain/pull -> domain/intent":          "what a host is to do about a pull request is put in the transaction that decides it",
	"domain/intent -> domain/repo":          "an intent is carried out at the host of its repository",
	"domain/mergequeue -> domain/repo":      "whether heads are queued is in the policy of their repository",
	"domain/mergequeue -> domain/intent":    "what a host is to do about its queue is put in the transaction that decides it",
	"domain/delivery -> domain/repo":        "the repositories that are enabled are swept",
	"domain/connection -> domain/repo":      "an installation is the one way in which repositories of another host come",
	"domain/source -> domain/repo":          "a delivery is bound to a repository in the transaction that files its ask",
	"domain/tracker -> domain/repo":         "an issue is opened for a repository in the transaction of the task that asks for it",
	"domain/join -> domain/box":             "a machine gets its enrollment, and is told to be a box, in the transaction that notes it",
	"domain/creation -> domain/repo":        "a repository that a host has made is made known in the transaction that notes it",
	"domain/pull -> domain/repo":            "a pull request is read and decided with its repository's policy",
	"domain/inquiry -> domain/repo":         "a question is about a repository, and is answered from its host",
	"domain/provenance -> domain/repo":      "what a merge came of is written beside its commit, at the host of its repository",
	"domain/webhook -> domain/notification": "the types of what a webhook is sent of notices are their kinds",
	"domain/whatif -> domain/queue":         "a record is played by the order that claims have",
	"domain/whatif -> domain/repo":          "another policy is read as the policy file of a repository is",
	"domain/kb -> domain/repo":              "a page is of a repository, and goes by its default branch",
	"domain/issue -> domain/repo":           "an issue is triaged under the policy of its repository",
	"domain/command -> domain/repo":         "a command is about a repository, at its host",
	"domain/command -> domain/intent":       "the answer to a command is put in the transaction that carries it out",
	"domain/talk -> domain/intent":          "what is said is put for its code host in the transaction that stores it",
	"domain/talk -> domain/repo":            "what is said about a pull request goes to the host of its repository",
	"domain/issue -> domain/intent":         "what is said about an issue at its host is put in the transaction of the change",
	"domain/review -> domain/repo":          "a review is carried out under the policy of its repository",
	"domain/gateway -> domain/budget":       "an amount is set aside before a call, and its cost is spent in the transaction that counts the call",
	"domain/gateway -> domain/modelkey":     "a call goes over a key of the account, and notes whether the key works, in the same transaction",
	"domain/gateway -> domain/session":      "a call is counted in its session, in the same transaction",
	"domain/payment -> domain/budget":       "what an account pays for is shown with the forecast of its month, in the words of the ledger",
	"domain/account -> domain/closure":      "whoever looks at an account sees that it is going to be deleted",
	"domain/operator -> domain/grant":       "an account and a person are shown with what they were given",
	"domain/operator -> domain/account":     "operators see a person as the person does, with more beside it",
	"domain/operator -> domain/member":      "a role that an operator changes is the event that one is which the roster changes",
	"domain/signin -> domain/token":         "a presented token becomes an actor",
	"domain/oauth -> domain/token":          "what a program is granted is an ordinary token",
	"domain/sso -> domain/signin":           "who is vouched for elsewhere enters like everybody, and fails on the same page",
	"domain/access -> domain/invitation":    "an applicant is decided about and invited in one transaction",
	"domain/member -> domain/invitation":    "a member is invited in one transaction",
	"domain/member -> domain/signin":        "browsers leave an account with the member, in one transaction",
}

// measuring is the package that measures the program and its parts against baselines.
// It may import every package; no package may import it.
const measuring = "proof/bench"

func TestImports(t *testing.T) {
	used, all := map[string]bool{}, maps.Clone(edges)
	maps.Copy(all, rooms)
	for _, f := range product(t) {
		from := f.pkg()
		if from == measuring {
			continue
		}
		allowed, known := all[from]
		domain := strings.HasPrefix(from, "domain/")
		if domain {
			allowed, known = foundation+" "+parts[from], true
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
			if between[edge] != "" || to == "lazy" { // which imports nothing, and keeps a start short
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
	for from, list := range all {
		for _, to := range strings.Fields(list) {
			if !strings.Contains(to, "*") && !used[from+" -> "+to] {
				t.Errorf("%s may import %s, and does not: remove it from the table", from, to)
			}
		}
	}
}

// importers returns the packages with matching files, and these files.
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
		"api/rest":         "serves the capabilities",
		"certificate":      "answers an authority over plain http",
		"proof/acme":       "is an authority of tests",
		"api/held":         "counts requests before they are served",
		"event/notary":     "tells a webhook of audit heads",
		"app":              "serves the whole program",
		"client":           "calls the API",
		"blob":             "serves objects, and stores them in a bucket",
		"codehost/builtin": "speaks git over HTTP",
		"codehost/homes":   "relays git, and asks other nodes",

		"codehost/smarthttp": "speaks git over HTTP",
		"codehost/github":    "calls GitHub",
		"codehost/relay":     "speaks git over HTTP",
		"domain/lfs":         "speaks Git LFS over HTTP",
		"gitlfs":             "speaks Git LFS over HTTP",

		"idp":              "asks identity providers",
		"linear":           "calls Linear",
		"stripe":           "calls Stripe",
		"proof/till":       "is Stripe, to the tests",
		"hook":             "sends events to addresses of customers",
		"webpush":          "sends messages to browsers",
		"webpush/pushtest": "is a push service, to the tests",
		"llm":              "is the gateway to model providers",
		"llm/answer":       "reads the headers of answers",
		"llm/sink":         "sends copies of model calls to addresses of customers",
		"llm/scripted":     "is a model provider, to the gateway",
		"box":              "enrolls over HTTP and serves its agents a model",
		"box/broker":       "adds secrets to requests",
		"box/coder":        "calls a model",
		"box/worktree":     "fetches and pushes objects of Git LFS",
		"box/gate":         "serves what stands between agents and the network",
		"box/modelproxy":   "stands between agents and the gateway",
		"box/selftest":     "asks the proxies of a box",
		"demo":             "names methods to client",
		"proof/bundle":     "serves the sources of the dashboard before a server",
		"proof/chaos":      "names methods to client and gives its calls keys",
		"proof/document":   "reads headers of answers",
		"proof/github":     "is a code host, to the tests",
		"proof/provider":   "is an identity provider, to the tests",
		"proof/recorded":   "is a model provider that plays recorded answers, to the tests",
		"proof/rig":        "calls the API as a test says",
		"proof/transcript": "calls the API as the transcripts say",
		"cli":              "names methods to client",
		"cli/act":          "names methods to client",
		"cli/change":       "names methods to client",
		"cli/machine":      "names methods to client",
		"cli/noun":         "names methods to client",
		"cli/signin":       "names methods to client",
		"cli/tree":         "names methods to client",

		"proof/github/description": "judges requests and answers",
		"proof/parts":              "serves an empty page",

		"observe/telemetry": "records requests and serves metrics",
	})
}

func TestSQL(t *testing.T) {
	exceptions(t, "imports database/sql", importers(t, imports("database/sql")), map[string]string{
		"db":          "is the door to the databases",
		"db/dbtest":   "prepares what db declares",
		"proof/chaos": "reads what a stopped server has stored",

		"proof/transcript": "has SQLite note which answers are kept late",
	})
	statement := regexp.MustCompile(`^\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH)\s`)
	for _, f := range product(t) {
		base := path.Base(f.path)
		switch {
		case strings.HasPrefix(f.pkg(), "domain/") && strings.HasPrefix(base, "store"):
			continue
		case f.pkg() == "db" || f.pkg() == "db/dbtest" || f.pkg() == measuring || f.pkg() == "proof/chaos":
			continue
		case f.pkg() == "proof/transcript" || f.pkg() == "proof/seed": // they hold rows of every domain
			continue
		case f.path == "internal/api/idempotency/store.go": // it serves every domain
			continue
		case f.path == "internal/db/meta/store.go": // the keys of the installation belong to no domain
			continue
		case f.path == "internal/db/due/store.go": // what is due is in every domain
			continue
		case f.path == "internal/db/lease/store.go", f.path == "internal/db/nodes/store.go": // servers belong to no domain
			continue
		case f.path == "internal/seal/keys/store.go": // sealed values are in every domain
			continue
		case f.path == "internal/event/notary/store.go": // every domain writes to the record
			continue
		case f.path == "internal/departure/store.go": // what leaves is of every domain
			continue
		case f.path == "internal/mail/store.go": // the outbox belongs to no domain
			continue
		case f.path == "internal/event/audit.go", f.path == "internal/event/store.go": // every domain records events
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
	maps.DeleteFunc(users, func(pkg string, _ []string) bool { return pkg == "box" || strings.HasPrefix(pkg, "box/") })
	exceptions(t, "reads the clock", users, map[string]string{
		"db/due":             "carries the time of the database on, and says how long holds last",
		"db":                 "gives every transaction its time",
		"app":                "hands the clock to those who are given one",
		"api/rest":           "measures requests and sets deadlines of sockets",
		"api/held":           "sets deadlines of sockets",
		"client":             "gives up a server that makes no progress for too long",
		"cli":                "shows times as ages",
		"cli/act":            "shows times as ages",
		"cli/change":         "shows times as ages",
		"cli/noun":           "shows times as ages",
		"cli/output":         "shows times as ages",
		"cli/table":          "shows times as ages",
		"terminal":           "shows how long something takes",
		"codehost/smarthttp": "sets deadlines of sockets",
		"llm":                "sets deadlines of sockets and knows how long they are idle",
		"bus":                "dates credentials and paces boxes",
		"domain/run":         "measures how long events take to be stored",
		"observe":            "measures passes of loops",
		"clock":              "notices that it was set",
		"proof/github":       "has a clock that a test moves",
		"webpush/pushtest":   "checks how long a token is good",
		"proof/provider":     "dates its tokens",
		"demo":               "prints how long the steps took",
		"proof/gate":         "says how long stages took, and dates what passed",
		"proof/patience":     "knows what is left of a package's time",
		"proof/chaos":        "harms at times of its own, outside of what it harms",

		"observe/telemetry": "measures requests, and how old answers are",
	})
}

func TestRandomness(t *testing.T) {
	exceptions(t, "draws randomness", importers(t, imports("crypto/rand")), map[string]string{
		"id":           "makes ids and tokens",
		"seal":         "makes keys and salts",
		"bus":          "makes its certificates and their keys",
		"box/coder":    "names its sessions, which no server knows",
		"box/sandbox":  "marks what is outside of a sandbox, so that it is known again inside",
		"box/worktree": "names refs that must not collide in the cache",
		"demo":         "makes the password of a throwaway owner",
		"proof/chaos":  "makes the secrets that it looks for",

		"proof/github":     "makes the keys of Apps",
		"webpush/pushtest": "makes the keys of browsers",
		"proof/provider":   "makes the key of its tokens",
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
