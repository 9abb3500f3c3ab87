package llm_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"yardmaster/internal/fault"
	"yardmaster/internal/llm"
)

const bedrockKey = "eu-central-1:AKIAEXAMPLE000000001:exampleSecretAccessKey/of+forty000000000"

// amazon takes calls as Bedrock does: it signs what has come again, and compares.
type amazon struct {
	t          *testing.T
	paths      []string
	body, beta string
	answer     func(w http.ResponseWriter)
}

func (a *amazon) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		a.t.Error(err)
	}
	a.paths, a.body, a.beta = append(a.paths, r.Method+" "+r.RequestURI), string(body), r.Header.Get("Anthropic-Beta")
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		a.t.Errorf("signed at %q: %v", r.Header.Get("X-Amz-Date"), err)
	}
	got := r.Header.Get("Authorization")
	_, signed, _ := strings.Cut(got, "SignedHeaders=")
	names, _, _ := strings.Cut(signed, ",")
	again, err := http.NewRequest(r.Method, "http://"+r.Host+r.RequestURI, strings.NewReader(string(body)))
	if err != nil {
		a.t.Fatal(err)
	}
	for _, name := range strings.Split(names, ";") {
		if name != "host" && name != "content-length" {
			again.Header[http.CanonicalHeaderKey(name)] = r.Header.Values(name)
		}
	}
	sum := sha256.Sum256(body)
	err = v4.NewSigner().SignHTTP(context.Background(), aws.Credentials{
		AccessKeyID: "AKIAEXAMPLE000000001", SecretAccessKey: "exampleSecretAccessKey/of+forty000000000",
	}, again, hex.EncodeToString(sum[:]), "bedrock", "eu-central-1", at)
	if err != nil || again.Header.Get("Authorization") != got || !slices.Contains(strings.Split(names, ";"), "host") {
		a.t.Errorf("the signature is %q, not %q, %v", got, again.Header.Get("Authorization"), err)
	}
	a.answer(w)
}

func said(text string) func(w http.ResponseWriter) {
	return func(w http.ResponseWriter) { io.WriteString(w, text) }
}

// A call to Bedrock is signed, and is the caller's call: what the address says there is not in the
// body, and what a header says elsewhere is.
func TestBedrockCalls(t *testing.T) {
	far := &amazon{t: t, answer: said(`{"type":"message","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn",` +
		`"usage":{"input_tokens":1000000,"output_tokens":1000000}}`)}
	server := httptest.NewServer(far)
	defer server.Close()
	model := "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"
	d := &desk{route: llm.Route{Provider: llm.Bedrock, BaseURL: server.URL, Key: bedrockKey, Model: model}}
	url, _ := gateway(t, d, nil)
	req := ask(t, url, "/v1/messages", `{ "model" : "claude", "max_tokens":5,"stream":false, "messages":[{"role":"user","content":"say \"}\""}] }`)
	req.Header.Set("Anthropic-Beta", "interleaved-thinking-2025-05-14,context-1m-2025-08-07")
	resp, text := do(t, req)
	u := d.recorded(t)
	if resp.StatusCode != 200 || !strings.Contains(text, `"hi"`) || u.CostMicros == nil || *u.CostMicros != 31_350_000 {
		t.Errorf("%d %s %+v", resp.StatusCode, text, u)
	}
	want := `{"anthropic_version":"bedrock-2023-05-31","max_tokens":5,"messages":[{"role":"user","content":"say \"}\""}],` +
		`"anthropic_beta":["interleaved-thinking-2025-05-14","context-1m-2025-08-07"]}`
	if far.body != want || far.beta != "" {
		t.Errorf("the body is %s, and the header has %q", far.body, far.beta)
	}
	do(t, ask(t, url, "/v1/messages", `{"stream":true,"anthropic_beta":["a"]}`))
	if far.body != `{"anthropic_version":"bedrock-2023-05-31","anthropic_beta":["a"]}` {
		t.Errorf("the body is %s", far.body)
	}
	id := "/model/eu.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke"
	if want := []string{"POST " + id, "POST " + id + "-with-response-stream"}; !slices.Equal(far.paths, want) {
		t.Errorf("the addresses are %q", far.paths)
	}
}

// The list of models is asked for with a signature, too, and has what can be called.
func TestBedrockModels(t *testing.T) {
	far := &amazon{t: t, answer: said(`{"inferenceProfileSummaries":[{"inferenceProfileId":"us.amazon.nova-pro-v1:0"},` +
		`{"inferenceProfileId":"us.anthropic.claude-opus-4-1-20250805-v1:0"},{"inferenceProfileId":"global.anthropic.claude-x-v1:0"}]}`)}
	server := httptest.NewServer(far)
	defer server.Close()
	route := llm.Route{Provider: llm.Bedrock, BaseURL: server.URL, Key: bedrockKey}
	models, err := llm.Probe{}.Models(t.Context(), route)
	if err != nil || !slices.Equal(models, []string{"global.anthropic.claude-x-v1:0", "us.anthropic.claude-opus-4-1-20250805-v1:0"}) ||
		far.paths[0] != "GET /inference-profiles?maxResults=1000" {
		t.Errorf("%q %v %q", models, err, far.paths)
	}
	far.answer = func(w http.ResponseWriter) {
		w.Header().Set("X-Amzn-Errortype", "UnrecognizedClientException:http://internal.amazon.com/")
		w.WriteHeader(403)
		io.WriteString(w, `{"message":"The security token AKIAEXAMPLE000000001 included in the request is invalid."}`)
	}
	err = llm.Probe{}.Check(t.Context(), route)
	if f := fault.From(err); f.Slug != llm.SlugAuth || strings.Contains(f.Detail, "AKIAEXAMPLE") {
		t.Errorf("%v", err)
	}
}

// A key of Bedrock has a form, in which nothing leads to another host.
func TestBedrockKeys(t *testing.T) {
	t.Parallel()
	for key, ok := range map[string]bool{
		bedrockKey: true, "us-gov-west-1:a:b:session": true,
		"": false, "us-east-1:a": false, "a:b": false, "us-east-1::b": false, "us-east-1:a:b:c:d": false,
		"evil.test/#-1:a:b": false, "us-east-1.evil.test:a:b": false, "AKIA:secret:us-east-1": false,
	} {
		if got := llm.Bedrock.KeyForm(key) == ""; got != ok {
			t.Errorf("%q fits: %v", key, got)
		}
	}
	if llm.OpenAI.KeyForm("anything") != "" {
		t.Error("a key of OpenAI has no form")
	}
	for _, r := range []llm.Route{{Provider: llm.Bedrock, Key: "us-east-1.evil.test:a:b"}, {Provider: llm.Bedrock}} {
		if _, err := (llm.Probe{}).Models(t.Context(), r); err == nil || fault.From(err).Slug == llm.SlugUnavailable {
			t.Errorf("%v was asked: %v", r, err)
		}
	}
	if got := (llm.Route{Key: bedrockKey}).Secrets(); len(got) != 3 {
		t.Errorf("the secrets are %q", got)
	}
}
