package modelproxy_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/box/modelproxy"
	"yardmaster/internal/llm"
	"yardmaster/internal/proof/patience"
)

const (
	local   = "local-token-of-the-run"
	attempt = "dev_att_canary"
)

const answer = "event: message_start\ndata: " +
	"{\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":25,\"output_tokens\":1}}}\n\n" +
	"event: content_block_delta\ndata: " +
	"{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Well.\"}}\n\n" +
	"event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":15}}\n\n" +
	"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"

func start(t *testing.T, c modelproxy.Config) (*modelproxy.Proxy, string) {
	t.Helper()
	c.Logger = slog.New(slog.DiscardHandler)
	p := modelproxy.New(c)
	t.Cleanup(p.Close)
	l, err := modelproxy.Listen()
	if err != nil {
		t.Fatal(err)
	}
	go p.Serve(l)
	return p, "http://" + l.Addr().String()
}

func register(t *testing.T, p *modelproxy.Proxy, run modelproxy.Run) {
	t.Helper()
	if run.LocalToken == "" {
		run.LocalToken = local
	}
	if run.Upstream == "" {
		run.Upstream = "http://127.0.0.1:1"
	}
	run.Token = attempt
	if err := p.Register(run); err != nil {
		t.Fatal(err)
	}
}

func server(t *testing.T, h http.HandlerFunc) string {
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

func call(t *testing.T, address, token, body string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest("POST", address+"/v1/messages", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", token)
	return read(t, http.DefaultClient, req)
}

func read(t *testing.T, client *http.Client, req *http.Request) (*http.Response, string) {
	t.Helper()
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

func TestModelCall(t *testing.T) {
	type seen struct{ auth, key, body string }
	got := make(chan seen, 1)
	far := server(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- seen{r.Header.Get("Authorization"), r.Header.Get("X-Api-Key"), string(body)}
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, answer)
	})
	p, address := start(t, modelproxy.Config{})
	totals := make(chan modelproxy.Totals, 9)
	register(t, p, modelproxy.Run{Upstream: far + "/", Model: "big", Models: []string{"side"},
		OnUsage: func(n modelproxy.Totals) { totals <- n }})
	for i, c := range []struct{ asked, sent string }{{"tiny-title-model", "big"}, {"side", "side"}} {
		resp, text := call(t, address, local, `{"model":"`+c.asked+`","stream":true}`)
		if resp.StatusCode != 200 || text != answer {
			t.Fatal(resp.StatusCode, text)
		}
		if s := <-got; s != (seen{"Bearer " + attempt, "", `{"model":"` + c.sent + `","stream":true}`}) {
			t.Fatal(s)
		}
		n := int64(i + 1)
		want := modelproxy.Totals{Tokens: llm.Tokens{InputTokens: 25 * n, OutputTokens: 15 * n}, Model: c.sent, Calls: n}
		if now := <-totals; now != want {
			t.Fatalf("%+v", now)
		}
	}
	for _, token := range []string{"", attempt, "other"} {
		if resp, text := call(t, address, token, `{}`); resp.StatusCode != 401 || strings.Contains(text, attempt) {
			t.Fatal(token, resp.StatusCode, text)
		}
	}
	if n := p.Unregister(local); n.Calls != 2 {
		t.Fatalf("%+v", n)
	}
	if resp, _ := call(t, address, local, `{}`); resp.StatusCode != 401 {
		t.Fatal("a run that is over was served:", resp.StatusCode)
	}
}

// TestFailedAnswers holds that an answer that fails before its content is refused with
// its kind, and one that fails later counts as failed. Neither is a success.
func TestFailedAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, body   string
		status       int // to the agent
		says         string
		calls, fails int64
	}{
		{"an error first", "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Busy\"}}\n\n", 503, "Busy", 0, 1},
		{"an error later", strings.Replace(answer, "event: message_delta", "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"Lost\"}}\n\nevent: message_delta", 1), 200, "Lost", 1, 1},
		{"no answer", "<html>", 502, "not one of a model", 0, 1},
		{"too long", `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 5 maximum"}}`, 400, "prompt is too long: 9 tokens", 0, 0},
	} {
		far := server(t, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, c.body)
		})
		p, address := start(t, modelproxy.Config{})
		register(t, p, modelproxy.Run{Upstream: far})
		resp, text := call(t, address, local, `{"model":"m","stream":true}`)
		n := p.Unregister(local)
		if resp.StatusCode != c.status || !strings.Contains(text, c.says) || n.Calls != c.calls || n.Failed != c.fails {
			t.Errorf("%s: %d %s %+v", c.name, resp.StatusCode, text, n)
		}
	}
}

func TestUnregisterCutsCalls(t *testing.T) {
	gone := make(chan struct{})
	far := server(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, answer)
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	})
	p, address := start(t, modelproxy.Config{})
	register(t, p, modelproxy.Run{Upstream: far})
	req, err := http.NewRequest("POST", address+"/v1/messages", strings.NewReader(`{"model":"m","stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+local)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	p.Unregister(local)
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Fatal("a call that was cut ended like a whole one")
	}
	patience.Ended(t, "the end of the control plane's handler", gone)
}

func TestErrorBudget(t *testing.T) {
	var status int
	var slug string
	far := server(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set(llm.FaultHeader, slug)
		if status == 429 {
			w.Header().Set(llm.KindHeader, "rate_limited")
		}
		w.WriteHeader(status)
		io.WriteString(w, `{"type":"message","content":[]}`)
	})
	for _, c := range []struct {
		status int
		slug   string
		calls  int
		kind   string // empty: never
	}{
		{403, llm.SlugAuth, 2, llm.SlugAuth},
		{402, llm.SlugQuota, 2, llm.SlugQuota},
		{402, "budget-exhausted", 2, "budget_exhausted"},
		{401, "unauthenticated", 2, "no_credential"},
		{404, llm.SlugModel, 2, llm.SlugModel},
		{429, llm.SlugRateLimit, 4, llm.SlugRateLimit},
		{500, "", 4, llm.SlugUnavailable},
		{400, "", 0, ""},
	} {
		t.Run(fmt.Sprint(c.status, c.slug), func(t *testing.T) {
			p, address := start(t, modelproxy.Config{Permanent: 2, Transient: 4})
			fatal := make(chan string, 9)
			register(t, p, modelproxy.Run{Upstream: far, OnFatal: func(kind, detail string) {
				if told := strings.Contains(detail, "rate limit holds"); told != (c.status == 429) {
					t.Errorf("%d is told as %q", c.status, detail)
				}
				fatal <- kind
			}})
			fail := func(n int) {
				for range n {
					status, slug = c.status, c.slug
					call(t, address, local, `{"model":"m"}`)
				}
			}
			fail(max(c.calls-1, 0))
			status, slug = 200, ""
			call(t, address, local, `{"model":"m"}`) // starts the count anew
			fail(max(c.calls-1, 0))
			if len(fatal) != 0 {
				t.Fatal("too early")
			}
			fail(8)
			refused := ""
			if hopeless := c.calls == 2; hopeless {
				refused = c.kind
			}
			if totals := p.Unregister(local); totals.Refused != refused {
				t.Errorf("refused as %q, want %q", totals.Refused, refused)
			}
			close(fatal)
			if got := <-fatal; got != c.kind || len(fatal) != 0 {
				t.Fatal(got, len(fatal))
			}
		})
	}
}

func through(t *testing.T, address, token string) *http.Client {
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		u.User = url.UserPassword("run", token)
	}
	transport := &http.Transport{Proxy: http.ProxyURL(u), DisableKeepAlives: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func TestEgress(t *testing.T) {
	page := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Authorization") != "" {
			t.Error("the token went out")
		}
		io.Copy(w, r.Body)
		io.WriteString(w, "plain")
	})
	port := page[strings.LastIndexByte(page, ':')+1:]
	for _, c := range []struct {
		list   []string
		token  string
		host   string
		status int
	}{
		{[]string{"127.0.0.1:" + port}, local, "127.0.0.1", 200},
		{[]string{"localhost:" + port, "127.0.0.0/8:*", "::1"}, local, "localhost", 200},
		{[]string{"localhost:" + port}, local, "localhost", 502}, // listed, but it leads into the box
		{[]string{"127.0.0.1"}, local, "127.0.0.1", 403},         // another port
		{[]string{"*.localhost:*"}, local, "localhost", 403},
		{nil, local, "127.0.0.1", 403},
		{[]string{"127.0.0.1:*"}, "", "127.0.0.1", 407},
		{[]string{"127.0.0.1:*"}, "other", "127.0.0.1", 407},
	} {
		p, address := start(t, modelproxy.Config{})
		register(t, p, modelproxy.Run{Egress: c.list})
		req, err := http.NewRequest("POST", "http://"+c.host+":"+port+"/", strings.NewReader("said "))
		if err != nil {
			t.Fatal(err)
		}
		resp, text := read(t, through(t, address, c.token), req)
		if resp.StatusCode != c.status || c.status == 200 && text != "said plain" {
			t.Errorf("%v %s: %d %s", c.list, c.host, resp.StatusCode, text)
		}
		p.Close()
	}
}

func TestTunnel(t *testing.T) {
	far, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	go func() {
		for {
			c, err := far.Accept()
			if err != nil {
				return
			}
			io.Copy(c, c) // until the other half is closed
			c.Close()
		}
	}()
	p, _ := start(t, modelproxy.Config{})
	register(t, p, modelproxy.Run{Egress: []string{far.Addr().String()}})
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	go p.Serve(l)
	open := func(address string) (net.Conn, *bufio.Reader, string) {
		c, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\nProxy-Authorization: Bearer %s\r\n\r\nearly ", address, address, local)
		r := bufio.NewReader(c)
		resp, err := http.ReadResponse(r, &http.Request{Method: "CONNECT"})
		if err != nil {
			t.Fatal(err)
		}
		return c, r, resp.Status[:3]
	}
	c, r, status := open(far.Addr().String())
	io.WriteString(c, "and late")
	c.(*net.UnixConn).CloseWrite()
	if text, err := io.ReadAll(r); status != "200" || err != nil || string(text) != "early and late" {
		t.Fatal(status, err, string(text))
	}
	if _, _, status := open("example.com:443"); status != "403" {
		t.Fatal(status)
	}
	_, r, _ = open(far.Addr().String())
	if _, err := r.ReadByte(); err != nil {
		t.Fatal(err)
	}
	p.Unregister(local)
	if _, err := io.Copy(io.Discard, r); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Fatal(err)
	}
	if _, _, status := open(far.Addr().String()); status != "407" {
		t.Fatal("a run that is over got a tunnel:", status)
	}
}

const geminiAnswer = `{"candidates":[{"content":{"parts":[{"text":"%s"}]},"finishReason":"STOP"}]}`

// TestModelThroughItsOwnProxy holds that a client that sends everything through its
// proxy, with or without a tunnel, reaches the model of its own run and nothing
// else of the machine.
func TestModelThroughItsOwnProxy(t *testing.T) {
	far := server(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, geminiAnswer, r.Header.Get("Authorization")+" at "+r.URL.String())
	})
	for _, where := range []string{"loopback", "socket"} {
		p, address := start(t, modelproxy.Config{})
		own := strings.TrimPrefix(address, "http://")
		dial := own
		network := "tcp"
		if where == "socket" { // a sandbox sees it under an address of its own
			network, own, dial = "unix", "127.0.0.1:7070", filepath.Join(t.TempDir(), "s")
			l, err := net.Listen(network, dial)
			if err != nil {
				t.Fatal(err)
			}
			go p.Serve(l)
		}
		register(t, p, modelproxy.Run{Upstream: far, Own: own})
		register(t, p, modelproxy.Run{Upstream: far, Own: own, LocalToken: "of-another-run"})
		open := func(target, token string) (net.Conn, *bufio.Reader, int) {
			c, err := net.Dial(network, dial)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\nProxy-Authorization: Bearer %s\r\n\r\n", target, target, token)
			r := bufio.NewReader(c)
			resp, err := http.ReadResponse(r, &http.Request{Method: "CONNECT"})
			if err != nil {
				t.Fatal(err)
			}
			return c, r, resp.StatusCode
		}
		say := func(c net.Conn, r *bufio.Reader, line, token string) (int, string) {
			fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: %s\r\nX-Goog-Api-Key: %s\r\nContent-Length: 2\r\n\r\n{}", line, own, token)
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			return resp.StatusCode, string(text)
		}
		c, r, status := open(own, local)
		if status != 200 {
			t.Fatal(where, status)
		}
		const call = "POST /v1beta/models/m:streamGenerateContent?alt=sse"
		want := fmt.Sprintf(geminiAnswer, "Bearer "+attempt+" at /v1beta/models/m:streamGenerateContent?alt=sse")
		for range 2 { // on one connection
			if status, text := say(c, r, call, local); status != 200 || text != want {
				t.Fatal(where, status, text)
			}
		}
		if status, text := say(c, r, call, "of-another-run"); status != 401 || !strings.Contains(text, modelproxy.NoToken) {
			t.Fatal("another run's call through this run's tunnel:", where, status, text)
		}
		if status, text := say(c, r, "GET http://127.0.0.1:1/", local); status != 403 {
			t.Fatal("the tunnel led on:", where, status, text)
		}
		plain, err := net.Dial(network, dial)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { plain.Close() })
		if status, text := say(plain, bufio.NewReader(plain), "POST http://"+own+"/v1beta/models/m:generateContent",
			local); status != 200 ||
			!strings.Contains(text, ":generateContent\"") {
			t.Fatal(where, status, text)
		}
		for target, token := range map[string]string{"127.0.0.1:1": local, "localhost:" + own[strings.LastIndexByte(own, ':')+1:]: local} {
			if _, _, status := open(target, token); status != 403 {
				t.Error(where, target, status)
			}
		}
		if _, _, status := open(own, "nobody's"); status != 407 {
			t.Error(where, status)
		}
		p.Unregister(local)
		if _, err := r.ReadByte(); err == nil {
			t.Error("the tunnel of a run that is over is open")
		}
		p.Close()
	}
}

func TestRegisterRefuses(t *testing.T) {
	p, _ := start(t, modelproxy.Config{})
	good := modelproxy.Run{LocalToken: local, Token: attempt, Upstream: "http://127.0.0.1:1"}
	for name, change := range map[string]func(*modelproxy.Run){
		"upstream": func(r *modelproxy.Run) { r.Upstream = "127.0.0.1:1" },
		"local":    func(r *modelproxy.Run) { r.LocalToken = "" },
		"token":    func(r *modelproxy.Run) { r.Token = "" },
		"star":     func(r *modelproxy.Run) { r.Egress = []string{"*"} },
		"port":     func(r *modelproxy.Run) { r.Egress = []string{"example.com:https"} },
		"url":      func(r *modelproxy.Run) { r.Egress = []string{"https://example.com"} },
	} {
		run := good
		change(&run)
		if err := p.Register(run); err == nil {
			t.Error("accepted:", name)
		}
	}
	if err := p.Register(good); err != nil {
		t.Fatal(err)
	}
	if err := p.Register(good); err == nil {
		t.Error("one token for two runs")
	}
}
