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

// small is the longest answer that is not worth compressing, in bytes: it fits
// into the packet or two that its headers travel in.
const small = 1 << 10

// compressible tells whether an answer may be compressed.
//
// How much an answer shrinks tells a listener on the line whether a text that he
// chose occurs in it again (the attack called BREACH). So an answer is sent as it
// is if it can hold what opens something, beside what others wrote; so is every
// page with a form, whose ticket opens something, and every stream. All else may
// be compressed: what it holds for the caller's eyes alone is nothing that is
// guessed letter by letter and then used.
func compressible(a *op.Answer) bool {
	return !a.Secret && (a.ContentType == "application/json" || strings.HasPrefix(a.ContentType, "text/plain"))
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// deliver writes an answer whose headers, but for its length, are set.
func deliver(w http.ResponseWriter, req *http.Request, a *op.Answer) {
	h, body := w.Header(), a.Body
	if len(body) > small && compressible(a) {
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
	w.WriteHeader(a.Status)
	if req.Method != http.MethodHead {
		_, _ = w.Write(body) // the client may be gone; nothing is left to tell it
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
