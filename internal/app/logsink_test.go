package app

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/gateway"
	"yardmaster/internal/proof/patience"
)

// What is in the account's vaults and its model keys does not leave with copies of its model
// calls, however it is written; what else is said does.
func TestLogSinkTakesSecretsOut(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e db.Engine, flags []string) {
		received := make(chan string, 10)
		collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if body, err := io.ReadAll(r.Body); err == nil {
				received <- string(body)
			}
		}))
		t.Cleanup(collector.Close)
		y := start(t, e, append(flags, "--allow-networks", "127.0.0.0/8")...)
		y.push("acme/web", map[string]string{"README": "hello\n"})
		secrets := []string{
			"correct horse battery staple", "another plain phrase of words", "plain-key-of-the-account", "plain-key-of-a-person",
		}
		y.send("PUT", "/v1/secrets/PHRASE", y.owner, `{"value": "`+secrets[0]+`"}`).want(200)
		y.send("PUT", "/v1/repos/acme/web/secrets/PHRASE", y.owner, `{"value": "`+secrets[1]+`", "environment": "staging"}`).want(200)
		y.send("POST", "/v1/billing/keys", y.owner, `{"provider": "scripted"}`).want(201)
		y.send("POST", "/v1/billing/keys", y.owner,
			`{"provider": "compatible", "base_url": "http://127.0.0.1:1", "model": "m", "key": "`+secrets[2]+`"}`).want(201)
		y.send("POST", "/v1/me/keys", y.owner,
			`{"provider": "compatible", "base_url": "http://127.0.0.1:1", "key": "`+secrets[3]+`"}`).want(201)
		y.send("PUT", "/v1/billing/log-sink", y.owner, `{"kind": "https", "url": "`+collector.URL+`/in?key=hush"}`).want(200)
		if probe := patience.Receive(t, "the probe", received); !strings.Contains(probe, `"type":"probe"`) {
			t.Errorf("the probe is %s", probe)
		}
		c, err := y.parts.gateway.Open(t.Context(), gateway.Opening{
			AccountID: y.acct, Trigger: "ask", Kind: "triage", Model: "small", MaxTokens: 100,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.End(t.Context(), "succeeded")
		said := "words that leave: " + strings.Join(secrets, ", ")
		for _, s := range secrets {
			said += ", " + base64.StdEncoding.EncodeToString([]byte("of it: "+s+"."))
		}
		var batch string
		patience.Until(t, "a copy comes once the node knows the sink", func() bool {
			if _, err := c.Say(t.Context(), "", []string{said}); err != nil {
				t.Error(err)
			}
			select {
			case batch = <-received:
				return true
			default:
				return false
			}
		})
		if !strings.Contains(batch, "words that leave: [redacted], [redacted], [redacted], [redacted], ") {
			t.Errorf("received %s", batch)
		}
		for _, s := range secrets {
			encoded := base64.StdEncoding.EncodeToString([]byte("of it: " + s))
			if strings.Contains(batch, s) || strings.Contains(batch, encoded[12:32]) {
				t.Errorf("%q has left: %s", s, batch)
			}
		}
	})
}
