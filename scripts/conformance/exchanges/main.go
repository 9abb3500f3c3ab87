// Exchanges reads requests and their answers, one JSON object a line, and holds
// them against an OpenAPI document as a validating proxy would: every answer,
// and every request that was taken.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

// exchange is what the transcripts append to the file that YARDMASTER_EXCHANGES names.
type exchange struct {
	Op, Method, URL string
	Sent            http.Header
	Request         string
	Status          int
	Header          http.Header
	Response        string
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: exchanges DOCUMENT FILE")
		os.Exit(2)
	}
	wrong, err := run(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if wrong > 0 {
		os.Exit(1)
	}
}

func run(document, file string) (wrong int, err error) {
	doc, err := openapi3.NewLoader().LoadFromFile(document)
	if err != nil {
		return 0, err
	}
	if err := doc.Validate(context.Background()); err != nil {
		return 0, fmt.Errorf("the document is not OpenAPI: %w", err)
	}
	openapi3filter.RegisterBodyDecoder("text/event-stream", openapi3filter.PlainBodyDecoder)
	openapi3filter.RegisterBodyDecoder("application/jsonl", openapi3filter.PlainBodyDecoder)
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		return 0, err
	}
	f, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	paths := pathsOf(doc)
	seen, ops := 0, map[string]bool{}
	in := bufio.NewReader(f)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			return 0, err
		}
		var x exchange
		if err := json.Unmarshal(line, &x); err != nil {
			return 0, err
		}
		seen++
		ops[x.Op] = true
		x.URL = inOne(x.URL, paths[x.Op])
		if err := x.check(router); err != nil {
			wrong++
			fmt.Printf("%s %s (%s) answers %d: %v\n  %.300s\n", x.Method, x.URL, x.Op, x.Status, err, x.Response)
		}
	}
	fmt.Printf("%d exchanges of %d capabilities, %d not as documented\n", seen, len(ops), wrong)
	if seen == 0 {
		return 0, fmt.Errorf("%s is empty", file)
	}
	return wrong, nil
}

// pathsOf is the path of each operation.
func pathsOf(doc *openapi3.T) map[string]string {
	paths := map[string]string{}
	for path, item := range doc.Paths.Map() {
		for _, o := range item.Operations() {
			paths[o.OperationID] = path
		}
	}
	return paths
}

// inOne writes slashes in the last parameter of a path as generated clients do. The server takes
// them as they are as well, for those who write an address by hand, which OpenAPI has no words for.
func inOne(address, path string) string {
	if !strings.HasSuffix(path, "}") {
		return address
	}
	at, query, asks := strings.Cut(address, "?")
	parts := strings.SplitN(at, "/", strings.Count(path, "/")+1)
	last := len(parts) - 1
	parts[last] = strings.ReplaceAll(parts[last], "/", "%2F")
	if at = strings.Join(parts, "/"); asks {
		at += "?" + query
	}
	return at
}

func (x exchange) check(router routers.Router) error {
	req, err := http.NewRequest(x.Method, x.URL, strings.NewReader(x.Request))
	if err != nil {
		return err
	}
	req.Header = x.Sent
	route, params, err := router.FindRoute(req)
	if err != nil {
		return err
	}
	for name, v := range params {
		if params[name], err = url.PathUnescape(v); err != nil {
			return err
		}
	}
	asked := &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route, Options: &openapi3filter.Options{
		MultiError: true, IncludeResponseStatus: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc,
	}}
	if x.Status < 300 {
		if err := openapi3filter.ValidateRequest(context.Background(), asked); err != nil {
			return fmt.Errorf("the request: %w", err)
		}
	}
	return openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: asked, Status: x.Status, Header: x.Header, Body: io.NopCloser(strings.NewReader(x.Response)),
		Options: asked.Options,
	})
}
