//go:build !race

package dashboard_test

import (
	"encoding/json"
	"regexp"
	"testing"

	"yardmaster/internal/proof/browser"
)

// programs are pages that are about names of programs: calls by hand, the manual, an object as it is stored.
var programs = regexp.MustCompile(`^/ui/(call|docs)(/|$)`)

// sentences are the texts of a page that people read: what stands there as code, in a field or
// as a row of the record is none.
const sentences = `(() => {
	const out = [], skip = "code, pre, kbd, samp, textarea, input, select, option, time, svg title, .cmd, .raw, .rawdata, .vlist .l, [hidden]";
	const walk = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
	for (let n; (n = walk.nextNode()); ) {
		const text = n.data.trim();
		if (text && !n.parentElement.closest(skip)) out.push(text);
	}
	return JSON.stringify(out);
})()`

// machine are words of programs: ids, names of fields, capabilities.
var machine = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[a-z]+(?:_[a-z0-9]+)+\b|` +
	`\b(?:task|pr|plan|ask|box|billing|account|self|project|review|session|artifact|kb|blocker|escalation|template|webhook|token|org|member|` +
	`ci|audit|dashboard|digest|donation|grant)\.[a-z_]{3,}\b|\bundefined\b|\bNaN\b`)

// unspoken are the words of programs in the sentences of a page as it is now.
func unspoken(b *browser.Tab) (found []string) {
	b.T.Helper()
	var all []string
	if err := json.Unmarshal([]byte(browser.Eval[string](b, sentences)), &all); err != nil {
		b.T.Fatal(err)
	}
	for _, text := range all {
		if bad := machine.FindString(text); bad != "" {
			found = append(found, bad+" in: "+text)
		}
	}
	return found
}

// The judge of TestPages knows an id, a field and a capability in a sentence, and leaves code alone.
func TestWordsOfProgramsAreFound(t *testing.T) {
	t.Parallel()
	b := start(t).open(1440, 900)
	browser.Eval[any](b, `(() => { for (const [tag, text] of [["p", "Raise it with billing.spend_cap_set."], ["p", "It waits for budget_exhausted."],
		["p", "The task 01a209ae-0000-7000-8000-000000000000 waits."], ["code", "budget_exhausted"], ["p", "Nothing waits for e.g. a person."]]) {
		const e = document.createElement(tag); e.append(text); document.querySelector("main").append(e) } })()`)
	if found := unspoken(b); len(found) != 3 {
		t.Errorf("it finds %q", found)
	}
}
