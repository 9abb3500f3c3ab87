package rest

import (
	"bytes"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"yardmaster/internal/api/op"
)

// small is the size up to which an answer is not compressed, in bytes: it fits into the
// one or two packets of its headers.
const small = 1 << 10

// compressible tells whether an answer may be compressed.
//
// The length of a compressed answer tells an eavesdropper whether a text that he chose
// occurs in the answer a second time (the BREACH attack). So an answer is not
// compressed if it can hold a secret beside text of other people; nor are pages, whose
// forms hold tickets, and streams. Other answers may be compressed: the private data in
// them cannot be guessed letter by letter and then used.
func compressible(a *op.Answer) bool {
	return !a.Secret && (a.ContentType == "application/json" || strings.HasPrefix(a.ContentType, "text/plain"))
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// deliver writes an answer, compressed if that is allowed and the client takes it. The
// caller has set the headers but Content-Length.
func deliver(w http.ResponseWriter, req *http.Request, a *op.Answer) {
	h, body := w.Header(), a.Body
	if len(body) > small && compressible(a) {
		h.Add("Vary", "Accept-Encoding")
		if coding := codingOf(req, "zstd", "gzip"); coding != "" {
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
	w.WriteHeader(a.Status)
	if req.Method != http.MethodHead {
		_, _ = w.Write(body) // the client may be gone; nothing is left to tell it
	}
}

var (
	gzips = sync.Pool{New: func() any {
		w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
		if err != nil {
			panic(err) // cannot be: the level is valid
		}
		return w
	}}
	// zstds is one encoder for all requests. Its small window needs little memory,
	// and holds all but the largest answers.
	zstds = sync.OnceValue(func() *zstd.Encoder {
		w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(runtime.GOMAXPROCS(0)),
			zstd.WithWindowSize(256<<10), zstd.WithLowerEncoderMem(true))
		if err != nil {
			panic(err) // cannot be: the options are valid
		}
		return w
	})
)

// shrink appends the body, compressed with the coding, to the buffer.
func shrink(to *bytes.Buffer, coding string, body []byte) {
	if coding == "zstd" {
		to.Grow(len(body) / 4)
		to.Write(zstds().EncodeAll(body, to.AvailableBuffer()))
		return
	}
	w := gzips.Get().(*gzip.Writer)
	defer gzips.Put(w)
	w.Reset(to)
	_, _ = w.Write(body) // a buffer in memory does not fail
	_ = w.Close()
}

// codingOf picks the coding of some names that Accept-Encoding prefers (RFC 9110, 12.5.3), the
// first of those that it likes as much; "" if the client does not send the header or
// prefers an uncompressed answer. A client that
// accepts neither an uncompressed answer nor one of our codings (identity;q=0 or
// *;q=0) gets an uncompressed one and never a 406: the header is disregarded then, as
// section 12.1 allows, as it is for answers that are never compressed. A write that was
// carried out cannot be refused because of the form of its answer.
func codingOf(req *http.Request, names ...string) string {
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
	for _, name := range names {
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
