package app

import (
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/api/mcp"
	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/policy"
)

// sessions are the rows that only a browser's session may call.
var sessions = []string{
	"account.active_account_switch", "auth.logout", "auth.reauth", "auth.ways", "auth.password_set", "member.leave",
	"invitation.accept_mine", "invitation.joining_set",
	"code_host.setup_page", "code_host.setup_begin", "code_host.setup_end",
}

// caller is the headers of somebody who may call a row.
func (y *yard) caller() func(op.Op) []string {
	owner := []string{"Authorization", "Bearer " + y.owner}
	operator := []string{"Authorization", "Bearer " + y.operator()}
	browser := []string{"Cookie", y.browser(), "Origin", y.URL()}
	form, box := []string{"Authorization", "Bearer the-form"}, []string{"Authorization", "Bearer " + *y.station(y.owner).RunToken}
	return func(o op.Op) []string {
		need, _ := policy.ParseScopes(o.Rule.Names())
		switch {
		case o.Rule.NeedsSession() || slices.Contains(sessions, o.ID):
			return browser
		case o.Holder != nil && o.Holder.Scheme == "box":
			return box
		case o.Holder != nil:
			return form
		case need&policy.OperatorOnly != 0:
			return operator
		}
		return owner
	}
}

// nonsense are bodies that are refused before anybody asks what they mean.
var nonsense = map[string]string{
	"cut off":          `{"a": `,
	"two values":       `{} {}`,
	"no object":        `[]`,
	"a text":           `"x"`,
	"null":             `null`,
	"deep":             `{"a": ` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`,
	"deep and open":    strings.Repeat(`{"a":`, 20_000),
	"a name twice":     `{"a": 1, "a": 2}`,
	"twice within":     `{"a": {"b": 1, "b": 2}}`,
	"no text":          "{\"a\": \"\xff\"}",
	"a name no text":   "{\"\xff\": 1}",
	"half a character": `{"a": "\ud800"}`,
	"not a number":     `{"a": NaN}`,
	"a mark before":    "\ufeff{}",
	"NUL":              "{\"a\": \"\x00\"}",
}

func TestEveryRowRefusesNonsense(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	as := y.caller()
	for _, o := range Ops() {
		// A row may refuse everything. Tools are the surface of the next test, and a host
		// signs what it delivers: TestRefused of domains delivery and source.
		if o.Status >= 400 || o.ID == "mcp.rpc" || o.ID == "inbound.github" || o.ID == "inbound.source" ||
			o.ID == "billing.stripe_webhook" {
			continue
		}
		t.Run(o.ID, func(t *testing.T) {
			y := &yard{App: y.App, t: t}
			path, header := filled(o, map[string]string{"slug": "head_moved"}), as(o)
			var fields, params []string
			for name, where := range o.Input() {
				switch where {
				case "body":
					fields = append(fields, name)
				case "query":
					params = append(params, name)
				}
			}
			if !o.Lenient {
				p := y.send(o.Method, path+"?surprise=1", "", "", header...).problem(400, "invalid")
				refused(t, p, "surprise")
			}
			for _, query := range []string{"%zz", "a=1;b=2"} {
				y.send(o.Method, path+"?"+query, "", "", header...).problem(400, "invalid")
			}
			kinds := o.Kinds()
			for _, name := range params {
				for _, value := range hostileValues(kinds[name]) {
					p := y.send(o.Method, path+"?"+url.Values{name: {value}}.Encode(), "", "", header...).problem(400, "invalid")
					refused(t, p, name)
				}
			}
			if fields == nil {
				if o.Method != "GET" {
					y.send(o.Method, path, "", `{"surprise": 1}`, header...).problem(400, "invalid")
				}
				return
			}
			for name, body := range nonsense {
				if a := y.send(o.Method, path, "", body, header...); a.StatusCode != 400 && int64(len(body)) < o.MaxBody {
					t.Errorf("%s: %d %.200s", name, a.StatusCode, a.body)
				}
			}
			for _, kind := range []string{"text/plain", "application/xml", "nonsense", ""} {
				if kind == "application/xml" && o.NoXML != "" {
					continue // that is 400: TestSAMLIsRefusedAsABody
				}
				y.send(o.Method, path, "", `{"surprise": 1}`, append(slices.Clone(header), "Content-Type", kind)...).problem(415,
					"unsupported-media-type")
			}
			y.send(o.Method, path, "", `{"a": "`+strings.Repeat("x", int(o.MaxBody))+`"}`, header...).problem(413, "too-large")
			if !o.Lenient {
				refused(t, y.send(o.Method, path, "", `{"surprise": 1}`, header...).problem(400, "invalid"), "surprise")
			}
			for _, name := range fields {
				for _, value := range hostileJSON(kinds[name]) {
					p := y.send(o.Method, path, "", fmt.Sprintf(`{%q: %s}`, name, value), header...).problem(400, "invalid")
					refused(t, p, name)
				}
			}
		})
	}
}

// refused checks that a problem speaks of a field.
func refused(t *testing.T, p map[string]any, field string) {
	t.Helper()
	errs, _ := p["errors"].(map[string]any)
	for name := range errs {
		if name == field || strings.HasPrefix(name, field+".") {
			return
		}
	}
	t.Errorf("it is not said what is wrong with %s: %v", field, p)
}

// hostileValues are query values that no parameter of the kind may take.
func hostileValues(t reflect.Type) []string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	out := []string{"\xff", "\x00", "a\x00b"}
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		out = append(out, "9223372036854775808", "-9223372036854775809", "1e400", strings.Repeat("9", 4000), "0x10", "1.5", "")
	case reflect.Bool:
		out = append(out, "1", "yes", "")
	}
	return out
}

// hostileJSON are JSON values that no field of the kind may take.
func hostileJSON(t reflect.Type) []string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		return []string{"9223372036854775808", "-9223372036854775809", "1e400", strings.Repeat("9", 4000), "1.5", `"1"`, "[]", "true"}
	case reflect.Float64:
		return []string{"1e400", "-1e400", strings.Repeat("9", 4000), `"1"`, "{}"}
	case reflect.String:
		return []string{"1", "true", "[]", "{}", `"\u0000"`, `"a\u0000b"`}
	case reflect.Bool:
		return []string{"1", `"true"`, "[]"}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.String {
			return []string{`["\u0000"]`, "1", "{}", "[1]"}
		}
	case reflect.Map:
		return []string{"1", "[]", `{"\u0000": "x"}`}
	}
	return nil
}

func TestEveryToolRefusesNonsense(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	as := y.caller()
	for _, o := range Ops() {
		if !o.IsTool() {
			continue
		}
		t.Run(o.ID, func(t *testing.T) {
			y := &yard{App: y.App, t: t}
			header := as(o)
			frame := func(arguments string) string {
				return fmt.Sprintf(`{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": %q, "arguments": %s}}`, o.ID,
					arguments)
			}
			call := func(arguments string) map[string]any {
				t.Helper()
				var r struct {
					Result *struct {
						Structured map[string]any `json:"structuredContent"`
						IsError    bool
					}
				}
				a := y.send("POST", mcp.Path, "", frame(arguments), header...).want(200)
				if decode(t, a, &r); r.Result == nil || !r.Result.IsError || r.Result.Structured["status"] != 400.0 {
					t.Fatalf("%.100s: %.300s", arguments, a.body)
				}
				return r.Result.Structured
			}
			rest := ""
			for _, name := range pathParams(o.Path) {
				rest += fmt.Sprintf(`, %q: "x"`, name)
			}
			refused(t, call(`{"surprise": 1`+rest+`}`), "surprise")
			for name, body := range nonsense {
				var e struct{ Error struct{ Code int } }
				a := y.send("POST", mcp.Path, "", frame(body), header...)
				decode(t, a, &e)
				if name != "null" && (a.StatusCode != 400 && a.StatusCode != 200 || e.Error.Code == 0) {
					t.Errorf("%s: %d %.200s", name, a.StatusCode, a.body)
				}
			}
			kinds := o.Kinds()
			for name, where := range o.Input() {
				if where == "header" {
					continue
				}
				for _, value := range hostileJSON(kinds[name]) {
					if where != "body" && !strings.HasPrefix(value, "[") && !strings.HasPrefix(value, "{") &&
						!strings.Contains(value, `\u`) {
						continue // in a path or a query everything is text
					}
					others := strings.Replace(rest, fmt.Sprintf(`, %q: "x"`, name), "", 1)
					refused(t, call(fmt.Sprintf(`{%q: %s%s}`, name, value, others)), name)
				}
			}
		})
	}
	too := `{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": "` + strings.Repeat("x", 2<<20) + `"}}`
	y.send("POST", mcp.Path, y.owner, too).problem(413, "too-large")
	y.send("POST", mcp.Path, y.owner, `{"jsonrpc": "2.0", "id": 1, "method": "ping"}`, "Content-Type", "text/plain").problem(415,
		"unsupported-media-type")
}

// A path that names nothing that can exist is as unknown as any other, on both
// databases.
func TestPathsThatAreNotText(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		y := start(t, e)
		for _, o := range Ops() {
			if names := pathParams(o.Path); len(names) == 0 || o.Rule.IsPublic() {
				continue
			}
			for _, odd := range []string{"%00", "a%00b", "%ff", "%C0%80"} {
				values := map[string]string{}
				for _, name := range append(pathParams(o.Path), strings.Split(o.ID, ".")[0]) {
					values[name] = odd
				}
				y.send(o.Method, filled(o, values), y.owner, "")
				if a := y.send(o.Method, filled(o, values), y.owner, ""); a.StatusCode != 404 {
					t.Errorf("%s on %v: %s is answered %d %s", o.ID, e, odd, a.StatusCode, a.body)
				}
			}
		}
	}
}

// Every answer tells its request's id, whatever part of the program gives it.
func TestEveryAnswerHasAnID(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	y.push("acme/web", map[string]string{"README": "hello\n"})
	for _, path := range []string{
		"/", "/nothing", "/docs", "/v1/openapi.json", "/v1/me", "/v1/mcp", "/git/acme/web.git/info/refs?service=git-upload-pack",
		"/git/nothing",
		"/gateway/v1/messages", "/gateway/nothing", "/oauth/authorize", "/auth/login", "/setup/x", "/problems/x", "/v1/tasks?page=1", "//",
		"/v1/%ff",
	} {
		for _, method := range []string{"GET", "POST", "OPTIONS", "TRACE", "PROPFIND"} {
			a := y.send(method, path, "", "", "X-Request-Id", "mine")
			if got := a.Header.Get("X-Request-Id"); got != "mine" {
				t.Errorf("%s %s answers %d with the id %q", method, path, a.StatusCode, got)
			}
			if a.Header.Get("Content-Type") == "application/problem+json" {
				var p map[string]any
				if err := json.Unmarshal(a.body, &p); err != nil || p["request_id"] != "mine" {
					t.Errorf("%s %s: %v %s", method, path, err, a.body)
				}
			}
			if a.StatusCode == 405 && a.Header.Get("Allow") == "" {
				t.Errorf("%s %s is refused without Allow", method, path)
			}
		}
	}
}
