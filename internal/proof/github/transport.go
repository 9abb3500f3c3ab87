package github

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"

	"yardmaster/internal/lazy"
)

// gitPath matches the addresses of smart HTTP: owner, name, rest.
var gitPath = lazy.New(`^/([^/]+)/([^/]+?)(?:\.git)?/(info/refs|git-upload-pack|git-receive-pack)$`)

// serveGit serves git's smart HTTP, by the documents "http-protocol" and
// "pack-protocol" of git. The token is checked when a request begins.
func (s *Server) serveGit(w http.ResponseWriter, r *http.Request) {
	m := gitPath.FindStringSubmatch(r.URL.Path)
	service := m[3]
	if service == "info/refs" {
		service = r.URL.Query().Get("service")
	}
	if service != "git-upload-pack" && service != "git-receive-pack" {
		http.Error(w, "Please upgrade your git client.", http.StatusForbidden)
		return
	}
	if f := s.fault(m[3], r, nil); f != nil {
		if f.instead(w, r, s.Now()) {
			return
		}
		if f.Effect == Lose || f.Effect == FailLate {
			lost := &nowhere{header: http.Header{}}
			defer func() {
				if f.Effect == FailLate {
					http.Error(w, "Bad Gateway", http.StatusBadGateway)
					return
				}
				panic(http.ErrAbortHandler)
			}()
			s.serveGitService(lost, r, m, service)
			return
		}
	}
	s.serveGitService(w, r, m, service)
}

// nowhere is an answer that nobody gets.
type nowhere struct{ header http.Header }

func (n *nowhere) Header() http.Header         { return n.header }
func (n *nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (n *nowhere) WriteHeader(int)             {}

// serveGitService carries out a request of git.
func (s *Server) serveGitService(w http.ResponseWriter, r *http.Request, m []string, service string) {
	repo, by, ok := s.admit(w, r, m[1]+"/"+m[2], service)
	if !ok {
		return
	}
	w.Header().Set("Cache-Control", "no-cache, max-age=0, must-revalidate")
	if m[3] == "info/refs" {
		s.advertise(w, r, repo, service)
		return
	}
	body := io.Reader(r.Body)
	_ = http.NewResponseController(w).EnableFullDuplex() // git answers while it still reads
	if e := r.Header.Get("Content-Encoding"); e == "gzip" || e == "x-gzip" {
		gz, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, "The body is not valid gzip.", http.StatusBadRequest)
			return
		}
		body = gz
	}
	s.carry(Transfer{Service: service, Encoding: r.Header.Get("Content-Encoding"), Chunked: r.ContentLength < 0, Bytes: r.ContentLength})
	w.Header().Set("Content-Type", "application/x-"+service+"-result")
	if service == "git-receive-pack" {
		s.receive(w, body, repo, by)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", "upload-pack", "--stateless-rpc", repo.dir)
	cmd.Env = environment("GIT_PROTOCOL=" + r.Header.Get("Git-Protocol"))
	cmd.Stdin, cmd.Stdout = body, &expiring{w: w, s: s, t: by.token}
	_ = cmd.Run() // the client sees a short answer
}

// Transfer is a request of git that was carried out.
type Transfer struct {
	Service  string // git-upload-pack or git-receive-pack
	Encoding string // gzip, or empty
	Chunked  bool   // the body's length was not said
	Bytes    int64
}

func (s *Server) carry(t Transfer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.carried = append(s.carried, t)
}

// Transfers lists the requests of git that had a body, oldest first.
func (s *Server) Transfers() []Transfer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Transfer{}, s.carried...)
}

// expiring is the answer of a fetch, which may end with its token.
type expiring struct {
	w http.ResponseWriter
	s *Server
	t *token
}

func (e *expiring) Write(p []byte) (int, error) {
	if e.t != nil && e.s.o.CutAtExpiry && !e.t.expires.IsZero() && !e.s.Now().Before(e.t.expires) {
		return 0, io.ErrClosedPipe
	}
	n, err := e.w.Write(p)
	if f, ok := e.w.(http.Flusher); ok && err == nil {
		f.Flush()
	}
	return n, err
}

// admit finds the repository and holds the credential against what is asked. It
// answers refusals itself.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, full, service string) (*Repo, who, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var by who
	if _, password, given := r.BasicAuth(); given {
		found, good := s.holder(password)
		if !good {
			challenge(w, "Invalid username or token. Password authentication is not supported for Git operations.")
			return nil, by, false
		}
		by = found
	}
	if by.inst != nil && !by.inst.suspended.IsZero() {
		http.Error(w, "This installation has been suspended", http.StatusForbidden)
		return nil, by, false
	}
	repo := s.byName(full)
	if now := s.repos[s.moved[strings.ToLower(full)]]; repo == nil && now != nil && (!now.private || by.covers(now)) {
		to := s.Web + "/" + now.full() + ".git/" + gitPath.FindStringSubmatch(r.URL.Path)[3]
		if r.URL.RawQuery != "" {
			to += "?" + r.URL.RawQuery
		}
		http.Redirect(w, r, to, http.StatusMovedPermanently)
		return nil, by, false
	}
	reads := repo != nil && (!repo.private || by.covers(repo) && by.has("contents=read"))
	switch {
	case by.token == nil && (!reads || service == "git-receive-pack"):
		challenge(w, "Authentication required.")
	case !reads && repo != nil && by.covers(repo):
		http.Error(w, "Write access to repository not granted.", http.StatusForbidden)
	case !reads:
		http.Error(w, "Repository not found.", http.StatusNotFound)
	case service == "git-receive-pack" && repo.archived:
		http.Error(w, "This repository was archived so it is read-only.", http.StatusForbidden)
	case service == "git-receive-pack" && !(by.covers(repo) && by.has("contents=write") &&
		(by.person == nil || atLeast(repo.role(by.person), "write"))):
		http.Error(w, fmt.Sprintf("Permission to %s.git denied to %s.", repo.full(), by.account().Login), http.StatusForbidden)
	default:
		return repo, by, true
	}
	return nil, by, false
}

func challenge(w http.ResponseWriter, text string) {
	w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
	http.Error(w, text, http.StatusUnauthorized)
}

// offered are the abilities of receive-pack here.
const offered = "report-status delete-refs side-band-64k quiet atomic ofs-delta object-format=sha1 agent=git/github-peer"

// advertise answers the first request of a fetch or push.
func (s *Server) advertise(w http.ResponseWriter, r *http.Request, repo *Repo, service string) {
	var out bytes.Buffer
	protocol := r.Header.Get("Git-Protocol")
	if service == "git-upload-pack" {
		text, err := run(repo.dir, []string{"GIT_PROTOCOL=" + protocol}, nil, "upload-pack", "--stateless-rpc", "--advertise-refs", ".")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if !strings.Contains(protocol, "version=2") {
			out.WriteString(pkt("# service="+service+"\n") + "0000")
		}
		out.WriteString(text)
	} else {
		out.WriteString(pkt("# service="+service+"\n") + "0000")
		first := "\x00" + offered
		refs, _ := repo.git("for-each-ref", "--format=%(objectname) %(refname)")
		for line := range strings.Lines(refs) {
			out.WriteString(pkt(strings.TrimSuffix(line, "\n") + first + "\n"))
			first = ""
		}
		if first != "" {
			out.WriteString(pkt(zero + " capabilities^{}" + first + "\n"))
		}
		out.WriteString("0000")
	}
	w.Header().Set("Content-Type", "application/x-"+service+"-advertisement")
	_, _ = w.Write(out.Bytes())
}

func pkt(s string) string { return fmt.Sprintf("%04x%s", len(s)+4, s) }
