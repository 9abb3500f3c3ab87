package op

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Asset is an answer that does not change while the program runs: a document or
// a page, made and compressed once. Clients may keep it and ask with
// If-None-Match whether it is still the one.
type Asset struct {
	contentType string
	policy      string // Content-Security-Policy, may be empty
	kept        string // Cache-Control
	tag         string
	forms       map[string][]byte // by Content-Encoding, "" being none
}

var assetType = reflect.TypeFor[*Asset]()

// NewAsset compresses a body for good. The policy is the page's
// Content-Security-Policy; other things than pages have none.
func NewAsset(contentType, policy string, body []byte) (*Asset, error) {
	sum := sha256.Sum256(body)
	a := &Asset{contentType: contentType, policy: policy, kept: "public, max-age=300", tag: base64.RawURLEncoding.EncodeToString(sum[:18])}
	var zipped bytes.Buffer
	gz, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err = gz.Write(body); err == nil {
		err = gz.Close()
	}
	if err != nil {
		return nil, err
	}
	zs, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer zs.Close()
	a.forms = map[string][]byte{"": body, "gzip": zipped.Bytes(), "zstd": zs.EncodeAll(body, nil)}
	return a, nil
}

func (a *Asset) serve(w http.ResponseWriter, req *http.Request) {
	coding := codingOf(req)
	// Every form is another text, and has a strong tag of its own.
	tag := `"` + a.tag + `"`
	if coding != "" {
		tag = fmt.Sprintf("%q", a.tag+"-"+coding)
	}
	h := w.Header()
	h.Set("Cache-Control", a.kept)
	h.Set("ETag", tag)
	h.Add("Vary", "Accept-Encoding")
	if matches(strings.Join(req.Header.Values("If-None-Match"), ","), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", a.contentType)
	if a.policy != "" {
		h.Set("Content-Security-Policy", a.policy)
		h.Set("Referrer-Policy", "no-referrer")
	}
	if coding != "" {
		h.Set("Content-Encoding", coding)
	}
	body := a.forms[coding]
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if req.Method != http.MethodHead {
		w.Write(body) // the client may be gone; nothing is left to tell it
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
