package inquiry

import (
	"encoding/json"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
)

// sample is a small program: a server, its settings, and what people wrote about them.
var sample = map[string]string{
	"README.md": "# Ferry\n\nFerry carries parcels over HTTP. `make test` runs the tests.\n\n| setting | default |\n| --- | --- |\n" +
		"| `port` | 8080 |\n",
	"config.go": `package ferry

// Config are the settings of a ferry.
type Config struct {
	Port    int           ` + "`yaml:\"port\"`" + ` // of the HTTP server
	Timeout time.Duration // of one request
}

// Default are the settings where a file says nothing.
var Default = Config{
	Port:    8080,
	Timeout: 30 * time.Second,
}
`,
	"server.go": `package ferry

// Serve answers until the context ends. A request without a token is refused.
func Serve(ctx context.Context, c Config) error {
	if c.Timeout == 0 {
		c.Timeout = Default.Timeout
	}
	return listen(ctx, c.Port)
}

func refuse(w http.ResponseWriter) {
	http.Error(w, "no token", http.StatusForbidden)
}
`,
	"deploy/env.sh":   "export FERRY_DRYDOCK=on # no parcels are taken\n",
	"docs/parcels.md": "# Parcels\n\nA parcel has at most 20 MiB.\n\nSee https://example.com/parcels for the form.\n",
}

// claim is a reply with one claim.
func claim(text string, cites ...string) string {
	b, _ := json.Marshal(map[string]any{"claims": []map[string]any{{"text": text, "citations": cites}}})
	return string(b)
}

// What the model says, and what of it is answered. Those with code "" are answered.
var questions = []struct{ name, question, reply, code, cites string }{
	{"a setting, where it is defined", "What is the default port?",
		claim("`Port` is 8080 by default.", "config.go:9-11"), "", "config.go:9-11"},
	{"a value in quotes", "What does refuse say?",
		claim("`refuse` answers \"no token\".", "server.go:11-13"), "", "server.go:11-13"},
	{"a status that is written by its name", "Which status has a refusal?",
		claim("`refuse` answers an error with 403.", "server.go:11-13"), "", "server.go:11-13"},
	{"a number with its unit", "How long may a request take?", claim("`Timeout` is 30 seconds.", "config.go:12"), "", "config.go:12"},
	{"a function", "What does Serve do?", claim("`Serve` answers until the context ends.", "server.go:3-4"), "", "server.go:3-4"},
	{"a variable of the environment", "What does the drydock do?",
		claim("With `FERRY_DRYDOCK` \"no parcels are taken\".", "deploy/env.sh:1"), "", "deploy/env.sh:1"},
	{"prose", "How large may a parcel be?", claim("A parcel has at most 20 MiB.", "docs/parcels.md:3"), "", "docs/parcels.md:3"},
	{"a row of a table", "Where is the port documented?", claim("`port` is 8080.", "README.md:7"), "", "README.md:7"},
	{"an address that stands there", "Where is the form of parcels?",
		claim("The form of parcels is at https://example.com/parcels.", "docs/parcels.md:5"), "", "docs/parcels.md:5"},
	{"in a fence", "What is the default port?", "```json\n" + claim("`Port` is 8080.", "config.go:11") + "\n```", "", "config.go:11"},
	{"the citation that holds is kept", "What is the default port?",
		claim("`Port` is 8080.", "server.go:8", "config.go:11", "nowhere.go:1"), "", "config.go:11"},

	{"a citation that nobody can open", "What is the default port?", claim("`Port` is 8080.", "settings.go:11"), notBorneOut, ""},
	{"lines behind the end", "What is the default port?", claim("`Port` is 8080.", "config.go:11-90"), notBorneOut, ""},
	{"above the root", "What is the default port?", claim("`Port` is 8080.", "../config.go:11"), notBorneOut, ""},
	{"a path without lines", "What is the default port?", claim("`Port` is 8080.", "config.go"), notBorneOut, ""},
	{"no citation", "What is the default port?", claim("`Port` is 8080."), notBorneOut, ""},
	{"lines that do not say so", "What is the default port?",
		claim("Parcels are delivered by carrier pigeons daily.", "config.go:11"),
		notBorneOut, ""},
	{"another number", "What is the default port?", claim("`Port` is 9090 by default.", "config.go:9-11"), notBorneOut, ""},
	{"another unit", "How long may a request take?", claim("`Timeout` is 30 minutes.", "config.go:12"), notBorneOut, ""},
	{"a name that is not there", "Is there a port of a proxy?",
		claim("`ProxyPort` is 8080 by default.", "config.go:9-11"), notBorneOut, ""},
	{"where it is used, not defined", "What is the timeout?",
		claim("`Default.Timeout` is taken by `Serve`.", "server.go:5-7"), notBorneOut, ""},
	{"a name without its marks, used", "What is listen?",
		claim("FERRY_DRYDOCK answers on the port.", "server.go:8"), notBorneOut, ""},
	{"made-up words in quotes", "What does refuse say?", claim("`refuse` answers \"token missing\".", "server.go:11-13"), notBorneOut, ""},
	{"a made-up link", "Where is the form of parcels?",
		claim("The form of parcels is at https://example.org/forms.", "docs/parcels.md:5"), notBorneOut, ""},
	{"nothing in the lines", "Which port has the metrics server?", `{"claims":[]}`, noAnswer, ""},
	{"no form", "What is the default port?", "The port is 8080.", notReadable, ""},
	{"another form", "What is the default port?", `{"claims":[],"verified":true}`, notReadable, ""},
	{"two objects", "What is the default port?", `{"claims":[]} {"claims":[]}`, notReadable, ""},
	{"null", "What is the default port?", `{"claims":null}`, notReadable, ""},
}

func TestQuestions(t *testing.T) {
	t.Parallel()
	y := newYard(t, dbtest.SQLite(t), sample, nil)
	for _, q := range questions {
		y.model.say, y.model.heard = always(q.reply), nil
		a := y.ask(q.question)
		code, cites := "", []string{}
		if a.Code != nil {
			code = string(*a.Code)
		}
		for _, c := range a.Citations {
			cites = append(cites, c.Cite)
		}
		if code != q.code || strings.Join(cites, " ") != q.cites || *a.Commit != y.head || a.SessionID == nil {
			t.Errorf("%s: %+v", q.name, a)
		}
		calls := 1
		if q.code == notBorneOut || q.code == notReadable {
			calls = maxCalls // and no more
		}
		if len(y.model.heard) != calls {
			t.Errorf("%s: %d calls", q.name, len(y.model.heard))
		}
	}
}

// The second call may mend the first, and what is left out of an answer is counted.
func TestCorrected(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		y := newYard(t, d, sample, nil)
		y.model.say = func(_ string, turns []string) (string, error) {
			if len(turns) == 1 {
				return claim("`Port` is 9090.", "config.go:11"), nil
			}
			if len(turns) != 3 || !strings.Contains(turns[2], "Claim 1: a number does not stand in the cited lines.") {
				t.Errorf("%q", turns[1:])
			}
			return `{"claims":[{"text":"` + "`Port`" + ` is 8080.","citations":["config.go:11"]},
				{"text":"` + "`Port`" + ` is 1.","citations":["config.go:11"]},
				{"text":"` + "`Timeout`" + ` is 30 seconds.","citations":["config.go:12","config.go:12"]},
				{"text":"The ` + "`port`" + ` is 8080.","citations":["README.md:7","config.go:11"]}]}`, nil
		}
		a := y.ask("What is the default port?")
		want := "`Port` is 8080 [1]. `Timeout` is 30 seconds [2]. The `port` is 8080 [3]."
		if a.Refused || a.Answer == nil || *a.Answer != want || a.Dropped != 1 || len(a.Citations) != 3 {
			t.Errorf("%+v", a)
		}
		c := a.Citations[0]
		if c.Text != "\tPort:    8080," || c.Path != "config.go" || c.Line != 11 || c.EndLine != 11 || c.Commit != y.head {
			t.Errorf("%+v", c)
		}
		if len(y.model.ends) != 1 || y.model.ends[0] != "succeeded" || y.model.matter[0] != (Matter{"acme", "web", "ada"}) {
			t.Errorf("%v %+v", y.model.ends, y.model.matter)
		}
	})
}
