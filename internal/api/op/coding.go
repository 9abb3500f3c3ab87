package op

import (
	"bytes"
	"net/http"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// small is the longest answer that is not worth compressing, in bytes: it fits
// into the packet or two that its headers travel in.
const small = 1 << 10

// secrets are the members of answers that open something to whoever knows them.
//
// How much an answer shrinks tells a listener on the line whether a text that he
// chose occurs in it again (the attack called BREACH). So an answer is sent as it
// is if its type can hold one of these, beside whatever others wrote; so is every
// row of a one-time secret, every page with a form, whose ticket is one, and every
// stream. All else may be compressed: what it holds for the caller's eyes alone
// is nothing that is guessed letter by letter and then used.
var secrets = []string{"fix_url", "token", "secret", "client_secret", "password", "credentials", "setup_url", "access_token", "key"}

// tells finds out whether a type can hold a secret.
func tells(t reflect.Type, seen map[reflect.Type]bool) bool {
	for t != nil && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array || t.Kind() == reflect.Map) {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct || seen[t] {
		return false
	}
	seen[t] = true
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		for _, s := range secrets {
			if name == s {
				return true
			}
		}
		if tells(f.Type, seen) {
			return true
		}
	}
	return false
}

// compressible tells whether an answer of the row may be compressed.
func (o *Op) compressible(req *http.Request, contentType string) bool {
	if o.NoStore || o.secretive || contentType != "application/json" && !strings.HasPrefix(contentType, "text/plain") {
		return false
	}
	x := exchangeOf(req.Context())
	return x == nil || !x.secretive.Load()
}

// deliver writes an answer whose headers, but for its length, are set.
func (o *Op) deliver(w http.ResponseWriter, req *http.Request, status int, body []byte) {
	h := w.Header()
	_, kept := w.(*page) // as it is: who reads it is somebody else
	if len(body) > small && !kept && o.compressible(req, h.Get("Content-Type")) {
		h.Add("Vary", "Accept-Encoding")
		if coding := codingOf(req); coding != "" {
			buf := buffers.Get().(*bytes.Buffer)
			buf.Reset()
			defer buffers.Put(buf)
			if shrink(buf, coding, body); buf.Len() < len(body) {
				h.Set("Content-Encoding", coding)
				body = buf.Bytes()
			}
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if req.Method != http.MethodHead {
		w.Write(body) // the client may be gone; nothing is left to tell it
	}
}

var (
	gzips = sync.Pool{New: func() any {
		w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
		if err != nil {
			panic(err) // the level is good
		}
		return w
	}}
	// zstds compresses for all at once. A small window keeps its memory small, and
	// holds all but the largest answers.
	zstds = sync.OnceValue(func() *zstd.Encoder {
		w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(runtime.GOMAXPROCS(0)),
			zstd.WithWindowSize(256<<10), zstd.WithLowerEncoderMem(true))
		if err != nil {
			panic(err) // the options are good
		}
		return w
	})
)

// shrink appends a body in a coding.
func shrink(to *bytes.Buffer, coding string, body []byte) {
	if coding == "zstd" {
		to.Grow(len(body) / 4)
		to.Write(zstds().EncodeAll(body, to.AvailableBuffer()))
		return
	}
	w := gzips.Get().(*gzip.Writer)
	defer gzips.Put(w)
	w.Reset(to)
	_, _ = w.Write(body) // memory takes all
	_ = w.Close()
}

// codingOf picks the best of what a request's Accept-Encoding takes (RFC 9110,
// 12.5.3), none where the client says nothing of codings or would rather have
// the answer as it is. Who takes it neither as it is nor in a coding of ours
// (identity;q=0 or *;q=0) gets it as it is, never a 406: the header is
// disregarded then, as section 12.1 has it, as it is for what is not compressed
// at all. A write that was carried out cannot be refused for the form of its
// answer.
func codingOf(req *http.Request) string {
	values := req.Header["Accept-Encoding"]
	if len(values) == 0 {
		return ""
	}
	weights := map[string]float64{}
	for part := range strings.SplitSeq(strings.ToLower(strings.Join(values, ",")), ",") {
		name, param, _ := strings.Cut(part, ";")
		weight := 1.0
		if q, ok := strings.CutPrefix(strings.TrimSpace(param), "q="); ok {
			var err error
			if weight, err = strconv.ParseFloat(q, 64); err != nil || !(weight >= 0 && weight <= 1) {
				weight = 0
			}
		}
		weights[strings.TrimSpace(name)] = weight
	}
	best, most := "", 0.0
	for _, name := range []string{"zstd", "gzip"} {
		weight, ok := weights[name]
		if !ok {
			weight = weights["*"]
		}
		if weight > most {
			best, most = name, weight
		}
	}
	if weights["identity"] > most {
		return ""
	}
	return best
}
