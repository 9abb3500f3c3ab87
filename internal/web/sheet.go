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
	shared string
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
	pageSheet = file("page", ".css", tokens+shared+pageStyle)
	// ReferenceStyle and ReferenceScript belong to the page that describes the API.
	ReferenceStyle  = file("reference", ".css", tokens+shared+referenceStyle)
	ReferenceScript = file("reference", ".js", referenceScript)
)

// folder is where the files are served.
const folder = "/ui/a/"

// file adds a file, whose name has the hash of its text, and returns its path.
func file(name, ext, text string) string {
	name = hashed(name, ext, text)
	files[name] = &op.Asset{ContentType: "text/" + kinds[ext] + "; charset=utf-8", Cache: forever, Body: []byte(text)}
	return folder + name
}

// hashed returns the name of a file that has the hash of its text.
func hashed(name, ext, text string) string {
	sum := sha256.Sum256([]byte(text))
	return name + "-" + hex.EncodeToString(sum[:])[:12] + ext
}

// File returns a file that pages of the server load, or nil if they load none of that
// name.
func File(name string) *op.Asset { return files[name] }
