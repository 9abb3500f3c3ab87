// Package llm carries calls to language models. Its gateway takes a call in one
// of four wire forms (Anthropic messages, OpenAI chat completions, OpenAI
// responses, Gemini contents) with a token that is valid for model calls alone,
// sends the call on with the account's own key, streams the answer back byte for
// byte and counts its cost. The holder of the token never sees the key. The
// gateway does not translate one wire form into another.
//
// The parts of the gateway are exported, because the box's loopback gateway uses
// them too: Request reads and rewrites a body, Meter counts and judges an answer (by
// package answer, which reads it), Relay moves bytes and holds an answer back until
// its content comes, Refuse writes an error in the form that the API's clients
// expect.
//
//   - gateway.go: the gateway and the interfaces that it needs
//   - call.go, failover.go: a try over a route, and which route is tried
//   - provider.go: wire forms, providers and routes
//   - request.go, gemini.go: the body of a call
//   - price.go, quote.go: prices, and the bounds of a call's cost
//   - limiter.go: the limits of concurrent calls
//   - relay.go, transport.go, plain.go: connections to providers
//   - usage.go: token counts, and whether an answer is whole
//   - refuse.go: error answers
//   - caller.go, probe.go: the platform's own calls
package llm

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/lazy"
)

// API is a wire form.
type API string

// The wire forms. The gateway also serves CountTokens, GeminiCount and ModelList,
// which cost nothing.
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
	path   string // below the upstream's version folder; in the Gemini API, the part after the model
	model  string // the model that the address names, in the Gemini API
	stream bool   // the address asks for a stream
}

// Billed tells whether the cost of a call to the endpoint is counted.
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

// Address is the endpoint's path and query for a model, below the address of the
// next gateway.
func (e Endpoint) Address(model string) string {
	if !e.namesModel() {
		return "/v1" + e.path
	}
	u := url.URL{Path: geminiFolder + model + e.path, RawQuery: e.query()}
	return u.String()
}

// Provider is an operator of models.
type Provider string

// adapters has each provider, in the order of lists. A provider is a file provider_NAME.go, which
// has its name and its adapter, and answers in internal/proof/recorded.
var adapters []*adapter

// known adds a provider, whose place is its own.
func known(a adapter) bool {
	at, taken := slices.BinarySearchFunc(adapters, a.place, func(b *adapter, place int) int { return cmp.Compare(b.place, place) })
	if taken {
		panic("llm: " + string(a.provider) + " has the place of " + string(adapters[at].provider))
	}
	adapters = slices.Insert(adapters, at, &a)
	return true
}

// adapter is what the gateway knows of a provider.
type adapter struct {
	provider Provider
	place    int    // in lists; a new one takes the next that is free
	base     string // used when the route names none; empty: the route must
	apis     []API
	model    string // of a template that names none; empty: a template must
	// authorize puts a key into a call, in the form that the provider reads; the key may
	// be empty. The call is whole otherwise, so that it can be signed: GetBody gives its
	// body.
	authorize func(r *http.Request, key string, api API)

	addressed bool          // each key has an address of its own
	keyless   bool          // a key is not needed
	local     bool          // answered in process, by Config.Scripted
	list      string        // the query of the whole list of models
	own       string        // the path that tells of the key itself, below the version folder; empty: the list of models
	cacheLife time.Duration // of what a call has put into the cache of prompts; 0: five minutes
	outputCap string        // the member that caps the output of chat completions; empty: max_tokens
	// maker is who makes a model and what it is called there, for a provider that
	// charges the makers' prices; nil: it has its own.
	maker func(model string) (Provider, string)

	// form is how a key is written, and fits tells whether it is; nil: a key may be anything.
	form string
	fits func(key string) bool
	// locate is the address of an endpoint for a model, whose answer is a stream or not, where
	// addresses are of another form; nil: they are below a version folder.
	locate func(r Route, e Endpoint, model string, stream bool) (*url.URL, error)
	// shape is the body of a call as the provider takes it, which may say there what the
	// header says elsewhere; nil: as it is.
	shape func(body []byte, h http.Header) []byte
	// opened makes an answer one of the API's form; nil: it is.
	opened func(*http.Response)
	// listed reads the list of models; nil: it is that of OpenAI.
	listed   func(text []byte) ([]string, error)
	deployed bool // the models are what the owner of the key has named
}

// bearer authorizes as most providers do.
func bearer(r *http.Request, key string, _ API) {
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
}

// adapter finds what is known of a provider; false for an unknown one.
func (p Provider) adapter() (*adapter, bool) {
	for _, a := range adapters {
		if a.provider == p {
			return a, true
		}
	}
	return &adapter{}, false
}

// Base is the address of the provider's API; empty if each key has one of its own.
func (p Provider) Base() string {
	a, _ := p.adapter()
	return a.base
}

// Values lists the names of all providers.
func (Provider) Values() []string {
	out := make([]string, len(adapters))
	for i, a := range adapters {
		out[i] = string(a.provider)
	}
	return out
}

// Providers lists all providers.
func Providers() []Provider {
	out := make([]Provider, len(adapters))
	for i, a := range adapters {
		out[i] = a.provider
	}
	return out
}

// Speakers are the providers of an API for which an account can have a key.
func Speakers(api API) (out []Provider) {
	for _, a := range adapters {
		if !a.local && slices.Contains(a.apis, api) {
			out = append(out, a.provider)
		}
	}
	return out
}

// Speaks tells whether the provider offers an API.
func (p Provider) Speaks(api API) bool {
	a, _ := p.adapter()
	return slices.Contains(a.apis, api)
}

// Addressed tells whether each key of the provider has an address of its own.
func (p Provider) Addressed() bool {
	a, _ := p.adapter()
	return a.addressed
}

// WithAddress names the providers of which each key has an address of its own.
func WithAddress() string {
	var names []string
	for _, a := range adapters {
		if a.addressed {
			names = append(names, string(a.provider))
		}
	}
	return "the providers " + strings.Join(names, " and ")
}

// Keyless tells whether the provider may be used without a key.
func (p Provider) Keyless() bool {
	a, _ := p.adapter()
	return a.keyless
}

// KeyForm is how a key of the provider is written, if the key is not; empty: it may be.
func (p Provider) KeyForm(key string) string {
	if a, _ := p.adapter(); a.fits != nil && !a.fits(key) {
		return a.form
	}
	return ""
}

// Deployed tells whether the names of the provider's models are those that the owner of a key
// has given, so that its list of models does not have them.
func (p Provider) Deployed() bool {
	a, _ := p.adapter()
	return a.deployed
}

// Local tells whether the provider answers within this server, so that a key is of no
// use to it.
func (p Provider) Local() bool {
	a, _ := p.adapter()
	return a.local
}

// DefaultModel is the model of a template that names none; "" for a provider
// without a default.
func (p Provider) DefaultModel() string {
	a, _ := p.adapter()
	return a.model
}

// CacheLife is how long the provider keeps what a call has put into its cache.
func (p Provider) CacheLife(t Tokens) time.Duration {
	a, _ := p.adapter()
	if t.CacheWriteHourTokens > 0 {
		return time.Hour
	}
	return cmp.Or(a.cacheLife, 5*time.Minute)
}

// Route is the destination of one call.
type Route struct {
	Provider Provider
	// BaseURL replaces the provider's own address. A path without a version
	// segment (/v1, /v4, /v1beta) gets /v1.
	BaseURL string
	Key     string
	Model   string // the model to ask for; empty: the caller's

	// ID and Version are the Authorizer's: the id of the route's key, and which of the
	// secrets that the key has had Key is.
	ID      string
	Version int64
	Prices  *Prices // of calls over the route; nil: the gateway's table
	Lent    Lender  // whose key it is, if not of whose call it is
	Capped  bool    // the key has a limit of its own
}

// Lender is who has lent a key: the id of the gift, and of the account that gave it. It is the
// Authorizer's.
type Lender struct{ Gift, Account string }

// String omits the key, so that a route can be logged.
func (r Route) String() string { return fmt.Sprintf("%s %s %s", r.Provider, r.BaseURL, r.Model) }

// GoString omits the key from %#v.
func (r Route) GoString() string { return "llm.Route{" + r.String() + "}" }

// Secrets are the route's key and its parts, where it has some: what must stand in no text.
func (r Route) Secrets() (out []string) {
	if r.Key == "" {
		return nil
	}
	out = []string{r.Key}
	for part := range strings.SplitSeq(r.Key, ":") {
		if len(part) >= 16 && part != r.Key {
			out = append(out, part)
		}
	}
	return out
}

var version = lazy.New(`(^|/)v\d+[a-z0-9]*(/|$)`)

// address is the URL of a path below the route's version folder.
func (r Route) address(path string) (*url.URL, error) {
	a, ok := r.Provider.adapter()
	if !ok {
		return nil, fmt.Errorf("unknown provider %q", r.Provider)
	}
	base := r.BaseURL
	if base == "" {
		base = a.base
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

// authorize puts the key into a call that is whole otherwise.
func (r Route) authorize(req *http.Request, api API) {
	if a, ok := r.Provider.adapter(); ok && a.authorize != nil {
		a.authorize(req, r.Key, api)
	}
}

// Token finds the caller's token in the headers that the APIs' clients use. The
// Gemini API also takes a key from the query; a token in a query would end in
// logs, so Token does not read it.
func Token(h http.Header) string {
	if scheme, token, ok := strings.Cut(h.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token)
	}
	return cmp.Or(h.Get("X-Api-Key"), h.Get(googleKey))
}
