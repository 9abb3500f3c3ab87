package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/fault"
)

// Probe asks a provider what a key may use, without spending anything.
type Probe struct {
	Transport http.RoundTripper // nil: NewTransport(nil)
	Scripted  http.Handler      // the provider scripted; nil: there is none
}

// probeTimeout bounds a probe: a person waits for its answer.
const probeTimeout = 20 * time.Second

// Models lists the models that the key may use, sorted. The fault says what is
// wrong with the key or the provider: provider_auth, provider_quota,
// provider_unavailable and so on. A list that everybody may read (OpenRouter's)
// says nothing of the key. Of an address that an account named the fault says only
// whether the key was refused: whatever else fails there is one sentence, so that it
// tells nothing of what listens where.
func (p Probe) Models(ctx context.Context, route Route) ([]string, error) {
	models, err := p.models(ctx, route)
	return models, spare(route, err)
}

// Check asks the provider whether it takes the key. It fails with the faults of Models:
// provider_auth and provider_quota are about the key, all else is about the provider.
func (p Probe) Check(ctx context.Context, route Route) error {
	a, _ := route.Provider.adapter()
	if a.own == "" {
		_, err := p.Models(ctx, route)
		return err
	}
	_, err := p.get(ctx, route, a.own, "")
	return spare(route, err)
}

// spare takes out of an error what it tells of an address that an account named.
func spare(route Route, err error) error {
	if err != nil && route.Provider.Addressed() && fault.From(err).Slug != SlugAuth {
		err = unavailable("The model provider could not be asked for its models.", err)
	}
	return err
}

func (p Probe) models(ctx context.Context, route Route) ([]string, error) {
	a, _ := route.Provider.adapter()
	text, err := p.get(ctx, route, "/models", a.list)
	if err != nil {
		return nil, err
	}
	if a.listed != nil {
		models, err := a.listed(text)
		if err != nil {
			return nil, unavailable("The model provider's list of models cannot be read.", err)
		}
		slices.Sort(models)
		return slices.Compact(models), nil
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, unavailable("The model provider's list of models cannot be read.", err)
	}
	models := make([]string, 0, len(list.Data))
	for _, m := range list.Data {
		models = append(models, strings.TrimPrefix(m.ID, "models/"))
	}
	slices.Sort(models)
	return slices.Compact(models), nil
}

// get reads a page of the provider, which costs nothing.
func (p Probe) get(ctx context.Context, route Route, path, query string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if route.Provider.Local() {
		return p.script(ctx)
	}
	address, err := route.addressOf(Endpoint{API: ModelList, path: path}, "", false)
	if err != nil {
		return nil, fault.Field("base_url", err.Error())
	}
	if query != "" {
		address.RawQuery = query
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("probe %s: %w", route, err)
	}
	route.authorize(req, ModelList)
	transport := p.Transport
	if transport == nil {
		once := NewTransport(nil)
		defer once.CloseIdleConnections()
		transport = once
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, unavailable("The model provider cannot be reached.", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		r, _ := upstreamRefusal(resp, ModelList, route)
		kind := fault.Unprocessable
		if r.Fault == SlugUnavailable || r.Fault == SlugRateLimit {
			kind = fault.Unavailable
		}
		return nil, fault.New(kind, r.Fault, r.Message)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, 8<<20))
	if err != nil {
		return nil, unavailable("The model provider cut its answer short.", err)
	}
	return text, nil
}

func (p Probe) script(ctx context.Context) ([]byte, error) {
	if p.Scripted == nil {
		return nil, unavailable("There is no scripted model here.", nil)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "/v1/models", nil)
	if err != nil {
		return nil, fmt.Errorf("probe the scripted model: %w", err)
	}
	var page page
	p.Scripted.ServeHTTP(&page, req)
	if page.status != 0 && page.status != http.StatusOK {
		return nil, unavailable("The scripted model does not answer.", nil)
	}
	return []byte(page.text.String()), nil
}

// page keeps an answer that is given in process.
type page struct {
	header http.Header
	status int
	text   strings.Builder
}

func (p *page) Header() http.Header {
	if p.header == nil {
		p.header = http.Header{}
	}
	return p.header
}

func (p *page) WriteHeader(status int) { p.status = status }

func (p *page) Write(b []byte) (int, error) { return p.text.Write(b) }
