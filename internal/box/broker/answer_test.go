package broker_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"mime/multipart"
	"mime/quotedprintable"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"

	"yardmaster/internal/box/broker"
	"yardmaster/internal/box/scrub"
)

// said lists ways in which a host shows a request's header in its answer's body.
// Each has a content type that is passed on.
var said = map[string]struct {
	kind string
	show func(io.Writer, string)
}{
	"plain":            {"text/plain", func(w io.Writer, s string) { io.WriteString(w, "Authorization: "+s) }},
	"a page":           {"text/html; charset=utf-8", func(w io.Writer, s string) { fmt.Fprintf(w, "<pre>%s</pre>", html.EscapeString(s)) }},
	"a page's numbers": {"text/html", func(w io.Writer, s string) { io.WriteString(w, each(s, "&#%d;")) }},
	"a page's HEX":     {"text/html; charset=ISO-8859-1", func(w io.Writer, s string) { io.WriteString(w, each(s, "&#x%X;")) }},
	"a page's names": {"text/html", func(w io.Writer, s string) {
		io.WriteString(w, strings.NewReplacer("+", "&plus;", "/", "&sol;", "=", "&equals;").Replace(s))
	}},
	"an attribute": {"application/xhtml+xml", func(w io.Writer, s string) {
		fmt.Fprintf(w, `<a href="/?k=%s">`, html.EscapeString(url.QueryEscape(s)))
	}},
	"JSON": {"application/json", func(w io.Writer, s string) { json.NewEncoder(w).Encode(map[string]string{"h": s}) }},
	"JSON in JSON": {"application/problem+json", func(w io.Writer, s string) {
		b, _ := json.Marshal(map[string]string{"h": html.EscapeString(s)})
		json.NewEncoder(w).Encode(map[string]string{"body": string(b)})
	}},
	"all escaped": {"text/javascript", func(w io.Writer, s string) { io.WriteString(w, each(s, `\u%04x`)) }},
	"a query": {"application/x-www-form-urlencoded",
		func(w io.Writer, s string) { io.WriteString(w, url.Values{"h": {s}}.Encode()) }},
	"percent twice": {"text/uri-list", func(w io.Writer, s string) { io.WriteString(w, url.QueryEscape(url.QueryEscape(s))) }},
	"every percent": {"text/plain", func(w io.Writer, s string) { io.WriteString(w, each(s, "%%%02x")) }},
	"a dump": {"text/plain; charset=us-ascii", func(w io.Writer, s string) {
		io.WriteString(w, hex.Dump([]byte("GET / HTTP/1.1\r\nAuthorization: "+s+"\r\n")))
	}},
	"hex bytes": {"text/plain", func(w io.Writer, s string) { fmt.Fprintf(w, "% x", s) }},
	"numbers": {"application/json",
		func(w io.Writer, s string) { fmt.Fprint(w, strings.ReplaceAll(fmt.Sprintf("%d", []byte(s)), " ", ",")) }},
	"wrapped base64": {"application/pkcs7-mime", func(w io.Writer, s string) {
		for e := base64.StdEncoding.EncodeToString([]byte("xy" + s)); len(e) > 0; e = e[min(10, len(e)):] {
			fmt.Fprintf(w, "%s\r\n", e[:min(10, len(e))])
		}
	}},
	"mail": {"message/rfc822", func(w io.Writer, s string) { q := quotedprintable.NewWriter(w); io.WriteString(q, s); q.Close() }},
	"a form": {"multipart/form-data; boundary=x", func(w io.Writer, s string) {
		m := multipart.NewWriter(w)
		m.SetBoundary("x")
		m.WriteField("h", s)
		m.Close()
	}},
	"UTF-16 unsaid": {"application/octet-stream",
		func(w io.Writer, s string) { binary.Write(w, binary.LittleEndian, utf16.Encode([]rune("\ufeff"+s))) }},
	"UTF-16 big": {"application/octet-stream", func(w io.Writer, s string) { binary.Write(w, binary.BigEndian, utf16.Encode([]rune(s))) }},
	"protobuf":   {"application/x-protobuf", func(w io.Writer, s string) { w.Write(append([]byte{10, byte(len(s))}, s...)) }},
	"events":     {"text/event-stream", func(w io.Writer, s string) { fmt.Fprintf(w, "event: x\ndata: %s\n\n", s) }},
	"a wrapped page": {"text/html", func(w io.Writer, s string) {
		fmt.Fprintf(w, "<p>\n  %s\n  %s", html.EscapeString(s[:15]), html.EscapeString(s[15:]))
	}},
}

func each(s, format string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, format, s[i])
	}
	return b.String()
}

// visible undoes what said does, and looks for the canary.
func visible(text string) bool {
	percent := func(s string) string {
		if out, err := url.QueryUnescape(s); err == nil {
			return out
		}
		return s
	}
	number := regexp.MustCompile(`\d+`)
	var bytes strings.Builder
	for _, n := range number.FindAllString(text, -1) {
		var v int
		fmt.Sscan(n, &v)
		bytes.WriteByte(byte(v))
	}
	unquoted := regexp.MustCompile(`\\+u([0-9a-fA-F]{4})`).ReplaceAllStringFunc(text, func(e string) string {
		b, _ := hex.DecodeString(e[len(e)-2:])
		return string(b)
	})
	onlyHex := regexp.MustCompile(`(?m)^[0-9a-f]{8}|\|.*\||[^0-9a-f]`).ReplaceAllString(text, "")
	soft := strings.NewReplacer("=3D", "=", "=2B", "+", "=\r\n", "")
	for _, v := range []string{text, html.UnescapeString(text), html.UnescapeString(unquoted), percent(text), percent(percent(text)),
		soft.Replace(text), onlyHex, bytes.String()} {
		flat := strings.NewReplacer(" ", "", "\r", "", "\n", "", "\x00", "").Replace(v)
		if leaks(v) || leaks(flat) {
			return true
		}
	}
	return false
}

func TestNoFormOfAnAnswerShowsTheCredential(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/said/{form}", func(w http.ResponseWriter, r *http.Request) {
		form := said[r.PathValue("form")]
		w.Header().Set("Content-Type", form.kind)
		form.show(w, r.Header.Get("Authorization"))
	})
	far := httptest.NewTLSServer(mux)
	t.Cleanup(far.Close)
	host := strings.TrimPrefix(far.URL, "https://")
	f := start(t, far, []string{"127.0.0.1"}, lend(host))
	for name, form := range said {
		var direct bytes.Buffer
		if form.show(&direct, "Bearer "+canary); !visible(direct.String()) {
			t.Errorf("%s: the test does not see the canary in %q", name, direct.String())
		}
		resp, text := get(t, "GET", f.address+"/"+host+"/said/"+url.PathEscape(name))
		if resp.StatusCode != 200 || !strings.Contains(text, scrub.Mark) || visible(text) {
			t.Errorf("%s: %d %q", name, resp.StatusCode, text)
		}
	}
}

// raw is a host that writes answers byte for byte.
func raw(t *testing.T, answers map[string]func(secret string) string) (*httptest.Server, string) {
	far := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		io.WriteString(conn, answers[strings.TrimPrefix(r.URL.Path, "/")](strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")))
	}))
	t.Cleanup(far.Close)
	return far, strings.TrimPrefix(far.URL, "https://")
}

func TestNoHeaderShowsTheCredential(t *testing.T) {
	head := func(lines string) func(string) string {
		return func(s string) string {
			return "HTTP/1.1 200 Fine " + s + "\r\nConnection: close\r\n" + fill(lines, s) + "\r\n\r\nthis is the body"
		}
	}
	answers := map[string]func(string) string{
		"plain":   head("X-A: <plain>\r\nX-B: Bearer <plain>"),
		"cookie":  head("Set-Cookie: a=<query>; Path=/\r\nSet-Cookie: b=\"<plain>\"; HttpOnly\r\nSet-Cookie: c=<base64>"),
		"folded":  head("X-A: before <left>\r\n   <right> after"),
		"encoded": head("Link: </?k=<query>>; rel=next\r\nX-B: <base64>\r\nX-H: <hex>\r\nX-J: {\"h\":\"<html>\"}\r\nRefresh: 0; url=/?<query>"),
		"digest":  head("Content-Digest: sha-256=:abc=:\r\nRepr-Digest: sha-256=:abc=:\r\nContent-MD5: abc\r\nETag: \"<plain>\""),
		"reason":  head("X-Ok: yes"),
		"trailer": func(s string) string {
			return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-End\r\nConnection: close\r\n\r\n4\r\nbody\r\n0\r\nX-End: " + s +
				"\r\n\r\n"
		},
		"early": func(s string) string {
			return "HTTP/1.1 103 Early Hints\r\nLink: </" + s +
				">; rel=preload\r\n\r\nHTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody"
		},
		"redirect": func(s string) string {
			return "HTTP/1.1 302 Found\r\nConnection: close\r\nContent-Length: 0\r\nLocation: /next?k=" + url.QueryEscape(s) + "&p=" + s +
				"\r\n\r\n"
		},
		"redirect path": func(s string) string {
			return "HTTP/1.1 302 Found\r\nConnection: close\r\nContent-Length: 0\r\nLocation: /next/" + each(s, "%%%02X") + "\r\n\r\n"
		},
	}
	far, host := raw(t, answers)
	f := start(t, far, []string{"127.0.0.1"}, lend(host))
	for name := range answers {
		resp, text := get(t, "GET", f.address+"/"+host+"/"+name)
		if !strings.Contains("200 302", fmt.Sprint(resp.StatusCode)) || resp.StatusCode == 200 && !strings.Contains(text, "body") {
			t.Errorf("%s was not passed on: %d %q", name, resp.StatusCode, text)
		}
		var all strings.Builder
		fmt.Fprintln(&all, resp.Status, text)
		for _, h := range []http.Header{resp.Header, resp.Trailer} {
			h.Write(&all)
		}
		if shown := all.String(); visible(shown) || strings.Contains(shown, "Digest") || strings.Contains(shown, "Etag") {
			t.Errorf("%s: %s", name, shown)
		}
	}
}

// TestNameOfAHeader holds that a credential in a header's name is removed. Names
// have no case, so the scrubber alone would not find it.
func TestNameOfAHeader(t *testing.T) {
	far, host := raw(t, map[string]func(string) string{
		"": func(s string) string {
			return "HTTP/1.1 200 OK\r\nConnection: close\r\nX-" + s + "-Y: 1\r\nX-Ok: yes\r\n\r\n"
		},
	})
	f := start(t, far, []string{"127.0.0.1"}, func(bool) broker.Secrets {
		return broker.Secrets{Credentials: []broker.Credential{{Hosts: []string{host}, Header: "Authorization",
			Value: "Bearer Open-sEsame-42"}}}
	})
	resp, _ := get(t, "GET", f.address+"/"+host+"/")
	if shown := fmt.Sprint(resp.Header); resp.Header.Get("X-Ok") != "yes" || strings.Contains(strings.ToLower(shown), "sesame") {
		t.Error(shown)
	}
}

func fill(text, s string) string {
	return strings.NewReplacer("<plain>", s, "<query>", url.QueryEscape(s), "<base64>", base64.StdEncoding.EncodeToString([]byte("me:"+s)),
		"<hex>", hex.EncodeToString([]byte(s)),
		"<html>", html.EscapeString(s), "<left>", s[:9], "<right>", s[9:]).Replace(text)
}

func TestWhatCannotBeSearchedIsRefused(t *testing.T) {
	head := func(status int, lines string) func(string) string {
		return func(s string) string {
			var z bytes.Buffer
			w := gzip.NewWriter(&z)
			io.WriteString(w, s)
			w.Close()
			return fmt.Sprintf("HTTP/1.1 %d Fine\r\nConnection: close\r\nContent-Length: %d\r\n%s\r\n\r\n%s", status, z.Len(), lines,
				z.String())
		}
	}
	answers := map[string]func(string) string{}
	words := map[string]string{}
	for i, c := range []struct {
		status     int
		lines, why string
	}{
		{200, "Content-Encoding: gzip", "Content-Encoding"},
		{200, "Content-Encoding: identity\r\nContent-Encoding: gzip", "Content-Encoding"},
		{200, "Content-Encoding: identity, br", "Content-Encoding"}, {200, "Content-Encoding: dcz", "Content-Encoding"},
		{200, "Content-Encoding: rot13", "Content-Encoding"},
		{200, "Content-Type: application/grpc\r\nGrpc-Encoding: gzip", "Grpc-Encoding"},
		{200, "Content-Type: text/html; charset=utf-16", "charset"}, {200, "Content-Type: text/plain; charset=\"UTF-16LE\"", "charset"},
		{200, "Content-Type: text/html; charset=utf-7", "charset"},
		{200, "Content-Type: text/plain; charset=ibm037", "charset"}, {200, "Content-Type: text/plain; charset=iso-2022-jp", "charset"},
		{200, "Content-Type: text/plain; charset=", "charset"},
		{200, "Content-Type: text/plain\r\nContent-Type: text/html; charset=utf-16", "more than one"},
		{200, "Content-Type: /; charset=utf-16", "cannot be read"},
		{206, "Content-Range: bytes 0-8/20", "part"}, {206, "Content-Type: multipart/byteranges; boundary=x", "part"},
		{200, "Content-Type: multipart/byteranges; boundary=x", "parts"},
		{226, "IM: gdiff", "difference"}, {302, "Location: /a\r\nLocation: https://elsewhere.example/", "redirects"},
		{302, "Location: https://elsewhere.example/", "redirects"},
	} {
		path := fmt.Sprint(i)
		answers[path], words[path] = head(c.status, c.lines), c.why
	}
	answers["upgrade"] = func(string) string {
		return "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
	}
	words["upgrade"] = "protocol"
	answers["transfer"] = func(s string) string {
		return "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\nConnection: close\r\n\r\n0\r\n\r\n"
	}
	words["transfer"] = "cannot be reached"
	far, host := raw(t, answers)
	f := start(t, far, []string{"127.0.0.1"}, lend(host))
	for path := range answers {
		resp, text := get(t, "GET", f.address+"/"+host+"/"+path, "Connection", "Upgrade", "Upgrade", "websocket")
		if resp.StatusCode != 502 || !strings.Contains(text, words[path]) || visible(text) {
			t.Errorf("%q: %d %q", answers[path]("")[:60], resp.StatusCode, text)
		}
	}
}

func TestWhatWouldMakeAnAnswerUnsearchableIsNotAskedFor(t *testing.T) {
	far := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Authorization")
		r.Header.Write(w)
	}))
	t.Cleanup(far.Close)
	host := strings.TrimPrefix(far.URL, "https://")
	f := start(t, far, []string{"127.0.0.1"}, lend(host))
	_, text := get(t, "GET", f.address+"/"+host+"/", "Range", "bytes=0-1", "If-Range", "x", "Accept-Encoding", "br", "Accept-Charset",
		"utf-16", "Grpc-Accept-Encoding", "gzip",
		"Connect-Accept-Encoding", "gzip", "Available-Dictionary", ":x:", "A-IM", "gdiff", "TE", "gzip, trailers", "Upgrade", "websocket",
		"X-Mine", "kept")
	if want := "Accept-Encoding: identity\r\n"; !strings.Contains(text, want) || !strings.Contains(text, "X-Mine: kept") ||
		len(strings.Split(strings.TrimSpace(text), "\r\n")) > 4 {
		t.Errorf("the host was asked for\n%s", text)
	}
}

// TestBasicPassword holds that a Basic password is removed, because hosts show the
// password rather than the header.
func TestBasicPassword(t *testing.T) {
	far := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		fmt.Fprintf(w, "you are %s with %s", user, password)
	}))
	t.Cleanup(far.Close)
	host := strings.TrimPrefix(far.URL, "https://")
	f := start(t, far, []string{"127.0.0.1"}, func(bool) broker.Secrets {
		return broker.Secrets{Credentials: []broker.Credential{{Hosts: []string{host}, Header: "Authorization", Value: "Basic " +
			base64.StdEncoding.EncodeToString([]byte("me:open+sesame"))}}}
	})
	if _, text := get(t, "GET", f.address+"/"+host+"/"); text != "you are me with "+scrub.Mark {
		t.Error(text)
	}
}
