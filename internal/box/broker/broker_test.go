package broker_test

import (
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"strconv"
	"yardmaster/internal/box/broker"
	"yardmaster/internal/box/sandbox"
	"yardmaster/internal/box/scrub"
	"yardmaster/internal/proof/executable"
	"yardmaster/internal/proof/loopback"
)

// The test binary is also the shim of sandboxes and the agent in them.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == sandbox.Command:
		os.Exit(sandbox.Main(os.Args[2:]))
	case len(os.Args) > 1 && os.Args[1] == "hostile":
		hostile(os.Args[2:])
		os.Exit(0)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil { // as the box does
		panic(err)
	}
	os.Exit(m.Run())
}

const (
	canary = "canary+7f3Qz9/Lw2=x"
	token  = "run-token"
)

// upstream is a host that repeats all parts of a request, in many forms.
func upstream(t *testing.T) (*httptest.Server, string) {
	mux := http.NewServeMux()
	secret := func(r *http.Request) string {
		return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	}
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		w.Header().Set("X-Saw", fmt.Sprint(secret(r) == canary))
		s := secret(r)
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%v\n%s\n%s\n%s\n%s\n%s?%s %s\n", r.Header, s, base64.StdEncoding.EncodeToString([]byte("user:"+s)),
			hex.EncodeToString([]byte(s)),
			url.QueryEscape(s), r.URL.EscapedPath(), r.URL.RawQuery, body)
	})
	mux.HandleFunc("/drip", func(w http.ResponseWriter, r *http.Request) {
		for _, c := range []byte(secret(r)) {
			w.Write([]byte{c})
			w.(http.Flusher).Flush()
		}
	})
	mux.HandleFunc("/range", func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "x", time.Time{}, strings.NewReader(secret(r)))
	})
	mux.HandleFunc("/part", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusPartialContent)
		io.WriteString(w, secret(r)[:9])
	})
	mux.HandleFunc("/gzip", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		io.WriteString(z, secret(r))
		z.Close()
	})
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://elsewhere.example/?k="+url.QueryEscape(secret(r)), http.StatusFound)
	})
	mux.HandleFunc("/back", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/echo?again=1", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/down", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+r.Host+"/echo", http.StatusFound)
	})
	far := httptest.NewTLSServer(mux)
	t.Cleanup(far.Close)
	return far, strings.TrimPrefix(far.URL, "https://")
}

type fixture struct {
	*broker.Broker
	address string // of the run
	port    string
	socket  string
}

func start(t *testing.T, far *httptest.Server, private []string, secrets func(fresh bool) broker.Secrets) fixture {
	t.Helper()
	cfg := broker.Config{Logger: slog.New(slog.DiscardHandler), Private: private}
	if far != nil {
		cfg.Roots = far.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	}
	b := broker.New(cfg)
	t.Cleanup(b.Close)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "broker-") // short: a socket's path is
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", dir+"/s")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir+"/s", 0o666); err != nil {
		t.Fatal(err)
	}
	for _, l := range []net.Listener{tcp, socket} {
		go b.Serve(l)
	}
	f := fixture{b, broker.Address(tcp.Addr().String(), token), tcp.Addr().String(), dir + "/s"}
	f.register(t, secrets)
	return f
}

// register admits the run of the tests.
func (f fixture) register(t *testing.T, secrets func(fresh bool) broker.Secrets) {
	t.Helper()
	err := f.Register(broker.Run{Token: token, Scrubber: scrub.New(canary),
		Secrets: func(_ context.Context, fresh bool) (broker.Secrets, error) { return secrets(fresh), nil }})
	if err != nil {
		t.Fatal(err)
	}
}

func lend(hosts ...string) func(bool) broker.Secrets {
	return func(bool) broker.Secrets {
		return broker.Secrets{Env: map[string]string{"OPEN": "it's\nopen"},
			Credentials: []broker.Credential{{Hosts: hosts, Header: "Authorization", Value: "Bearer " + canary}}}
	}
}

var plain = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport: &http.Transport{DisableKeepAlives: true}}

func get(t *testing.T, method, address string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, address, strings.NewReader("said"))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := plain.Do(req)
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

// leaks tells whether text holds the canary in a form that can be read back.
func leaks(text string) bool {
	forms := []string{canary, canary[:9], hex.EncodeToString([]byte(canary)), url.QueryEscape(canary)}
	for before := range 3 {
		e := base64.RawStdEncoding.EncodeToString(append(make([]byte, before), canary...))
		forms = append(forms, e[(before*8+5)/6:(before+len(canary))*8/6])
	}
	for _, f := range forms {
		if strings.Contains(text, f) {
			return true
		}
	}
	return false
}

func TestCredentialIsAddedAndNeverComesBack(t *testing.T) {
	far, host := upstream(t)
	f := start(t, far, []string{"127.0.0.0/8"}, lend(host))
	if resp, _ := get(t, "GET", f.address+"/"+host+"/echo%2Fno"); resp.StatusCode != 404 {
		t.Error("the path does not travel as it was sent:", resp.StatusCode)
	}
	resp, text := get(t, "POST", f.address+"/"+host+"/echo?a=b%20c", "Authorization", "Bearer mine", "Connection", "Authorization")
	if resp.StatusCode != 200 || resp.Header.Get("X-Saw") != "true" || !strings.Contains(text, "/echo?a=b%20c said") ||
		strings.Contains(text, "mine") {
		t.Error(resp.StatusCode, resp.Header, text)
	}
	if leaks(text) || leaks(fmt.Sprint(resp.Header)) || !strings.Contains(text, scrub.Mark) {
		t.Errorf("the answer leaks: %v %s", resp.Header, text)
	}
	for _, c := range []struct {
		path   string
		status int
		header []string
	}{
		{"/drip", 200, nil}, {"/range", 200, []string{"Range", "bytes=0-8"}}, {"/part", 502, nil},
		{"/gzip", 502, []string{"Accept-Encoding", "gzip"}},
		{"/away", 502, nil}, {"/down", 502, nil},
	} {
		resp, text := get(t, "GET", f.address+"/"+host+c.path, c.header...)
		if resp.StatusCode != c.status || leaks(text) || leaks(fmt.Sprint(resp.Header)) {
			t.Errorf("%s: %d %v %s", c.path, resp.StatusCode, resp.Header, text)
		}
	}
	resp, _ = get(t, "GET", f.address+"/"+host+"/back")
	// It does not name the token of the run, which no answer may hold.
	if at, err := resp.Location(); err != nil || resp.StatusCode != 307 || at.Path != "/"+token+"/"+host+"/echo" ||
		at.RawQuery != "again=1" || strings.Contains(resp.Header.Get("Location"), token) {
		t.Error(resp.StatusCode, resp.Header, err)
	}
	if resp, _ := get(t, "TRACE", f.address+"/"+host+"/echo"); resp.StatusCode != 405 {
		t.Error("TRACE:", resp.StatusCode)
	}
}

func TestOnlyItsHosts(t *testing.T) {
	far, host := upstream(t)
	other, otherHost := upstream(t)
	_ = other
	f := start(t, far, []string{"127.0.0.1"}, lend(host))
	for _, path := range []string{"/" + otherHost + "/echo", "/localhost/echo", "/" + host + "@" + otherHost + "/echo", "/" + host +
		"%2F..%2F@" + otherHost + "/", "/", "//" + otherHost + "/echo"} {
		if resp, text := get(t, "GET", f.address+path); resp.StatusCode != 403 && resp.StatusCode != 400 {
			t.Errorf("%s: %d %s", path, resp.StatusCode, text)
		}
	}
	for _, wrong := range []string{"", "other"} {
		if resp, _ := get(t, "GET", "http://"+f.port+"/"+wrong+"/"+host+"/echo"); resp.StatusCode != 403 {
			t.Error("served with the token", wrong, resp.StatusCode)
		}
	}
	f.Unregister(token)
	if resp, _ := get(t, "GET", f.address+"/"+host+"/echo"); resp.StatusCode != 403 {
		t.Error("served a run that is over:", resp.StatusCode)
	}
	// A name that resolves to an address of the box is not dialled.
	g := start(t, far, nil, lend(host))
	if resp, _ := get(t, "GET", g.address+"/"+host+"/echo"); resp.StatusCode != 502 {
		t.Error("dialled loopback:", resp.StatusCode)
	}
}

func TestEnvAndNews(t *testing.T) {
	far, host := upstream(t)
	var arrived bool
	f := start(t, far, []string{"127.0.0.1"}, func(fresh bool) broker.Secrets {
		if arrived = arrived || fresh; !arrived {
			return broker.Secrets{}
		}
		return lend(host)(false)
	})
	if resp, text := get(t, "GET", f.address+"/"+host+"/echo"); resp.StatusCode != 200 {
		t.Error("what came later is not found:", resp.StatusCode, text)
	}
	if _, text := get(t, "GET", f.address+"/-/env"); text != "export OPEN='it'\\''s\nopen'\n" {
		t.Errorf("env is %q", text)
	}
}

// hostile is an agent that looks for the secret wherever it can, and prints
// what it finds.
func hostile(args []string) {
	address, host, box := os.Getenv("YARDMASTER_SECRETS_URL"), args[0], args[1]
	show := func(path string) {
		if b, err := os.ReadFile(path); err == nil {
			os.Stdout.Write(b)
		}
	}
	for _, path := range []string{"/echo", "/drip", "/range", "/part", "/gzip", "/away", "/down"} {
		resp, err := plain.Get(address + "/" + host + path)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(resp.StatusCode, resp.Header)
		io.Copy(os.Stdout, resp.Body)
		resp.Body.Close()
	}
	fmt.Println(os.Environ())
	procs, _ := os.ReadDir("/proc")
	for _, p := range procs {
		for _, name := range []string{"environ", "cmdline"} {
			show("/proc/" + p.Name() + "/" + name)
		}
	}
	if f, err := os.Open("/proc/" + box + "/mem"); err == nil {
		fmt.Println("MEMORY IS OPEN", f.Name())
	}
}

func TestCanaryAtEveryLevel(t *testing.T) {
	far, host := upstream(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, level := range []sandbox.Level{sandbox.Bubblewrap, sandbox.Landlock, sandbox.None} {
		t.Run(string(level), func(t *testing.T) {
			f := start(t, far, []string{"127.0.0.1"}, lend(host))
			root, err := os.MkdirTemp("", "canary-")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(root) })
			task, home, program := root+"/task", root+"/home", root+"/agent"
			text, err := os.ReadFile(self)
			if err != nil {
				t.Fatal(err)
			}
			if err := executable.Write(program, text, 0o755); err != nil {
				t.Fatal(err)
			}
			for _, dir := range []string{task, home} {
				if err := os.Mkdir(dir, 0o777); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(root, 0o755); err != nil {
				t.Fatal(err)
			}
			spec := sandbox.Spec{Level: level, Task: task, Home: home, Argv: []string{program, "hostile", host, fmt.Sprint(os.Getpid())},
				ReadOnly: []string{program},
				Env:      map[string]string{"YARDMASTER_SECRETS_URL": f.address}}
			if level != sandbox.None { // what a sandbox may reach, it reaches by a forwarded port
				port := 7071
				if level == sandbox.Landlock {
					_, text, _ := net.SplitHostPort(loopback.Address())
					port, _ = strconv.Atoi(text)
				}
				spec.Env["YARDMASTER_SECRETS_URL"] = broker.Address(fmt.Sprint("127.0.0.1:", port), token)
				spec.Forward = []sandbox.Forward{{Port: port, Socket: f.socket}}
			}
			var said strings.Builder
			spec.Stdout, spec.Stderr = &said, &said
			p, err := sandbox.Start(t.Context(), spec)
			if errors.Is(err, sandbox.ErrUnavailable) {
				t.Fatalf("%s is not to be had on this machine (%v): this test needs it", level, err)
			} else if err != nil {
				t.Fatal(err)
			}
			if err := p.Wait(); err != nil {
				t.Fatal(err, said.String())
			}
			out := said.String()
			if strings.Count(out, "X-Saw:[true]") != 1 || !strings.Contains(out, scrub.Mark) {
				t.Errorf("the host was not reached with the credential:\n%s", out)
			}
			if leaks(out) || strings.Contains(out, "MEMORY IS OPEN") {
				t.Errorf("the agent has it:\n%s", out)
			}
			found := map[string]string{}
			for _, dir := range []string{task, home} {
				entries, err := os.ReadDir(dir)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range entries {
					found[e.Name()] = dir
				}
			}
			delete(found, ".tmp")
			if len(found) > 0 {
				t.Errorf("files were left: %v", found)
			}
		})
	}
}
