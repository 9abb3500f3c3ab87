package inbound

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

var now = time.UnixMilli(1676056940508).Add(2 * time.Second)

const secret = "it is not to be guessed"

// payload is a delivery as its vendor documents it.
func payload(t testing.TB, name string) []byte {
	b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func request(body []byte, header ...string) Request {
	all := map[string]string{}
	for i := 0; i < len(header); i += 2 {
		all[strings.ToLower(header[i])] = header[i+1]
	}
	return Request{Body: body, Header: func(name string) string { return all[strings.ToLower(name)] }}
}

func hexed(secret string, parts ...string) string {
	var all [][]byte
	for _, p := range parts {
		all = append(all, []byte(p))
	}
	return hex.EncodeToString(digest([]byte(secret), all...))
}

func standardOf(key, id, stamp, body string) string {
	return "v1," + base64.StdEncoding.EncodeToString(digest([]byte(key), []byte(id), []byte("."), []byte(stamp), []byte("."), []byte(body)))
}

// standardly are the headers of a delivery "{}" of Standard Webhooks, signed for an id and
// a time; sent is the id that is sent.
func standardly(sent, id, stamp string) []string {
	return []string{"Webhook-Id", sent, "Webhook-Timestamp", stamp, "Webhook-Signature", "v1,AAAA " + standardOf(secret, id, stamp, "{}")}
}

// asOurs are the headers of a delivery "{}" as outbound webhooks have them.
func asOurs(sent, stamp string) []string {
	return []string{"X-Service-Timestamp", sent, "X-Service-Signature", "sha256=" + hexed(secret, stamp, ".", "{}")}
}

// Each scheme takes what its vendor signs, and nothing that differs in a byte, in the
// secret, in the header or in the time.
func TestSignatures(t *testing.T) {
	t.Parallel()
	linear := string(payload(t, "linear-issue"))
	stamp, old, ahead := strconv.FormatInt(now.Unix(), 10), strconv.FormatInt(now.Unix()-301, 10), strconv.FormatInt(now.Unix()+301, 10)
	whsec := standardPrefix + base64.StdEncoding.EncodeToString([]byte(secret))
	for name, c := range map[string]struct {
		kind, secret, body string
		header             []string
		refused            bool
	}{
		"gitea": {kind: Gitea, body: "{}", header: []string{"X-Gitea-Signature", hexed(secret, "{}")}},
		"gitea, in capitals": {kind: Gitea, body: "{}", header: []string{"X-Gitea-Signature",
			strings.ToUpper(hexed(secret, "{}"))}},
		"gitea, by Forgejo's header": {kind: Gitea, body: "{}", header: []string{"X-Forgejo-Signature", hexed(secret, "{}")},
			refused: true},
		"gitea, with a prefix": {kind: Gitea, body: "{}", header: []string{"X-Gitea-Signature", "sha256=" +
			hexed(secret, "{}")}, refused: true},
		"forgejo":                     {kind: Forgejo, body: "{}", header: []string{"X-Forgejo-Signature", hexed(secret, "{}")}},
		"forgejo, as a Gitea webhook": {kind: Forgejo, body: "{}", header: []string{"X-Gitea-Signature", hexed(secret, "{}")}},
		"forgejo, the better of two": {kind: Forgejo, body: "{}", header: []string{"X-Gitea-Signature", hexed(secret, "{}"),
			"X-Forgejo-Signature", hexed("other", "{}")}, refused: true},
		"gitlab":                     {kind: GitLab, body: "{}", header: []string{"X-Gitlab-Token", secret}},
		"gitlab, half of it":         {kind: GitLab, body: "{}", header: []string{"X-Gitlab-Token", secret[:8]}, refused: true},
		"gitlab, signed":             {kind: GitLab, secret: whsec, body: "{}", header: standardly("a", "a", stamp)},
		"gitlab, signed and stale":   {kind: GitLab, secret: whsec, body: "{}", header: standardly("a", "a", old), refused: true},
		"gitlab, another id":         {kind: GitLab, secret: whsec, body: "{}", header: standardly("b", "a", stamp), refused: true},
		"gitlab, the key as a token": {kind: GitLab, secret: whsec, body: "{}", header: []string{"X-Gitlab-Token", whsec}, refused: true},
		"gitlab, a key that is none": {kind: GitLab, secret: "whsec_!", body: "{}", header: standardly("a", "a", stamp), refused: true},
		"sentry":                     {kind: Sentry, body: "{}", header: []string{"Sentry-Hook-Signature", hexed(secret, "{}")}},
		"linear":                     {kind: Linear, body: linear, header: []string{"Linear-Signature", hexed(secret, linear)}},
		"linear, without a time":     {kind: Linear, body: "{}", header: []string{"Linear-Signature", hexed(secret, "{}")}, refused: true},
		"linear, stale": {kind: Linear, body: `{"webhookTimestamp": 1676056000000}`, header: []string{"Linear-Signature",
			hexed(secret, `{"webhookTimestamp": 1676056000000}`)},
			refused: true},
		"pagerduty": {kind: PagerDuty, body: "{}", header: []string{"X-PagerDuty-Signature", "v1=" + hexed("other", "{}") + ",v1=" +
			hexed(secret, "{}")}},
		"pagerduty, another version": {kind: PagerDuty, body: "{}", header: []string{"X-PagerDuty-Signature", "v2=" + hexed(secret, "{}")},
			refused: true},
		"ours":                         {kind: Generic, body: "{}", header: asOurs(stamp, stamp)},
		"ours, stale":                  {kind: Generic, body: "{}", header: asOurs(old, old), refused: true},
		"ours, ahead":                  {kind: Generic, body: "{}", header: asOurs(ahead, ahead), refused: true},
		"ours, the time alone changed": {kind: Generic, body: "{}", header: asOurs(stamp, old), refused: true},
		"ours, no time": {kind: Generic, body: "{}", header: []string{"X-Service-Signature", "sha256=" + hexed(secret, ".", "{}")},
			refused: true},
		"generic, standard": {kind: Generic, body: "{}", header: standardly("a", "a", stamp)},
		"generic, as GitHub": {kind: Generic, body: "{}", header: []string{"X-Hub-Signature-256",
			"sha256=" + hexed(secret, "{}")}},
		"generic, a worse one beside": {kind: Generic, body: "{}", header: []string{"X-Hub-Signature-256", "sha256=" + hexed(secret, "{}"),
			"X-Service-Signature", "sha256=00"}, refused: true},
		"no header": {kind: Generic, body: "{}", refused: true},
		"a kind that is none": {kind: "jira", body: "{}", header: []string{"X-Hub-Signature-256", "sha256=" + hexed(secret, "{}")},
			refused: true},
	} {
		if c.secret == "" {
			c.secret = secret
		}
		if got := Genuine(c.kind, c.secret, request([]byte(c.body), c.header...), now); got == c.refused {
			t.Errorf("%s: genuine is %v", name, got)
		}
		if c.refused {
			continue
		}
		if Genuine(c.kind, c.secret+"x", request([]byte(c.body), c.header...), now) && c.kind != GitLab {
			t.Errorf("%s: another secret does", name)
		}
		// A token of GitLab says nothing about the body.
		if Genuine(c.kind, c.secret, request([]byte(c.body+" "), c.header...), now) && c.header[0] != "X-Gitlab-Token" {
			t.Errorf("%s: another body does", name)
		}
	}
	for _, kind := range Kinds() {
		for _, header := range []string{"X-Gitea-Signature", "X-Forgejo-Signature", "Sentry-Hook-Signature", "Linear-Signature",
			"X-Gitlab-Token"} {
			if Genuine(kind, "", request([]byte("{}"), header, hexed("", "{}")), now) ||
				Genuine(kind, "", request([]byte("{}"), header, ""), now) {
				t.Errorf("%s takes a delivery without there being a secret", kind)
			}
		}
	}
}

// What vendors document is read as it is meant.
func TestPayloads(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind, file string
		header     []string
		want       Event
	}{
		{Gitea, "gitea-issue", []string{"X-Gitea-Event", "issues", "X-Gitea-Delivery", "d1"}, Event{
			Name: "issues.opened", Act: Work, IDs: []string{"d1"}, Key: "acme/web#7", Projects: []string{"acme/web"},
			Senders: []string{"bob"},
			Labels:  []string{"bug"}, Title: "The footer shows last year", Text: "On every page. The year should be that of today.",
			URL: "https://git.example.com/acme/web/issues/7",
		}},
		{Forgejo, "gitea-issue", []string{"X-Forgejo-Event", "issues", "X-Forgejo-Delivery", "d1"}, Event{
			Name: "issues.opened", Act: Work, IDs: []string{"d1"}, Key: "acme/web#7", Projects: []string{"acme/web"},
			Senders: []string{"bob"},
			Labels:  []string{"bug"}, Title: "The footer shows last year", Text: "On every page. The year should be that of today.",
			URL: "https://git.example.com/acme/web/issues/7",
		}},
		{Gitea, "gitea-push", []string{"X-Gitea-Event", "push"}, Event{
			Name: "push", Act: Ignored, Projects: []string{"gitea/webhooks"}, Senders: []string{"gitea"}, Labels: []string{},
		}},
		{GitLab, "gitlab-issue", []string{"Idempotency-Key", "i1"}, Event{
			Name: "issue.open", Act: Work, IDs: []string{"i1"}, Key: "gitlabhq/gitlab-test#23",
			Projects: []string{"gitlabhq/gitlab-test", "1"},
			Senders:  []string{"root", "1"}, Labels: []string{"API"}, Title: "New API: create/update/delete file",
			Text: "Create new API for manipulations with repository", URL: "http://example.com/diaspora/issues/23",
		}},
		{Sentry, "sentry-issue", []string{"Sentry-Hook-Resource", "issue", "Request-ID", "r1"}, Event{
			Name: "issue.created", Act: Work, Again: true, IDs: []string{"r1"}, Key: "issue/1170820242",
			Projects: []string{"front-end", "1"},
			Senders:  []string{"Sentry", "sentry"}, Labels: []string{}, Title: "ReferenceError: blooopy is not defined",
			Text: "Issue: FRONT-END-9\nCulprit: ?(runner)\nFile: /runner\nError: ReferenceError\nMessage: blooopy is not defined\nLevel: error\n" +
				"Platform: javascript\nEvents: 1\nPeople: 1\nFirst seen: 2019-08-19T20:58:37.391000Z\nLast seen: 2019-08-19T20:58:37.391000Z",
		}},
		{Sentry, "sentry-alert", []string{"Sentry-Hook-Resource", "event_alert"}, Event{
			Name: "event_alert.triggered", Act: Work, Again: true, Key: "issue/1117540176", Projects: []string{"front-end", "1"},
			Senders: []string{"Sentry", "sentry"}, Labels: []string{}, Title: "ReferenceError: heck is not defined",
			Text: "Culprit: ?(<anonymous>)\nWhere: <anonymous>\nLevel: error\nPlatform: javascript\nRule: Very Important Alert Rule!\n\n" +
				"Innermost frames, the last is where it failed:\n  /js/prod/runner-4.1.7.min.js:1\n  <anonymous>:3",
			URL: "https://sentry.io/organizations/test-org/issues/1117540176/events/e4874d664c3540c1a32eab185f12c5ab/",
		}},
		{Sentry, "sentry-issue", []string{"Sentry-Hook-Resource", "installation"}, Event{
			Name: "installation.created", Act: Ping, Again: true, Projects: []string{}, Senders: []string{"Sentry", "sentry"},
			Labels: []string{},
		}},
		{Linear, "linear-issue", []string{"Linear-Delivery", "l1"}, Event{
			Name: "Issue.create", Act: Work, IDs: []string{"l1"}, Key: "539068e2-ae88-4d09-bd75-22eb4a59612f",
			Projects: []string{"LIN", "Linear", "72b2a2dc-6f4f-4423-9d34-24b5bd10634a"},
			Senders:  []string{"b5ea5f1f-8adc-4f52-b4bd-ab4e84cf51ba", "Linear User", "user@example.com"},
			Labels:   []string{"Bug"}, Title: "Foo bar", Text: "The export loses the last row.", URL: "https://linear.app/example/issue/LIN-1778/foo-bar",
		}},
		{PagerDuty, "pagerduty-incident", nil, Event{
			Name: "incident.triggered", Act: Work, Again: true, IDs: []string{"5ac64822-4adc-4fda-ade0-410becf0de4f"},
			Key:      "incident/PGR0VU2",
			Projects: []string{"API Service", "PF9KMXH"}, Senders: []string{"Tenex Engineer", "PLH1HKV"}, Labels: []string{},
			Title: "A little bump in the road", URL: "https://acme.pagerduty.com/incidents/PGR0VU2",
			Text: "Incident: 2\nService: API Service\nUrgency: high\nPriority: P1\nStatus: triggered\nKey: d3640fbd41094207a1c11e58e46b1662\n" +
				"Created: 2020-04-09T15:16:27Z",
		}},
		{Generic, "generic", []string{"Webhook-Id", "w1"}, Event{
			Name: "alert", Act: Work, Again: true, IDs: []string{"w1"}, Key: "disk/db-1", Projects: []string{"database"},
			Senders: []string{"watchman"},
			Labels:  []string{}, Title: "Disk of db-1 is nearly full", Text: "92 % of /var are in use.",
			URL: "https://status.example.com/alerts/17",
		}},
	} {
		got, _, err := Read(c.kind, request(payload(t, c.file), c.header...), Mapping{})
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s of %s:\n%+v, %v\nwant\n%+v", c.file, c.kind, got, err, c.want)
		}
	}
	for file, kind := range map[string]string{"linear-comment": Linear, "gitea-push": Gitea} {
		if got, _, err := Read(kind, request(payload(t, file)), Mapping{}); err != nil || got.Act != Ignored {
			t.Errorf("%s is %q, %v", file, got.Act, err)
		}
	}
	if got, _, err := Read(PagerDuty, request(payload(t, "pagerduty-ping")), Mapping{}); err != nil || got.Act != Ping {
		t.Errorf("a ping of PagerDuty is %q, %v", got.Act, err)
	}
}

// What is no news, or none that wants work, is told apart from what does.
func TestActs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind, body string
		header     []string
		want       Act
		key        string
		labelled   bool
	}{
		"a pull request": {kind: Gitea, header: []string{"X-Gitea-Event", "issues"}, body: `{"action": "opened", "issue": {"number": 1, "title": "t", "pull_request": {}}, "repository": {"full_name": "a/b"}}`, want: Nothing, key: "a/b#1"},
		"an edit": {kind: Gitea, header: []string{"X-Gitea-Event", "issues"}, body: `{"action": "edited", "issue": {"title": "t"}}`,
			want: Ignored},
		"a label":          {kind: Gitea, header: []string{"X-Gitea-Event", "issues"}, body: `{"action": "label_updated", "issue": {"title": "t"}}`, want: Work, labelled: true},
		"a closed one":     {kind: Gitea, header: []string{"X-Gitea-Event", "issues"}, body: `{"action": "label_updated", "issue": {"title": "t", "state": "closed"}}`, want: Nothing, labelled: true},
		"no title":         {kind: Gitea, header: []string{"X-Gitea-Event", "issues"}, body: `{"action": "opened", "issue": {"title": " \u200b "}}`, want: Nothing},
		"gitlab, update":   {kind: GitLab, body: `{"object_kind": "issue", "object_attributes": {"action": "update", "title": "t"}}`, want: Ignored},
		"gitlab, labels":   {kind: GitLab, body: `{"object_kind": "issue", "object_attributes": {"action": "update", "title": "t"}, "changes": {"labels": {}}}`, want: Work, labelled: true},
		"gitlab, push":     {kind: GitLab, body: `{"object_kind": "push"}`, want: Ignored},
		"sentry, resolved": {kind: Sentry, header: []string{"Sentry-Hook-Resource", "issue"}, body: `{"action": "resolved", "data": {"issue": {"id": "1", "title": "t"}}}`, want: Ignored, key: "issue/1"},
		"sentry, regressed": {kind: Sentry, header: []string{"Sentry-Hook-Resource", "issue"}, body: `{"action": "unresolved", "data": {"issue": {"id": "1", "title": "t", "substatus": "regressed", "lastSeen": "2026-11-02T10:00:00Z"}}}`, want: Work,
			key: "issue/1/regressed/2026-11-02"},
		"sentry, escalating": {kind: Sentry, header: []string{"Sentry-Hook-Resource", "issue"}, body: `{"action": "unresolved", "data": {"issue": {"id": "1", "title": "t", "substatus": "escalating"}}}`, want: Work, key: "issue/1"},
		"sentry, an error":   {kind: Sentry, header: []string{"Sentry-Hook-Resource", "error"}, body: `{"action": "created", "data": {"error": {"issue_id": 7, "title": "t"}}}`, want: Work, key: "issue/7"},
		"sentry, critical": {kind: Sentry, header: []string{"Sentry-Hook-Resource", "metric_alert"}, body: `{"action": "critical", "data": {"description_title": "t", "metric_alert": {"id": "3", "projects": ["api"]}}}`, want: Work,
			key: "metric/3"},
		"sentry, warning": {kind: Sentry, header: []string{"Sentry-Hook-Resource", "metric_alert"}, body: `{"action": "warning", "data": {"description_title": "t", "metric_alert": {"id": "3"}}}`, want: Nothing,
			key: "metric/3"},
		"sentry, a comment": {kind: Sentry, header: []string{"Sentry-Hook-Resource", "comment"}, body: `{"action": "created"}`,
			want: Ignored},
		"linear, labels":       {kind: Linear, body: `{"type": "Issue", "action": "update", "updatedFrom": {"labelIds": []}, "data": {"id": "1", "title": "t"}}`, want: Work, key: "1", labelled: true},
		"linear, update":       {kind: Linear, body: `{"type": "Issue", "action": "update", "updatedFrom": {"title": ""}, "data": {"id": "1", "title": "t"}}`, want: Ignored, key: "1"},
		"linear, done":         {kind: Linear, body: `{"type": "Issue", "action": "create", "data": {"id": "1", "title": "t", "state": {"type": "completed"}}}`, want: Nothing, key: "1"},
		"pagerduty, reopened":  {kind: PagerDuty, body: `{"event": {"event_type": "incident.reopened", "occurred_at": "2026-11-02T10:00:00Z", "data": {"id": "P", "title": "t"}}}`, want: Work, key: "incident/P/reopened/2026-11-02"},
		"pagerduty, resolved":  {kind: PagerDuty, body: `{"event": {"event_type": "incident.resolved", "data": {"id": "P"}}}`, want: Ignored, key: "incident/P"},
		"generic, our ping":    {kind: Generic, header: []string{"X-Service-Event-Version", "1"}, body: `{"id": "evt_1", "type": "test.ping", "data": {}}`, want: Ping},
		"generic, a challenge": {kind: Generic, body: `{"type": "url_verification", "challenge": "abc"}`, want: Ping},
		"generic, nothing":     {kind: Generic, body: `{}`, want: Nothing},
	} {
		got, _, err := Read(c.kind, request([]byte(c.body), c.header...), Mapping{})
		if err != nil || got.Act != c.want || got.Key != c.key || got.Labelled != c.labelled {
			t.Errorf("%s: %q %q %v, %v", name, got.Act, got.Key, got.Labelled, err)
		}
	}
	got, _, _ := Read(Generic, request([]byte(`{"type": "url_verification", "challenge": "abc"}`)), Mapping{})
	if got.Challenge != "abc" {
		t.Errorf("the challenge is %q", got.Challenge)
	}
	got, _, _ = Read(Generic, request([]byte(`{"id": "evt_1", "title": "t"}`), "X-Service-Event-Version", "1"), Mapping{})
	if got.Ours != "evt_1" {
		t.Errorf("our own event is %q", got.Ours)
	}
}

// What is no JSON object is refused.
func TestMalformed(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		"", "null", "[]", "7", "{", `{"a": 1, "a": 2}`, "{} {}", "{}x", "\ufeff{}", "{\"a\": \"\xff\"}", `{"a": NaN}`, "\x1f\x8b\x08",
		strings.Repeat(`{"a":`, 101) + "1" + strings.Repeat("}", 101), strings.Repeat(`{"a":[`, 300_000),
	} {
		if _, _, err := Read(Generic, request([]byte(body)), Mapping{}); !errors.Is(err, ErrMalformed) {
			t.Errorf("%.40q: %v", body, err)
		}
	}
	if _, err := Parse([]byte(" " + strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100) + "\n")); err != nil {
		t.Errorf("a hundred deep: %v", err)
	}
}

// Text of strangers is harmless: it hides nothing, turns nothing around, calls nobody and
// holds no secret.
func TestTexts(t *testing.T) {
	t.Parallel()
	key := "ghp_" + strings.Repeat("a1B2", 9)
	for in, want := range map[string]string{
		"@everyone look":             "＠everyone look",
		"mail ann@example.com":       "mail ann@example.com",
		"a\r\nb\tc":                  "a b c",
		"safe\u202egnp.exe":          "safegnp.exe",
		"\x1b[31mred":                "[31mred",
		"<!channel> and <b>":         "<!channel> and <b>",
		"key " + key:                 "key [redacted]",
		"k\u200bey " + key:           "key [redacted]",
		"nul\x00":                    "nul",
		strings.Repeat("ä", 201):     strings.Repeat("ä", 199) + "…",
		"password=hunter2hunter2 is": "password=[redacted] is",
	} {
		if got := Line(in, maxTitle); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
	if got := Text("a\r\nb \u202e" + key + "\x00"); got != "a\nb \\u202e[redacted]" {
		t.Errorf("a text is %q", got)
	}
	for _, at := range []string{"javascript:alert(1)", "//x", "https://u:p@x/", "https://x/" + strings.Repeat("a", 500), "%", "/a"} {
		if got := link(at); got != "" {
			t.Errorf("the link %q is %q", at, got)
		}
	}
}

// What is kept of a delivery has no secret, and is as long as it may be.
func TestKeep(t *testing.T) {
	t.Parallel()
	d, err := Parse(payload(t, "gitea-push"))
	if err != nil {
		t.Fatal(err)
	}
	text, ok := d.Keep()
	if !ok || strings.Contains(string(text), "3gEsCfj") || !strings.Contains(string(text), `"secret":"[redacted]"`) {
		t.Errorf("%v %s", ok, text)
	}
	d, err = Parse([]byte(`{"a": {"X-API-Key": {"b": 1}, "n": 12345678901234567890, "t": "` + strings.Repeat("x", 5000) + `"}}`))
	if err != nil {
		t.Fatal(err)
	}
	text, ok = d.Keep()
	if !ok || !strings.Contains(string(text), `"X-API-Key":"[redacted]"`) || !strings.Contains(string(text), `"n":12345678901234567890`) ||
		len(text) > 4200 {
		t.Errorf("%v %.80s", ok, text)
	}
	d, err = Parse([]byte(`{"a": [` + strings.TrimSuffix(strings.Repeat(`"12345678",`, 10_000), ",") + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok = d.Keep(); ok {
		t.Error("a hundred kilobytes are kept")
	}
}

func TestMapping(t *testing.T) {
	t.Parallel()
	body := []byte(`{"alert": {"name": "disk", "labels": ["a", "b"], "x/y": 7, "on": true}, "status": "firing"}`)
	m := Mapping{
		Title: "{/alert/name} of {/alert/labels/1}, {/none}{/alert/x~1y} {/alert/on}", Body: "/alert/labels", DedupeKey: "/alert/name",
		When: &When{At: "/status", Is: []string{"open", "firing"}},
	}
	if wrong := m.Check(); len(wrong) != 0 {
		t.Fatal(wrong)
	}
	e, _, err := Read(Generic, request(body), m)
	if err != nil || e.Title != "disk of b, 7 true" || e.Text != "" || e.Key != "disk" || e.Act != Work {
		t.Errorf("%+v %v", e, err)
	}
	m.When.Is = []string{"resolved"}
	if e, _, _ = Read(Generic, request(body), m); e.Act != Nothing {
		t.Errorf("the condition does not hold, and it is %q", e.Act)
	}
	for field, m := range map[string]Mapping{
		"title":      {Title: "{/a~2}"},
		"body":       {Body: "/a~"},
		"dedupe_key": {DedupeKey: "{a}"},
		"project":    {Project: strings.Repeat("{/a}", 21)},
		"when.at":    {When: &When{At: "status", Is: []string{"a"}}},
		"when.is":    {When: &When{At: "/status"}},
	} {
		if wrong := m.Check(); len(wrong) != 1 || wrong[field] == "" {
			t.Errorf("%s: %v", field, wrong)
		}
	}
}
