package modelproxy

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"yardmaster/internal/box/gate"
	"yardmaster/internal/llm"
)

// rule is one entry of a run's list of hosts.
type rule struct {
	host   string       // lower case; for *.domain the part after the star, with its dot
	prefix netip.Prefix // valid if the entry is an address or a prefix
	port   string       // empty: 80 and 443; *: any
}

type rules []rule

func parseRules(list []string) (rules, error) {
	var out rules
	for _, text := range list {
		r, err := parseRule(text)
		if err != nil {
			return nil, fmt.Errorf("egress %q: %w", text, err)
		}
		out = append(out, r)
	}
	return out, nil
}

func parseRule(text string) (rule, error) {
	r := rule{host: strings.ToLower(text)}
	if addr, err := netip.ParseAddr(text); err == nil { // an IPv6 address has colons of its own
		r.prefix = netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen())
		return r, nil
	}
	if prefix, err := netip.ParsePrefix(text); err == nil {
		r.prefix = prefix.Masked()
		return r, nil
	}
	if i := strings.LastIndexByte(r.host, ':'); i >= 0 {
		r.host, r.port = strings.Trim(r.host[:i], "[]"), r.host[i+1:]
		if _, err := strconv.ParseUint(r.port, 10, 16); err != nil && r.port != "*" {
			return rule{}, fmt.Errorf("the port is a number or *")
		}
	}
	if addr, err := netip.ParseAddr(r.host); err == nil {
		r.prefix = netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen())
	} else if prefix, err := netip.ParsePrefix(r.host); err == nil {
		r.prefix = prefix.Masked()
	}
	name := strings.TrimPrefix(r.host, "*.")
	if !r.prefix.IsValid() && (name == "" || strings.ContainsAny(name, "*/:@ []") || strings.HasPrefix(name, ".")) {
		return rule{}, fmt.Errorf("it is a host, *.domain, an address or a prefix")
	}
	r.host = strings.TrimPrefix(r.host, "*")
	return r, nil
}

func (r rule) serves(port string) bool {
	return r.port == "*" || r.port == port || r.port == "" && (port == "80" || port == "443")
}

// allowsHost tells whether the list allows the host of a request.
func (rs rules) allowsHost(host, port string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if addr, err := netip.ParseAddr(host); err == nil {
		return rs.allowsAddress(addr, port)
	}
	return slices.ContainsFunc(rs, func(r rule) bool {
		named := r.host == host || strings.HasPrefix(r.host, ".") && strings.HasSuffix(host, r.host)
		return named && !r.prefix.IsValid() && r.serves(port)
	})
}

// allowsAddress tells whether the list allows an address by an address or a prefix.
func (rs rules) allowsAddress(addr netip.Addr, port string) bool {
	addr = addr.Unmap().WithZone("")
	return slices.ContainsFunc(rs, func(r rule) bool {
		return r.prefix.IsValid() && r.prefix.Contains(addr) && r.serves(port)
	})
}

// covers is allowsAddress for the address and the port of a connection.
func (rs rules) covers(addr netip.Addr, port uint16) bool {
	return rs.allowsAddress(addr, strconv.Itoa(int(port)))
}

// egress is the forward proxy: CONNECT, and plain requests for http addresses.
func (p *Proxy) egress(w http.ResponseWriter, r *http.Request) {
	pass := p.gate.Find(proxyToken(r.Header))
	if pass == nil {
		w.Header().Set("Proxy-Authenticate", `Basic realm="run"`)
		http.Error(w, "The proxy needs the token of a run on this box.", http.StatusProxyAuthRequired)
		return
	}
	s := pass.Run
	host, port := r.URL.Hostname(), r.URL.Port()
	if port == "" {
		port = "80"
	}
	if r.Method != http.MethodConnect && r.URL.Scheme != "http" {
		http.Error(w, "Only http addresses are forwarded; use CONNECT for others.", http.StatusBadRequest)
		return
	}
	if r.Method == http.MethodConnect && s.run.Own != "" && r.URL.Host == s.run.Own {
		p.tunnelToSelf(w, pass)
		return
	}
	if !s.rules.allowsHost(host, port) {
		p.Logger.Info("egress refused", "host", host, "port", port)
		http.Error(w, "This run may not reach "+net.JoinHostPort(host, port)+".", http.StatusForbidden)
		return
	}
	ctx, cancel := pass.Bound(r.Context())
	defer cancel()
	if r.Method == http.MethodConnect {
		p.tunnel(ctx, w, pass, net.JoinHostPort(host, port))
		return
	}
	p.plain(w, r.WithContext(ctx), s)
}

// proxyToken returns the token of a client with
// HTTP_PROXY=http://run:TOKEN@host:port.
func proxyToken(h http.Header) string {
	scheme, text, _ := strings.Cut(h.Get("Proxy-Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") {
		return text
	}
	pair, err := base64.StdEncoding.DecodeString(text)
	if err != nil || !strings.EqualFold(scheme, "Basic") {
		return ""
	}
	_, password, _ := strings.Cut(string(pair), ":")
	return password
}

// tunnel connects the caller and the address until either closes or the run ends.
func (p *Proxy) tunnel(ctx context.Context, w http.ResponseWriter, pass *gate.Pass[*session], address string) {
	far, err := pass.Run.dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		p.unreachable(w, address, err)
		return
	}
	defer far.Close()
	near, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "This connection cannot be a tunnel.", http.StatusInternalServerError)
		return
	}
	defer near.Close()
	// The context of a hijacked request ends with its handler, not with the
	// connection, so the end of the run closes both.
	defer pass.AfterEnd(func() { near.Close(); far.Close() })()
	if err := near.SetDeadline(time.Time{}); err != nil {
		return
	}
	if _, err := io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		if _, err := io.Copy(far, buffered); err != nil {
			far.Close()
			return
		}
		closeWrite(far)
	}()
	if _, err := io.Copy(near, far); err != nil {
		near.Close()
	}
	closeWrite(near)
	<-sent
}

// tunnelToSelf is a tunnel to this proxy itself, for a client that uses its proxy for all
// addresses. Calls through it are treated like all calls of the run: they need its
// token, and reach nothing but the model.
func (p *Proxy) tunnelToSelf(w http.ResponseWriter, pass *gate.Pass[*session]) {
	near, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "This connection cannot be a tunnel.", http.StatusInternalServerError)
		return
	}
	defer near.Close()
	defer pass.AfterEnd(func() { near.Close() })()
	if err := near.SetDeadline(time.Time{}); err != nil {
		return
	}
	if _, err := io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	l := &single{Conn: near, read: buffered, over: make(chan struct{})}
	srv := p.gate.Server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodConnect || r.URL.IsAbs():
			http.Error(w, "This tunnel ends at the model.", http.StatusForbidden)
		case p.gate.Find(llm.Token(r.Header)) != pass:
			noToken(w, r)
		default:
			p.call(w, r, pass)
		}
	}))
	srv.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			l.end()
		}
	}
	_ = srv.Serve(l) // its only error is the end of the listener
}

// single is a connection, and a listener with that one connection.
type single struct {
	net.Conn
	read  io.Reader // the bytes that were read already, and the rest
	taken bool
	once  sync.Once
	over  chan struct{}
}

func (c *single) Read(p []byte) (int, error) { return c.read.Read(p) }

func (c *single) end() { c.once.Do(func() { close(c.over) }) }

// Accept returns the connection at the first call, and then waits until it is
// closed.
func (c *single) Accept() (net.Conn, error) {
	if !c.taken {
		c.taken = true
		return c, nil
	}
	<-c.over
	return nil, net.ErrClosed
}

func (c *single) Addr() net.Addr { return c.LocalAddr() }

// closeWrite tells the other side that no more bytes follow.
func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // the other side may have closed already
		return
	}
	c.Close()
}

// forwarding lists headers that a reverse proxy removes from a request and a
// forward proxy keeps.
var forwarding = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}

func (p *Proxy) plain(w http.ResponseWriter, r *http.Request, s *session) {
	// An answer may begin before the request has been read completely. HTTP/2
	// returns an error here and needs no switch.
	_ = http.NewResponseController(w).EnableFullDuplex()
	w.Header()["Content-Type"] = nil // nothing is guessed for an answer without a type
	(&httputil.ReverseProxy{
		Rewrite: func(out *httputil.ProxyRequest) {
			out.Out.URL.RawQuery = r.URL.RawQuery // also if it cannot be parsed
			for _, name := range forwarding {
				if values, sent := r.Header[name]; sent {
					out.Out.Header[name] = values
				}
			}
			for _, name := range []string{"Connection", "Upgrade"} { // a change of protocol needs a tunnel
				out.Out.Header.Del(name)
			}
		},
		Transport:     s.plain,
		FlushInterval: -1,
		ErrorLog:      slog.NewLogLogger(p.Logger.Handler(), slog.LevelDebug),
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, err error) { p.unreachable(w, r.URL.Host, err) },
	}).ServeHTTP(w, r)
}

func (p *Proxy) unreachable(w http.ResponseWriter, address string, err error) {
	p.Logger.Info("egress failed", "address", address, "error", err)
	http.Error(w, address+" cannot be reached.", http.StatusBadGateway)
}
