package llm_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/llm"
	"yardmaster/internal/llm/frames"
	"yardmaster/internal/proof/recorded"
)

// recordings are the first words of the names of the cases that the answers of a provider are
// in, if that is not its own name. A case of another name is played over the first provider of
// its API.
var recordings = map[llm.Provider][]string{
	llm.OpenAI:     {"chat", "responses"},
	llm.Google:     {"gemini"},
	llm.Compatible: {"deepseek", "groq", "llamacpp", "lmstudio", "mistral", "ollama", "vllm", "xai"},
}

func recordingsOf(p llm.Provider) []string {
	if names := recordings[p]; names != nil {
		return names
	}
	return []string{string(p)}
}

// recordedCall is how a case is called: its path at the gateway, and its provider.
func recordedCall(c recorded.Case) (path, body string, p llm.Provider) {
	path, p = "/v1/chat/completions", llm.Compatible
	switch c.API {
	case "anthropic.messages", "bedrock.invoke", "bedrock.converse":
		path, p = "/v1/messages", llm.Anthropic
	case "openai.responses":
		path, p = "/v1/responses", llm.OpenAI
	case "google.generate":
		path, p = "/v1beta/models/m:generateContent", llm.Google
		if c.Call.Stream {
			path = "/v1beta/models/m:streamGenerateContent?alt=sse"
		}
	}
	first, _, _ := strings.Cut(c.Name, "-")
	for _, of := range llm.Providers() {
		if slices.Contains(recordingsOf(of), first) {
			p = of
		}
	}
	if body = fmt.Sprintf(`{"model":"m","stream":%v}`, c.Call.Stream); c.API == "google.generate" {
		body = `{}`
	}
	return path, body, p
}

// routeTo is a route with a key of the provider's form.
func routeTo(p llm.Provider, address string) llm.Route {
	r := llm.Route{Provider: p, BaseURL: address, Key: key, ID: "1"}
	if p.KeyForm(key) != "" {
		r.Key = bedrockKey
	}
	return r
}

// TestProvidersAreWhole: each provider of the table has a file of its own and, unless it
// answers within the server, recorded answers that the gateway serves, over an API that it
// speaks. One without a default model or an address says so where keys are checked.
func TestProvidersAreWhole(t *testing.T) {
	t.Parallel()
	served := map[string]int{}
	for _, c := range recorded.Served(t) {
		first, _, _ := strings.Cut(c.Name, "-")
		served[first]++
	}
	files, err := filepath.Glob("provider_*.go")
	if err != nil || len(files) != len(llm.Providers()) {
		t.Errorf("%q are files of %d providers, %v", files, len(llm.Providers()), err)
	}
	for _, p := range llm.Providers() {
		if !slices.Contains(files, "provider_"+string(p)+".go") {
			t.Errorf("%s has no file of its own", p)
		}
		if !p.Speaks(llm.ModelList) || p.DefaultModel() == "" && !p.Addressed() {
			t.Errorf("%s lists no models, or has neither a model of its own nor addresses", p)
		}
		if p.Local() {
			continue
		}
		for _, name := range recordingsOf(p) {
			if served[name] == 0 {
				t.Errorf("no answer of %s is recorded as %s-…", p, name)
			}
		}
	}
	if first := []string{"anthropic", "openai", "google", "openrouter", "compatible", "scripted"}; len(files) < len(first) ||
		!slices.Equal(llm.Provider("").Values()[:len(first)], first) {
		t.Errorf("the providers are %q", llm.Provider("").Values())
	}
}

// Every recorded answer goes through the gateway: a whole one byte for byte, with its
// counts; one that fails before its content as a refusal that names the kind, the
// wait and the numbers; one that fails later broken off or with the provider's error.
func TestRecordedAnswersThroughTheGateway(t *testing.T) {
	far := recorded.Play(t)
	d := &desk{}
	patient, _ := gateway(t, d, nil)
	records := d.usage
	hasty, _ := gateway(t, d, func(c *llm.Config) { c.Idle = 300 * time.Millisecond })
	d.usage = records
	for _, c := range recorded.Served(t) {
		variants := []string{"", "~byte"}
		if c.Answer.None || len(c.Answer.Body()) > 4<<10 {
			variants = variants[:1]
		}
		for _, how := range variants {
			path, body, p := recordedCall(c)
			d.mu.Lock()
			d.route = routeTo(p, far.URL+"/"+c.Name+how)
			d.mu.Unlock()
			url := patient
			if c.Answer.End == "hang" {
				url = hasty
			}
			resp, err := http.DefaultClient.Do(ask(t, url, path, body))
			if err != nil {
				t.Fatalf("%s: %v", c.Name, err)
			}
			text, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			played{c, resp, string(text), err, d.recorded(t)}.check(t)
		}
	}
}

// sent is what the caller gets of a whole answer: what the provider has sent, but for frames.
func (p played) sent(t *testing.T) string {
	t.Helper()
	body := p.Answer.Body()
	if p.Answer.Header.Get("Content-Type") != frames.Type {
		return string(body)
	}
	text, err := io.ReadAll(frames.Events(io.NopCloser(bytes.NewReader(body))))
	if err != nil && p.Want.Error == nil {
		t.Error(p.Name, err)
	}
	return string(text)
}

// played is what the caller and the record have of a case.
type played struct {
	recorded.Case
	resp *http.Response
	text string
	err  error // with which the answer ended for the caller
	u    llm.Usage
}

func (p played) check(t *testing.T) {
	t.Helper()
	wrong := func(what string, v any) { t.Errorf("%s: %s: %v; %d %s", p.Name, what, v, p.resp.StatusCode, p.text) }
	w := p.Want
	switch {
	case w.Error == nil:
		if p.resp.StatusCode != 200 || p.err != nil || p.text != p.sent(t) || p.u.Kind != "" || p.u.Fault != "" {
			wrong("a whole answer", p.u)
		}
	case string(p.u.Kind) != w.Error.Kind:
		wrong("the kind is recorded as", p.u.Kind)
	case w.Begun() && p.resp.StatusCode == 200:
		if !strings.HasPrefix(p.sent(t), p.text) || w.AnotherRoute {
			wrong("other bytes", p.err)
		}
		if w.Error.Kind == "cut" && p.err == nil {
			wrong("a cut answer ended properly", p.u)
		}
	case w.Begun() && p.Answer.End != "reset": // a reset may throw away what was sent
		wrong("what had begun is refused", p.u)
	default:
		p.refused(t, wrong)
	}
	switch want := w.Usage; {
	case want != nil:
		got := recorded.Usage{Input: p.u.InputTokens, Output: p.u.OutputTokens, CacheRead: p.u.CacheReadTokens,
			CacheWrite5m: p.u.CacheWriteTokens, CacheWrite1h: p.u.CacheWriteHourTokens, Reasoning: want.Reasoning, Cost: want.Cost}
		if got != *want || p.u.Estimated {
			wrong("counted", p.u)
		}
	case w.Error == nil != p.u.Estimated && !w.Begun():
		wrong("estimated", p.u)
	case !p.u.Estimated && p.u.Tokens != (llm.Tokens{}):
		wrong("counted", p.u)
	}
}

// refused holds an answer that failed before its content.
func (p played) refused(t *testing.T, wrong func(string, any)) {
	t.Helper()
	f := p.Want.Error
	slugs := map[string]string{
		"rate_limited": llm.SlugRateLimit, "overloaded": llm.SlugUnavailable, "quota": llm.SlugQuota, "auth": llm.SlugAuth,
		"server": llm.SlugUnavailable, "cut": llm.SlugUnavailable, "not_a_model_answer": llm.SlugUnavailable,
	}
	statuses := map[string]int{
		"rate_limited": 429, "quota": 402, "auth": 403, "not_a_model_answer": 502, "context_length": 400, "bad_request": 400,
	}
	slug, status := slugs[f.Kind], statuses[f.Kind]
	if f.Kind == "bad_request" && p.Answer.Status == 404 {
		slug, status = llm.SlugModel, 404
	}
	if f.Kind == "bad_request" && p.Answer.Status == 413 {
		status = 413
	}
	if status == 0 && p.resp.StatusCode < 500 || status != 0 && p.resp.StatusCode != status {
		wrong("the status", p.resp.Status)
	}
	if p.resp.Header.Get(llm.FaultHeader) != slug || p.resp.Header.Get(llm.KindHeader) != f.Kind || p.u.Fault != slug || p.err != nil {
		wrong("the fault", p.u)
	}
	if f.Kind == "rate_limited" || f.Kind == "overloaded" {
		want := ""
		if f.RetryAfterMS != nil {
			want = strconv.FormatInt(*f.RetryAfterMS, 10)
		}
		if got := p.resp.Header.Get("Retry-After-Ms"); got != want || (p.resp.Header.Get("Retry-After") == "") != (want == "") {
			wrong("the wait", got)
		}
	}
	if f.Kind != "context_length" {
		return
	}
	known := "context"
	if p.API == "anthropic.messages" || strings.HasPrefix(p.API, "bedrock.") {
		known = "prompt is too long"
	}
	if !strings.Contains(strings.ToLower(p.text), known) {
		wrong("an agent does not see that", f.Kind)
	}
	if f.Limit == nil {
		return
	}
	limit, asked := strconv.FormatInt(*f.Limit, 10), strconv.FormatInt(*f.Asked, 10)
	if summed := strings.Contains(p.text, " + "); !strings.Contains(p.text, limit) || !summed && !strings.Contains(p.text, asked) {
		wrong("without its numbers", limit+" "+asked)
	}
}

// The gateway asks for no compression, and refuses a compressed answer, because it
// could not count it.
func TestRecordedAnswersCompressed(t *testing.T) {
	far, d := recorded.Play(t), &desk{}
	url, _ := gateway(t, d, nil)
	seen := 0
	for _, c := range recorded.All(t) {
		if c.Answer.Header.Get("Content-Encoding") == "" {
			continue
		}
		seen++
		path, body, p := recordedCall(c)
		d.route = llm.Route{Provider: p, BaseURL: far.URL + "/" + c.Name}
		resp, text := do(t, ask(t, url, path, body))
		if u := d.recorded(t); resp.StatusCode != 502 || !strings.Contains(text, "compressed") || u.Fault != llm.SlugUnavailable {
			t.Errorf("%s: %d %s %+v", c.Name, resp.StatusCode, text, u)
		}
	}
	if seen == 0 {
		t.Error("no case is compressed")
	}
}
