package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// develop serves the dashboard of a running server at a loopback address, with its
// files built from the sources whenever a page is asked for. Types are not checked:
// make web does that.
func develop(ctx context.Context, at, server string) error {
	to, err := url.Parse(server)
	if err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" {
		return fmt.Errorf("-server: %q is no address of a server", server)
	}
	tools, err := fetch(ctx)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", at)
	if err != nil {
		return err
	}
	if ip := ln.Addr().(*net.TCPAddr).IP; !ip.IsLoopback() {
		return errors.Join(fmt.Errorf("-dev: %s is not a loopback address", ip), ln.Close())
	}
	fmt.Printf("The dashboard of %s, from its sources: http://%s/ui/\n", to, ln.Addr())
	s := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: addressed(ln.Addr(), before(to, func() (map[string][]byte, error) {
		made, _, err := tools.bundle()
		return made, err
	}))}
	return s.Serve(ln)
}

// addressed refuses a request that names another host than the address at which it came:
// the page of a site whose name leads here is not the server's own.
func addressed(at net.Addr, next http.Handler) http.Handler {
	_, port, _ := net.SplitHostPort(at.String())
	return http.HandlerFunc(func(out http.ResponseWriter, req *http.Request) {
		if req.Host != at.String() && req.Host != "localhost:"+port {
			http.Error(out, "this is "+at.String(), http.StatusForbidden)
			return
		}
		next.ServeHTTP(out, req)
	})
}

// workshop keeps the files of all builds that succeeded: a page that was loaded before
// the last one asks for its own.
type workshop struct {
	build func() (map[string][]byte, error)
	mu    sync.Mutex
	made  map[string][]byte
}

// before returns a handler that answers pages and files of the dashboard from what
// build makes, and has the server answer all else.
func before(server *url.URL, build func() (map[string][]byte, error)) http.Handler {
	w := &workshop{build: build, made: map[string][]byte{}}
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1, // streams
		Rewrite: func(r *httputil.ProxyRequest) {
			// To the server the page is its own: it refuses those of another origin.
			own := r.In.Header.Get("Origin") == "http://"+r.In.Host
			r.SetURL(server)
			if own {
				r.Out.Header.Set("Origin", server.Scheme+"://"+server.Host)
			}
			if r.In.Method == http.MethodGet && isPage(r.In.URL.Path) {
				for _, name := range []string{"Accept-Encoding", "If-None-Match", "If-Modified-Since"} {
					r.Out.Header.Del(name)
				}
			}
		},
		ModifyResponse: w.renew,
		ErrorHandler: func(out http.ResponseWriter, req *http.Request, err error) {
			if req.Context().Err() == nil {
				log.Printf("%s: %v", req.URL.Path, err)
			}
			http.Error(out, err.Error(), http.StatusBadGateway)
		},
	}
	return http.HandlerFunc(func(out http.ResponseWriter, req *http.Request) {
		name, isFile := strings.CutPrefix(req.URL.Path, assets)
		if text, ok := w.file(name); isFile && ok {
			out.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
			_, _ = out.Write(text) // to a browser that has left
			return
		}
		proxy.ServeHTTP(out, req)
	})
}

const assets = "/ui/a/"

func isPage(at string) bool {
	return strings.HasPrefix(at, "/ui/") && !strings.HasPrefix(at, assets)
}

// entry finds the files that the page names, whose names the manifest gives.
var entry = regexp.MustCompile(assets + `(app|vendor|more)-[0-9A-Z]+\.(js|css)`)

// renew builds the dashboard for a page, and names the new files in it.
func (w *workshop) renew(r *http.Response) error {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind != "text/html" || !isPage(r.Request.URL.Path) {
		return nil
	}
	made, err := w.build()
	if err != nil {
		return err
	}
	var names map[string]string
	if err := json.Unmarshal(made["manifest.json"], &names); err != nil {
		return fmt.Errorf("manifest.json: %w", err)
	}
	w.mu.Lock()
	maps.Copy(w.made, made)
	w.mu.Unlock()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	text = entry.ReplaceAllFunc(text, func(old []byte) []byte {
		found := entry.FindSubmatch(old)
		key := string(found[1])
		if key == "app" {
			key = string(found[2])
		}
		return []byte(assets + names[key])
	})
	r.Body = io.NopCloser(bytes.NewReader(text))
	r.Header.Set("Content-Length", strconv.Itoa(len(text)))
	r.Header.Set("Cache-Control", "no-store")
	r.Header.Del("ETag")
	return nil
}

func (w *workshop) file(name string) ([]byte, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text, ok := w.made[name]
	return text, ok
}
