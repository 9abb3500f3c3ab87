package web

import (
	"crypto/sha256"
	_ "embed" // the texts
	"encoding/hex"

	"yardmaster/internal/api/op"
)

// The look of the dashboard, which the pages of the server share.
var (
	//go:embed src/tokens.css
	tokens string
	//go:embed src/base.css
	ground string
	//go:embed src/controls.css
	controls string
	//go:embed src/inter.woff2
	letters []byte
	//go:embed page.css
	pageStyle string
	//go:embed reference.css
	referenceStyle string
	//go:embed reference.js
	referenceScript string
)

// files are what the pages of the server load, by name. They are served without the
// dashboard, too.
var files = map[string]*op.Asset{}

// Names of files, for pages that load them.
var (
	pageSheet = file("page", ".css", tokens+ground+controls+pageStyle)
	// font is what tokens.css names.
	font = put("inter", ".woff2", "font/woff2", letters)
	// ReferenceStyle and ReferenceScript belong to the page that describes the API.
	ReferenceStyle  = file("reference", ".css", tokens+ground+controls+referenceStyle)
	ReferenceScript = file("reference", ".js", referenceScript)
)

// folder is where the files are served.
const folder = "/ui/a/"

// file adds a file, whose name has the hash of its text, and returns its path.
func file(name, ext, text string) string {
	return put(name, ext, "text/"+kinds[ext]+"; charset=utf-8", []byte(text))
}

func put(name, ext, kind string, body []byte) string {
	name = hashed(name, ext, body)
	files[name] = &op.Asset{ContentType: kind, Cache: forever, Body: body}
	return folder + name
}

// hashed returns the name of a file that has the hash of its text.
func hashed(name, ext string, text []byte) string {
	sum := sha256.Sum256(text)
	return name + "-" + hex.EncodeToString(sum[:])[:12] + ext
}

// File returns a file that pages of the server load, or nil if they load none of that
// name.
func File(name string) *op.Asset { return files[name] }
