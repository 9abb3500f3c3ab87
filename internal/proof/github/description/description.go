// Package description judges what is said to GitHub and by it against what GitHub
// publishes: its OpenAPI description of REST and of deliveries, and its GraphQL
// schema. Serve starts the peer with a judge, which fails the test for every request,
// answer and delivery that does not satisfy them, and for every operation that is not
// described.
//
// description.go judges, cut.go makes the part of the document that is needed,
// deviations.go lists where GitHub itself differs from its description. The documents
// are fetched by package source.
package description

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"yardmaster/internal/proof/github"
)

// Document names a published description.
type Document string

// The documents of the lock file.
const (
	Cloud      Document = "api.github.com.json" // github.com
	Enterprise Document = "ghes-3.19.json"      // GitHub Enterprise Server
)

// Judge holds exchanges and deliveries against a description. It is safe for
// concurrent use.
type Judge struct {
	doc *openapi3.T
	gql *grammar
}

var loaded sync.Map // Document -> func() (*Judge, error)

// Load returns the judge of a document. A process reads each document once.
func Load(d Document) (*Judge, error) {
	once, _ := loaded.LoadOrStore(d, sync.OnceValues(func() (*Judge, error) {
		ctx := context.Background()
		text, err := cut(ctx, string(d), github.Operations())
		if err != nil {
			return nil, err
		}
		doc, err := openapi3.NewLoader().LoadFromData(text)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", d, err)
		}
		gql, err := loadGrammar(ctx)
		return &Judge{doc, gql}, err
	}))
	return once.(func() (*Judge, error))()
}

// Serve starts a peer that lives as long as the test. Whatever is said to it or by it
// against the description fails the test. The functions of o that watch are called, too.
func Serve(t testing.TB, o github.Options) *github.Server {
	t.Helper()
	d := Cloud
	if o.Enterprise != "" {
		d = Enterprise
	}
	judge, err := Load(d)
	if err != nil {
		t.Fatal(err)
	}
	watch, watchDelivery := o.Watch, o.WatchDelivery
	o.Watch = func(e github.Exchange) {
		if watch != nil {
			watch(e)
		}
		if err := judge.Exchange(e); err != nil {
			t.Errorf("%s %s => %d is not what GitHub describes: %v", e.Request.Method, e.Request.URL, e.Status, err)
		}
	}
	o.WatchDelivery = func(event, action string, header http.Header, body []byte) {
		if watchDelivery != nil {
			watchDelivery(event, action, header, body)
		}
		if err := judge.Delivery(event, action, header, body); err != nil {
			t.Errorf("the delivery %s %s is not what GitHub describes: %v", event, action, err)
		}
	}
	s, err := github.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the peer: %v", err)
		}
	})
	return s
}

// Exchange tells whether a request and its answer satisfy the description. An
// operation that the description lacks is an error.
func (j *Judge) Exchange(e github.Exchange) error {
	if e.Operation == "POST /graphql" {
		return j.gql.exchange(e)
	}
	if deviates(operation, e.Operation, e.Status, "") {
		return nil
	}
	method, path, _ := strings.Cut(e.Operation, " ")
	item := j.doc.Paths.Value(path)
	if item == nil || item.GetOperation(method) == nil {
		return errors.New("the description has no such operation")
	}
	described := item.GetOperation(method)
	route := &routers.Route{Spec: j.doc, Path: path, PathItem: item, Method: method, Operation: described}
	r := e.Request.Clone(context.Background())
	r.Body = io.NopCloser(bytes.NewReader(e.Body))
	r.ContentLength = int64(len(e.Body))
	in := &openapi3filter.RequestValidationInput{
		Request: r, PathParams: e.Params, Route: route,
		Options: &openapi3filter.Options{
			MultiError:            true,
			IncludeResponseStatus: true,
			AuthenticationFunc:    openapi3filter.NoopAuthenticationFunc,
		},
	}
	var wrong []error
	// A request that GitHub calls invalid, or that it has not read, need not satisfy the
	// description.
	switch e.Status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusTooManyRequests:
	default:
		wrong = append(wrong, unknown(item, described, r), openapi3filter.ValidateRequest(context.Background(), in))
	}
	if e.Status != http.StatusNotModified && !general(e.Status) || described.Responses.Status(e.Status) != nil {
		out := &openapi3filter.ResponseValidationInput{
			RequestValidationInput: in,
			Status:                 e.Status,
			Header:                 e.Header,
			Options:                in.Options,
		}
		out.SetBodyBytes(e.Answer)
		wrong = append(wrong, openapi3filter.ValidateResponse(context.Background(), out))
	}
	return kept(answer, e.Operation, e.Status, wrong)
}

// general tells whether GitHub may answer any operation with a status, which the
// description of single operations leaves out: bad credentials, missing permissions
// or limits, redirects of renamed repositories, what is hidden, and failures.
func general(status int) bool {
	switch status {
	case 301, 307, 400, 401, 403, 404, 415, 422, 429, 451, 500, 502, 503, 504:
		return true
	}
	return false
}

// unknown returns an error for parameters of the query that are not described. GitHub
// ignores them, so that a misspelt one would go unnoticed.
func unknown(item *openapi3.PathItem, o *openapi3.Operation, r *http.Request) error {
	for name := range r.URL.Query() {
		plain := strings.TrimSuffix(name, "[]")
		if o.Parameters.GetByInAndName("query", plain) == nil && item.Parameters.GetByInAndName("query", plain) == nil {
			return fmt.Errorf("the operation has no parameter %s", name)
		}
	}
	return nil
}

// Delivery tells whether a delivery satisfies the description. Action is empty for
// events that have none.
func (j *Judge) Delivery(event, action string, header http.Header, body []byte) error {
	name := strings.ReplaceAll(event, "_", "-")
	if action != "" {
		name += "-" + strings.ReplaceAll(action, "_", "-")
	}
	item := j.doc.Paths.Value(hooks + name)
	if item == nil || item.Post == nil {
		if cloud, err := Load(Cloud); err == nil && cloud != j && deviates(elsewhere, name, 0, "") {
			return cloud.Delivery(event, action, header, body)
		}
		return errors.New("the description has no such delivery")
	}
	r, err := http.NewRequest(http.MethodPost, "http://receiver.invalid/", bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header = header.Clone()
	err = openapi3filter.ValidateRequest(context.Background(), &openapi3filter.RequestValidationInput{
		Request: r,
		Route:   &routers.Route{Spec: j.doc, Path: hooks + name, PathItem: item, Method: http.MethodPost, Operation: item.Post},
		Options: &openapi3filter.Options{MultiError: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	})
	return kept(delivery, name, 0, []error{err})
}

// kept returns what is left of a list of errors without the deviations that are
// allowed. It takes nested lists apart.
func kept(k kind, name string, status int, wrong []error) error {
	var left []error
	for _, err := range wrong {
		for _, e := range flat(err) {
			if !deviates(k, name, status, place(e)) {
				left = append(left, brief(e))
			}
		}
	}
	return errors.Join(left...)
}

// flat returns the single errors of a nested list.
func flat(err error) (out []error) {
	var request *openapi3filter.RequestError
	var response *openapi3filter.ResponseError
	var many openapi3.MultiError
	switch {
	case err == nil:
		return nil
	case isMany(err, &many):
		for _, e := range many {
			out = append(out, flat(e)...)
		}
		return out
	case errors.As(err, &request) && request.Err != nil && request.Parameter == nil:
		return flat(request.Err)
	case errors.As(err, &response) && response.Err != nil:
		return flat(response.Err)
	}
	// What a schema is made of is one error that wraps those of its parts.
	var schema *openapi3.SchemaError
	if errors.As(err, &schema) && schema.SchemaField == "allOf" {
		for inner := schema.Origin; inner != nil; inner = errors.Unwrap(inner) {
			if isMany(inner, &many) {
				return flat(inner)
			}
		}
	}
	return []error{err}
}

// isMany tells whether an error is itself a list, not one that wraps a list.
func isMany(err error, many *openapi3.MultiError) bool {
	m, ok := err.(openapi3.MultiError) //nolint:errorlint // a wrapped list belongs to the error around it
	*many = m
	return ok
}

// brief leaves out the schema and the value, which may be long.
func brief(err error) error {
	var request *openapi3filter.RequestError
	if errors.As(err, &request) && request.Parameter != nil && request.Err != nil {
		return fmt.Errorf("parameter %s: %w", request.Parameter.Name, brief(request.Err))
	}
	var schema *openapi3.SchemaError
	if errors.As(err, &schema) {
		return fmt.Errorf("/%s: %s", strings.Join(schema.JSONPointer(), "/"), schema.Reason) //nolint:errorlint // it has no cause
	}
	return err
}

// place returns where in a body an error is: "head/repo".
func place(err error) string {
	var schema *openapi3.SchemaError
	if errors.As(err, &schema) {
		return strings.Join(schema.JSONPointer(), "/")
	}
	return ""
}
