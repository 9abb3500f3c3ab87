package cli

import (
	"testing"

	"yardmaster/internal/cli/exit"
)

// What is not there is not deleted, and what a change has taken the place of is named, with the
// command that brings it back where there is one.
func TestOnlyWhatWasThereIsDeleted(t *testing.T) {
	t.Parallel()
	y := yard(t)
	if err := y.Push("acme/web", map[string]string{"a": "a\n"}); err != nil {
		t.Fatal(err)
	}
	p := newPerson(t, "YARDMASTER_URL="+y.URL, "YARDMASTER_TOKEN="+y.Owner, "NO_COLOR=1")
	p.holds("secret delete NOPE", exit.CodeNotFound, "no secret", "!is deleted")
	p.holds("template delete nope", exit.CodeNotFound, "no template", "!is gone")
	p.holds("webhook delete "+someID, exit.CodeNotFound, "!Deleted")
	p.holds("key view "+someID, exit.CodeNotFound)
	p.terminal([]string{"secret", "set", "OF_REPO", "--repo", "acme/web", "--environment", "staging"}, step{"Value: ", "long-enough\r"})
	p.holds("secret delete OF_REPO", exit.CodeNotFound, "--repo OWNER/NAME", "!is deleted")
	p.holds("secret delete OF_REPO --repo acme/web", exit.CodeNotFound, "!is deleted") // that for all environments
	shown, _ := p.terminal([]string{"secret", "set", "OF_REPO", "--repo", "acme/web", "--environment", "staging"},
		step{"Value: ", "another-one\r"}, step{"in the place of the value before", ""},
		step{"yardmaster secret delete OF_REPO --repo acme/web --environment staging", ""})
	if shown == "" {
		t.Error("nothing is shown")
	}
	p.holds("secret delete OF_REPO --repo acme/web --environment staging", 0, "OF_REPO is deleted.",
		"yardmaster secret set OF_REPO --repo acme/web --environment staging")

	p.holds("template set calm --agent builtin --timeout 600", 0, "The template calm is set.\n", "!place",
		"Undo: yardmaster template delete calm\n")
	p.holds("template set default --agent builtin", 0, "Undo: yardmaster template delete default\n") // which every account has
	p.holds("template delete default", 0)
	p.holds("template set calm --agent builtin --timeout 700", 0, "in the place of the one before",
		"Undo: yardmaster template set calm", "--timeout 600")
	p.holds("template delete calm", 0, "Undo: yardmaster template set calm", "--timeout 700")

	p.holds("token create --name ci --scopes read:tasks", 0)
	p.holds("token rename @last nightly", 0, "Undo: yardmaster token rename ", " ci\n")
	p.holds("token revoke nightly", 0, "good for nothing")
	p.holds("token revoke nightly", exit.CodeFailed, "is revoked: nothing has changed", "!good for nothing")
	p.holds("schedule create --title Update --body Raise. --cron '0 6 * * 1-5' --zone UTC", 0, "it files its ask next in ", "!T06:00")
	p.holds("schedule update @last --title Raise", 0, "Changed: it files its ask next in ")
	p.holds("schedule pause @last", 0)
	p.holds("schedule update @last --title Lift", 0, "Changed.\n", "!NEXT_AT")
	p.holds("schedule resume @last", 0, "It files its ask next in ")
	p.holds("schedule run @last", 0, "is filed.", "yardmaster ask view ", " shows what becomes of it.", "!ASK_ID")

	p.holds("budget member ada 5", 0, "Undo: yardmaster budget member", " null")
	p.holds("budget member ada 6", 0, "Undo: yardmaster budget member", " 5")
	p.holds("budget set abc", exit.CodeMisused, "takes a number")
	p.holds("member invite --email bob@example.com --role member", 0, "bob@example.com is invited, as member.",
		"yardmaster invitation revoke inv_", "!LOGIN")
	p.holds("member invite vera@example.com --role viewer", 0, "vera@example.com is invited, as viewer.")
	p.holds("member invite vera", exit.CodeMisused, "named with --login")
	p.holds("member invite vera@example.com --email bob@example.com", exit.CodeMisused, "not both")
}
