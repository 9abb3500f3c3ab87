package web

import (
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"sync"

	"yardmaster/internal/api/op"
	"yardmaster/internal/stencil"
)

// What make web builds of the sources in src.
//
//go:embed dist
var dist embed.FS

// worker is the service worker that shows pushed messages. Its name is always the same,
// by which a browser finds the next one.
//
//go:embed worker.js
var worker []byte

// kinds are the types of text that are served, by the ends of their names.
var kinds = map[string]string{".js": "javascript", ".css": "css", ".txt": "plain"}

// forever lets a browser keep a file for a year: another text has another name.
const forever = "public, max-age=31536000, immutable"

// dashboardPolicy lets the dashboard run the scripts of this server and nothing else.
// A script can reach this server alone, and can put no text into the page as markup.
const dashboardPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"font-src 'self'; frame-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; " +
	"require-trusted-types-for 'script'; trusted-types worker"

// Dashboard returns the page of the dashboard and its files by their names.
var Dashboard = sync.OnceValues(func() (*Built, error) {
	b := &Built{Files: map[string]*op.Asset{}}
	entries, err := dist.ReadDir("dist")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		text, err := dist.ReadFile("dist/" + e.Name())
		if err != nil {
			return nil, err
		}
		if t := kinds[path.Ext(e.Name())]; t != "" {
			b.Files[e.Name()] = &op.Asset{ContentType: "text/" + t + "; charset=utf-8", Cache: forever, Body: text}
		}
	}
	b.Files["worker.js"] = &op.Asset{ContentType: "text/javascript; charset=utf-8", Cache: "no-cache", Body: worker}
	if err := addManual(b.Files); err != nil {
		return nil, err
	}
	text, err := dist.ReadFile("dist/manifest.json")
	if err != nil {
		return nil, err
	}
	var names struct{ JS, CSS, Vendor, More string }
	if err := json.Unmarshal(text, &names); err != nil {
		return nil, fmt.Errorf("manifest.json: %w", err)
	}
	var page strings.Builder
	if err := shell().Execute(&page, "shell", names); err != nil {
		return nil, err
	}
	b.Page = &op.Asset{
		ContentType: ContentType, Policy: dashboardPolicy, Cache: "no-cache", Body: []byte(page.String()),
		Header: map[string]string{
			"Cross-Origin-Opener-Policy": "same-origin", "Referrer-Policy": "same-origin", "X-Frame-Options": "DENY",
			"X-Robots-Tag": "noindex",
		},
	}
	return b, nil
})

// Built is the dashboard as it is served.
type Built struct {
	Page  *op.Asset
	Files map[string]*op.Asset
}

var shell = sync.OnceValue(func() *stencil.Template {
	return stencil.Must(stencil.New(stencil.Page, "shell", `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>Yardmaster</title><link rel="icon" href="{{icon}}"><link rel="preload" href="{{font}}" as="font" type="font/woff2" crossorigin><link rel="stylesheet" href="/ui/a/{{.CSS}}">
<link rel="modulepreload" href="/ui/a/{{.Vendor}}"><script type="module" src="/ui/a/{{.JS}}"></script></head>
<body><div id="app" data-more="/ui/a/{{.More}}"></div><noscript>The dashboard needs JavaScript. All it does, the command line and the API do too.</noscript></body></html>
`, stencil.Funcs{"icon": func() stencil.HTML { return icon }, "font": func() string { return font }}))
})
