package arch

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
)

// ownerOf answers the owner of each table: the only package that writes it. Other packages call
// its functions, which take the transaction. several are the places of the writers of a table that
// has more than one, by package.
func ownerOf(t *testing.T) (owner map[string]string, several map[string]map[string][]string) {
	owner, several = map[string]string{}, map[string]map[string][]string{}
	for _, s := range statements(t) {
		for _, table := range s.writes {
			if several[table] == nil {
				several[table] = map[string][]string{}
			}
			several[table][s.pkg] = append(several[table][s.pkg], s.at)
		}
	}
	for table, writers := range several {
		if len(writers) == 1 {
			owner[table] = slices.Collect(maps.Keys(writers))[0]
			delete(several, table)
		}
	}
	return owner, several
}

// Reasons for several reads.
const (
	console = "report: the operator's console shows the whole platform"
	landed  = "a person who comes back from a code host sees whether the installation is known, in one statement"
	ladder  = "report: the steps of onboarding are counted over what an account has"
	glance  = "report: an account at a glance"
	told    = "a digest is what happened in an account in a day or a week, each part of it one statement"
	record  = "report: the record of every domain, which event writes and others show"
	replay  = "report: a replay holds all that became of a session against a policy"
	inCall  = "hot: whose budgets a model call counts for is one statement"
	signed  = "hot: a credential is resolved in one statement, for every request that is not remembered"
	mayTake = "hot: whether a box may take work of an account is one condition, fleet.May, in every statement that gives boxes anything"
	named   = "a page shows owner/name of its rows' repositories, in the statement that reads it"
	acted   = "whoever may act is named in one statement, for a page of rows at once"
	judged  = "a judge is shown the newest of what there is, in statements that cut it to size"
)

// overall are the packages that read tables of every domain, because that is what they are for.
var overall = map[string]string{
	"measure":    "it counts for all that show numbers",
	"provenance": "it says what a merge came of",
	"quota":      "it counts all that an account has on record, in statements that a request can wait for",
	"departure":  "an account that leaves goes out of every table in one transaction, as the schema says",
}

// reads lists the tables that a package reads of another one, and why a function of
// the owner would not do. Domains are named without "domain/".
var reads = map[string]string{
	"operator -> accounts":    console,
	"operator -> grants":      console,
	"operator -> memberships": console,
	"operator -> tokens":      console,
	"operator -> users":       console,

	"onboarding -> accounts":      landed,
	"onboarding -> installations": landed,
	"onboarding -> memberships":   landed,
	"onboarding -> repos":         ladder,

	"overview -> pulls": glance,
	"overview -> repos": glance,

	"actor -> boxes":          acted,
	"actor -> former_members": acted,
	"actor -> memberships":    acted,
	"actor -> schedules":      acted,
	"actor -> sources":        acted,
	"actor -> tokens":         acted,
	"actor -> users":          acted,

	"audit -> audit":              record,
	"audit -> audit_heads":        record,
	"audit -> operator_trail":     record,
	"event/notary -> audit":       record,
	"event/notary -> audit_heads": record,
	"stream -> audit":             record,
	"stream -> audit_heads":       record,

	"session -> ci_runs":      replay,
	"session -> pull_actions": replay,
	"session -> pulls":        replay + "; and what a task cost includes the rounds that repaired its pull request",
	"session -> tasks":        replay + "; and what a task cost includes the rounds that repaired its pull request",
	"session -> repos":        named,

	"signin -> users":       signed,
	"signin -> memberships": "the sessions that an account's provider vouched for end for its members, in one statement",
	"token -> memberships":  signed,
	"token -> users":        signed,

	"repo -> accounts":     "hot: whether the tier covers a private repository is read with the repository, by every claim",
	"grant -> accounts":    "hot: how much an account may run at once is one kept statement, asked by every claim",
	"grant -> memberships": "hot: the same, for what owners were given",

	"budget -> accounts": inCall,
	"budget -> pulls":    inCall,
	"budget -> repos":    "the month's ledger is added up by the names of repositories, in the one statement",
	"budget -> sessions": inCall,
	"budget -> tasks":    inCall + "; and a loop finds the held tasks that nothing stops any more",

	"queue -> boxes":          "hot: the fleet that serves an account, with what its boxes hold, is one statement of every claim",
	"queue -> account_floors": mayTake,
	"queue -> donations":      mayTake,
	"queue -> box_consents":   mayTake,
	"queue -> memberships":    mayTake,
	"queue -> pulls":          "hot: what holds up a queue is cut to 200 rows among tasks whose pull request waits for a person",
	"queue -> repos":          "hot: a claim passes over the lanes of repositories that are not enabled",
	"queue -> task_deps":      "hot: what waits for a person, however indirectly, is one statement of every page of tasks",
	"queue -> tasks":          "hot: the next task of a lane, the places of a page and the tasks that wait for the same are each one statement",

	"task -> repos": named,
	"ci -> repos":   named,
	"ci -> tasks":   "a loop finds the checks whose task is over without a result",

	"run -> account_floors": mayTake,
	"run -> donations":      mayTake,
	"run -> repos":          mayTake,
	"run -> box_consents":   mayTake,
	"run -> memberships":    mayTake,

	"run -> boxes":    "hot: a claim learns of the run before, and whether its box is there, in one statement",
	"run -> sessions": "hot: the token of a run is resolved with its session in one statement",
	"run -> tasks":    "hot: the token of a run is resolved with its task; and a loop finds live runs of tasks that say nothing",

	"pull/record -> repos": "a pull request is read with owner/name of its repository; loops pass over those that are not enabled",
	"pull/record -> tasks": "a pull request is locked behind its task, by the order of locks; loops find those whose task is over",

	"plan -> repos": named,
	"ask -> repos":  judged + "; " + named,

	"box -> account_floors": mayTake,
	"box -> donations":      mayTake,
	"box -> repos":          mayTake,

	"budget -> donations": inCall, "budget -> plans": "the month's ledger is added up by their titles, in the one statement",
	"modelkey -> budget_limits": "hot: whether a call over a key counts for a limit of it, in one statement of every call",
	"modelkey -> donations":     "hot: the keys that an account may use are those that it has not given away, in one statement of every call",
	"donation -> accounts":      "whoever gave something is named by the login of the account",
	"donation -> repos":         "hot: whether a repository takes gifts is asked with those that it has, in one statement of every call",
	"box -> memberships":        mayTake,
	"fleet -> account_floors":   mayTake,
	"fleet -> donations":        mayTake,
	"fleet -> repos":            mayTake,
	"fleet -> accounts":         "whose a box is goes with the right by which it is here, in one statement",
	"fleet -> box_consents":     mayTake,
	"fleet -> boxes":            mayTake,
	"fleet -> memberships":      mayTake,
	"fleet -> queue_depths":     "hot: the accounts that a box of one person serves are those with a queue, in one statement",

	"backlog -> repos":      "an import names the repository as its code host does",
	"blocker -> runs":       "hot: a list of tasks says which blockers a parked run waits for",
	"escalation -> repos":   named,
	"dashboard -> accounts": "a loop finds the accounts that lack the built-in boards, or have those of another version",

	"digest -> accounts": told,
}

// foreign returns which tables of other packages each package reads, as "package -> table",
// with the places.
func foreign(t *testing.T) map[string][]string {
	read := map[string][]string{}
	owner, _ := ownerOf(t)
	for _, s := range statements(t) {
		for _, table := range s.reads {
			if owner[table] != s.pkg {
				edge := strings.TrimPrefix(s.pkg, "domain/") + " -> " + table
				read[edge] = append(read[edge], s.at)
			}
		}
	}
	// The tool of migrations writes this table; the program looks at it before the
	// tool runs.
	delete(read, "db -> goose_db_version")
	return read
}

func TestTablesHaveOneOwner(t *testing.T) {
	owner, several := ownerOf(t)
	for _, table := range slices.Sorted(maps.Keys(several)) {
		for _, pkg := range slices.Sorted(maps.Keys(several[table])) {
			t.Errorf("%s is written by %s (%s), and by others: one package may, the others call a function of it",
				table, pkg, strings.Join(several[table][pkg], ", "))
		}
	}
	all, err := tablesOf(dbtest.SQLite(t), t)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range all {
		if owner[table] == "" && several[table] == nil && !slices.Contains(ofMigrations, table) && !strings.HasPrefix(table, "sqlite_") {
			t.Errorf("%s has no owner: no package writes it", table)
		}
	}
}

func tablesOf(d *db.DB, t *testing.T) (all []string, err error) {
	err = d.Read(t.Context(), func(tx *db.Tx) (err error) {
		all, err = db.Select[string](tx, db.Build(`SELECT name FROM sqlite_master WHERE type = 'table'`))
		return err
	})
	return all, err
}

func TestForeignReads(t *testing.T) {
	read := foreign(t)
	used := map[string]bool{}
	for _, edge := range slices.Sorted(maps.Keys(read)) {
		if pkg, _, _ := strings.Cut(edge, " -> "); overall[pkg] != "" {
			used[pkg] = true
			continue
		}
		if reads[edge] == "" {
			t.Errorf("%s (%s): only reads in the table may be; call a function of "+
				"the owner, or say why not", edge, strings.Join(read[edge], ", "))
		}
	}
	for pkg := range overall {
		if !used[pkg] {
			t.Errorf("%q reads no table of another package: remove it", pkg)
		}
	}
	for edge := range reads {
		if read[edge] == nil {
			t.Errorf("%q is in the table but not in the program: remove it", edge)
		}
	}
}

// TestReadsAreNoKnot holds that no packages read each other's tables in a circle. A
// package that reads a table depends on its owner; to change one domain, nobody
// should have to know many others.
func TestReadsAreNoKnot(t *testing.T) {
	edges := map[string][]string{}
	owner, _ := ownerOf(t)
	for _, s := range statements(t) {
		for _, table := range slices.Concat(s.reads, s.writes) {
			if to := owner[table]; to != "" && to != s.pkg && !slices.Contains(edges[s.pkg], to) {
				edges[s.pkg] = append(edges[s.pkg], to)
			}
		}
	}
	n := 0
	for _, to := range edges {
		n += len(to)
	}
	t.Logf("%d packages read tables of others, along %d edges", len(edges), n)
	for _, knot := range knots(edges) {
		t.Errorf("%s read each other's tables in a circle: turn one way around", strings.Join(knot, ", "))
	}
}

// knots returns the strongly connected components of more than one node, sorted.
func knots(edges map[string][]string) (out [][]string) {
	reached := func(from string) map[string]bool {
		seen := map[string]bool{}
		for next := slices.Clone(edges[from]); len(next) > 0; {
			at := next[len(next)-1]
			next = next[:len(next)-1]
			if !seen[at] {
				seen[at] = true
				next = append(next, edges[at]...)
			}
		}
		return seen
	}
	all, in := map[string]map[string]bool{}, map[string]bool{}
	for from := range edges {
		all[from] = reached(from)
	}
	for _, from := range slices.Sorted(maps.Keys(all)) {
		if in[from] || !all[from][from] {
			continue
		}
		knot := slices.DeleteFunc(slices.Sorted(maps.Keys(all[from])), func(to string) bool { return !all[to][from] })
		for _, member := range knot {
			in[member] = true
		}
		out = append(out, knot)
	}
	return out
}

func TestKnots(t *testing.T) {
	got := knots(map[string][]string{
		"a": {"b", "d"}, "b": {"c"}, "c": {"a"}, // a circle
		"d": {"e"}, "e": {"d", "f"}, // another, below
		"g": {"a"},
	})
	if len(got) != 2 || strings.Join(got[0], "") != "abc" || strings.Join(got[1], "") != "de" {
		t.Errorf("%v", got)
	}
}
