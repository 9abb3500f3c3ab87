// Package llm carries calls to language models. Its gateway takes a call in one
// of four wire forms (Anthropic messages, OpenAI chat completions, OpenAI
// responses, Gemini contents) with a token that is good for nothing else, sends
// it on with the account's own key, streams the answer back byte for byte and
// counts what it cost. Whoever holds the token never sees the key. Nothing is
// translated from one form into another.
//
// The pieces that the gateway is made of are exported, because the box's own
// loopback gateway is made of them too: Request reads and rewrites a body,
// Meter counts the tokens of an answer, Relay moves bytes, Refuse writes an
// error the way an API's clients expect it.
package llm

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// API is a wire form.
type API string

// The wire forms. CountTokens, GeminiCount and ModelList are served beside them
// and cost nothing.
const (
	Messages    API = "messages"
	Chat        API = "chat"
	Responses   API = "responses"
	Gemini      API = "gemini"
	CountTokens API = "count_tokens"
	GeminiCount API = "gemini_count_tokens"
	ModelList   API = "models"
)

// Endpoint is one address of the gateway.
type Endpoint struct {
	API    API
	Method string
	path   string // below the upstream's version folder; of the Gemini API behind the model
	model  string // that the address names, as those of the Gemini API do
	stream bool   // the address asks for a stream
}

// Billed tells whether a call to the endpoint is counted.
func (e Endpoint) Billed() bool {
	return e.API != CountTokens && e.API != GeminiCount && e.API != ModelList
}

// EndpointOf finds the endpoint of a path such as /v1/messages.
func EndpointOf(path string) (Endpoint, bool) {
	switch path {
	case "/v1/messages":
		return Endpoint{API: Messages, Method: http.MethodPost, path: "/messages"}, true
	case "/v1/messages/count_tokens":
		return Endpoint{API: CountTokens, Method: http.MethodPost, path: "/messages/count_tokens"}, true
	case "/v1/chat/completions":
		return Endpoint{API: Chat, Method: http.MethodPost, path: "/chat/completions"}, true
	case "/v1/responses":
		return Endpoint{API: Responses, Method: http.MethodPost, path: "/responses"}, true
	case "/v1/models":
		return Endpoint{API: ModelList, Method: http.MethodGet, path: "/models"}, true
	}
	return geminiEndpoint(path)
}

// Address is where the gateway behind this one serves the endpoint for a model:
// the path with its query, below that gateway's own address.
func (e Endpoint) Address(model string) string {
	if !e.namesModel() {
		return "/v1" + e.path
	}
	u := url.URL{Path: geminiFolder + model + e.path, RawQuery: e.query()}
	return u.String()
}

// Provider is who runs the model.
type Provider string

// The providers. Scripted answers from a scenario file, in process and offline.
const (
	Anthropic  Provider = "anthropic"
	OpenAI     Provider = "openai"
	Google     Provider = "google"
	OpenRouter Provider = "openrouter"
	Compatible Provider = "compatible" // anything that speaks one of the wire forms, at a base URL of the account's
	Scripted   Provider = "scripted"
)

// Providers lists all providers.
func Providers() []Provider {
	return []Provider{Anthropic, OpenAI, Google, OpenRouter, Compatible, Scripted}
}

// traits is what the gateway has to know of a provider.
type traits struct {
	base string // used when the route names none; empty: the route must
	apis []API
}

func (p Provider) traits() (traits, bool) {
	switch p {
	case Anthropic:
		return traits{"https://api.anthropic.com/v1", []API{Messages, CountTokens, ModelList}}, true
	case OpenAI:
		return traits{"https://api.openai.com/v1", []API{Chat, Responses, ModelList}}, true
	case Google:
		return traits{"https://generativelanguage.googleapis.com/v1beta" + chatOfGoogle, []API{Chat, Gemini, GeminiCount, ModelList}}, true
	case OpenRouter:
		return traits{"https://openrouter.ai/api/v1", []API{Chat, Responses, Messages, ModelList}}, true
	case Compatible:
		return traits{"", []API{Chat, Responses, Messages, CountTokens, ModelList}}, true
	case Scripted:
		return traits{"", []API{Chat, Responses, Messages, CountTokens, Gemini, GeminiCount, ModelList}}, true
	}
	return traits{}, false
}

// Speakers are the providers that offer an API and that anybody can have a key of.
func Speakers(api API) (out []Provider) {
	for _, p := range Providers() {
		if p != Scripted && p.Speaks(api) {
			out = append(out, p)
		}
	}
	return out
}

// Speaks tells whether the provider offers an API.
func (p Provider) Speaks(api API) bool {
	t, _ := p.traits()
	return slices.Contains(t.apis, api)
}

// Route is where one call goes.
type Route struct {
	Provider Provider
	// BaseURL replaces the provider's own address. A path without a version
	// segment (/v1, /v4, /v1beta) gets /v1.
	BaseURL string
	Key     string
	Model   string // the model to ask for; empty: the one the caller asked for
}

// String leaves the key out, so that a route can be logged.
func (r Route) String() string { return fmt.Sprintf("%s %s %s", r.Provider, r.BaseURL, r.Model) }

// GoString does the same for %#v.
func (r Route) GoString() string { return "llm.Route{" + r.String() + "}" }

var version = regexp.MustCompile(`(^|/)v\d+[a-z0-9]*(/|$)`)

// address is the URL of a path below the route's version folder.
func (r Route) address(path string) (*url.URL, error) {
	t, ok := r.Provider.traits()
	if !ok {
		return nil, fmt.Errorf("unknown provider %q", r.Provider)
	}
	base := r.BaseURL
	if base == "" {
		base = t.base
	}
	u, err := url.Parse(base)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("the %s route has no http or https address", r.Provider)
	}
	folder := strings.TrimRight(u.Path, "/")
	if !version.MatchString(folder) {
		folder += "/v1"
	}
	u.Path, u.RawPath, u.RawQuery, u.Fragment, u.User = folder+path, "", "", "", nil
	return u, nil
}

// authorize puts the key where the provider looks for it.
func (r Route) authorize(h http.Header, api API) {
	if api == Gemini || api == GeminiCount {
		if r.Key != "" {
			h.Set(googleKey, r.Key)
		}
		return
	}
	anthropic := api == Messages || api == CountTokens || r.Provider == Anthropic
	if anthropic && h.Get("Anthropic-Version") == "" {
		h.Set("Anthropic-Version", "2023-06-01")
	}
	if r.Key == "" {
		return
	}
	if anthropic && r.Provider != OpenRouter {
		h.Set("X-Api-Key", r.Key)
	}
	if r.Provider != Anthropic {
		h.Set("Authorization", "Bearer "+r.Key)
	}
}

// Token finds the caller's token in the places the APIs' clients use. The
// Gemini API also takes a key from the query; a token there would end in logs,
// so it is not looked for.
func Token(h http.Header) string {
	if scheme, token, ok := strings.Cut(h.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token)
	}
	return cmp.Or(h.Get("X-Api-Key"), h.Get(googleKey))
}

// DefaultModel is what a template that names no model gets; "" for a provider
// that has no model of its own.
func (p Provider) DefaultModel() string {
	switch p {
	case Anthropic:
		return "claude-sonnet-4-5"
	case OpenAI:
		return "gpt-5"
	case Google:
		return "gemini-2.5-pro"
	case OpenRouter:
		return "anthropic/claude-sonnet-4.5"
	case Scripted:
		return "scripted"
	}
	return ""
}
