package llm

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// Azure sells the models of OpenAI at Microsoft. Each key has an address of its own, and what
// is a model elsewhere is a deployment there, whose name its owner has chosen.
const Azure Provider = "azure"

// azureVersion is the version of Azure's API that calls are made in.
const azureVersion = "api-version=2024-10-21"

var _ = known(adapter{
	provider:  Azure,
	place:     8,
	apis:      []API{Chat, ModelList},
	addressed: true,
	deployed:  true,
	outputCap: "max_completion_tokens", // newer models refuse max_tokens
	locate: func(r Route, e Endpoint, model string, _ bool) (*url.URL, error) {
		u, err := url.Parse(r.BaseURL)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
			return nil, errors.New("the azure route has no http or https address")
		}
		path := e.path
		if e.API != ModelList {
			if !modelName.MatchString(model) || strings.Contains(model, "/") {
				return nil, errors.New("the deployment's name cannot be part of an address")
			}
			path = "/deployments/" + model + e.path
		}
		u.Path, u.RawPath, u.RawQuery, u.Fragment, u.User = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/openai")+"/openai"+path,
			"", azureVersion, "", nil
		return u, nil
	},
	authorize: func(r *http.Request, key string, _ API) {
		if key != "" {
			r.Header.Set("Api-Key", key)
		}
	},
})
