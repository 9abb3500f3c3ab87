package rest

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"yardmaster/internal/api/op"
)

// cacheControl lets clients keep an asset for five minutes before they ask again.
const cacheControl = "public, max-age=300"

// forms are the body of an asset in each coding, and the tag of the uncompressed body.
type forms struct {
	tag  string
	body map[string][]byte // by Content-Encoding; "": uncompressed
}

// formsOf returns the forms of an asset. It compresses the asset at the first call.
func (s *server) formsOf(a *op.Asset) forms {
	made, ok := s.assets.Load(a)
	if !ok {
		made, _ = s.assets.LoadOrStore(a, sync.OnceValue(func() forms { return compress(a.Body) }))
	}
	return made.(func() forms)()
}

// compress makes the forms of a body. If compression fails, codings are missing.
func compress(body []byte) forms {
	sum := sha256.Sum256(body)
	f := forms{base64.RawURLEncoding.EncodeToString(sum[:18]), map[string][]byte{"": body}}
	var zipped bytes.Buffer
	gz, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		return f
	}
	if _, err = gz.Write(body); err == nil {
		err = gz.Close()
	}
	if err != nil {
		return f
	}
	f.body["gzip"] = zipped.Bytes()
	zs, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return f
	}
	defer zs.Close()
	f.body["zstd"] = zs.EncodeAll(body, nil)
	return f
}

// asset answers with an asset, or with 304 if the client has it already.
func (s *server) asset(w http.ResponseWriter, req *http.Request, a *op.Asset) {
	f, coding := s.formsOf(a), codingOf(req)
	body, ok := f.body[coding]
	if !ok {
		coding, body = "", a.Body
	}
	// Every form has other bytes, and therefore a strong tag of its own.
	tag := `"` + f.tag + `"`
	if coding != "" {
		tag = fmt.Sprintf("%q", f.tag+"-"+coding)
	}
	h := w.Header()
	h.Set("Cache-Control", cmp.Or(a.Cache, cacheControl))
	h.Set("ETag", tag)
	h.Add("Vary", "Accept-Encoding")
	if matches(strings.Join(req.Header.Values("If-None-Match"), ","), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", a.ContentType)
	if a.Policy != "" {
		h.Set("Content-Security-Policy", a.Policy)
		h.Set("Referrer-Policy", "no-referrer")
	}
	for name, value := range a.Header {
		h.Set(name, value)
	}
	if coding != "" {
		h.Set("Content-Encoding", coding)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if req.Method != http.MethodHead {
		_, _ = w.Write(body) // the client may be gone; nothing is left to tell it
	}
}

// matches tells whether an If-None-Match names the tag.
func matches(list, tag string) bool {
	for part := range strings.SplitSeq(list, ",") {
		part = strings.TrimSpace(part)
		if part == "*" || strings.TrimPrefix(part, "W/") == tag {
			return true
		}
	}
	return false
}
