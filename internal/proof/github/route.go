package github

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"yardmaster/internal/lazy"
)

// kind is who may call an operation.
type kind int

const (
	byAnyone       kind = iota // also nobody
	byApp                      // an App's JWT
	byInstallation             // a token of an installation
	byPerson                   // a personal token
	byToken                    // either token
	byAny                      // either token, or nobody for what is public
)

// route is an operation of the API.
type route struct {
	operation string // the method, and the path as the description has it
	by        kind
	need      string // permissions, of which one is enough: "issues=write|pull_requests=write"
	content   bool   // it makes content, of which there is a secondary limit
	do        func(*call) (int, any)

	method  string
	pattern *regexp.Regexp
	names   []string
	fixed   int // length of what is no parameter: the more, the better the match
}

// graphQL is the operation of all GraphQL.
const graphQL = "POST /graphql"

const (
	inRepo    = "/repos/{owner}/{repo}"
	ofPull    = inRepo + "/pulls/{pull_number}"
	ofRun     = inRepo + "/actions/runs/{run_id}"
	ofCheck   = inRepo + "/check-runs/{check_run_id}"
	ofIssue   = inRepo + "/issues/{issue_number}"
	pullGet   = "pull_requests=read"
	pullPut   = "pull_requests=write"
	eitherGet = "issues=read|pull_requests=read"
	eitherPut = "issues=write|pull_requests=write"
)

// table is the table of operations, once routes has made it.
var table struct {
	once sync.Once
	all  []*route
}

// routes is the table of operations. It is made at its first use: the program that has the
// demo starts for other things, too.
func routes() []*route {
	table.once.Do(makeTable)
	return table.all
}

func makeTable() {
	table.all = []*route{
		{operation: graphQL, by: byToken, do: (*call).graph},
		{operation: "GET /meta", by: byAnyone, do: (*call).meta},
		{operation: "GET /rate_limit", by: byAny, do: (*call).rates},
		{operation: "GET /user", by: byPerson, do: (*call).user},
		{operation: "GET /users/{username}", by: byAny, do: (*call).userByName},

		{operation: "POST /app-manifests/{code}/conversions", by: byAnyone, do: (*call).convert},
		{operation: "GET /app", by: byApp, do: (*call).showApp},
		{operation: "GET /app/installations", by: byApp, do: (*call).listInstallations},
		{operation: "GET /app/installations/{installation_id}", by: byApp, do: (*call).getInstallation},
		{operation: "DELETE /app/installations/{installation_id}", by: byApp, do: (*call).deleteInstallation},
		{operation: "POST /app/installations/{installation_id}/access_tokens", by: byApp, do: (*call).createToken},
		{operation: "GET " + inRepo + "/installation", by: byApp, do: (*call).repoInstallation},
		{operation: "GET /installation/repositories", by: byInstallation, do: (*call).installationRepos},
		{operation: "DELETE /installation/token", by: byInstallation, do: (*call).revokeToken},
		{operation: "GET /app/hook/config", by: byApp, do: (*call).getHook},
		{operation: "PATCH /app/hook/config", by: byApp, do: (*call).patchHook},
		{operation: "GET /app/hook/deliveries", by: byApp, do: (*call).listDeliveries},
		{operation: "GET /app/hook/deliveries/{delivery_id}", by: byApp, do: (*call).getDelivery},
		{operation: "POST /app/hook/deliveries/{delivery_id}/attempts", by: byApp, do: (*call).redeliver},

		{operation: "GET /repositories/{repository_id}", by: byAny, do: (*call).getRepo},
		{operation: "GET " + inRepo, by: byAny, do: (*call).getRepo},
		{operation: "PATCH " + inRepo, by: byToken, need: "administration=write", do: (*call).patchRepo},
		{operation: "POST /orgs/{org}/repos", by: byToken, content: true, do: (*call).createRepo},
		{operation: "GET " + inRepo + "/branches", by: byAny, need: "contents=read", do: (*call).listBranches},
		{operation: "GET " + inRepo + "/branches/{branch}", by: byAny, need: "contents=read", do: (*call).getBranch},
		{operation: "GET " + inRepo + "/rules/branches/{branch}", by: byAny, do: (*call).branchRules},
		{operation: "GET " + inRepo + "/git/ref/{ref}", by: byAny, need: "contents=read", do: (*call).getRef},
		{operation: "POST " + inRepo + "/git/refs", by: byToken, need: "contents=write", do: (*call).createRef},
		{operation: "PATCH " + inRepo + "/git/refs/{ref}", by: byToken, need: "contents=write", do: (*call).updateRef},
		{operation: "DELETE " + inRepo + "/git/refs/{ref}", by: byToken, need: "contents=write", do: (*call).deleteRef},
		{operation: "GET " + inRepo + "/commits", by: byAny, need: "contents=read", do: (*call).listCommits},
		{operation: "GET " + inRepo + "/commits/{ref}", by: byAny, need: "contents=read", do: (*call).getCommit},
		{operation: "GET " + inRepo + "/commits/{commit_sha}/pulls", by: byAny, need: pullGet, do: (*call).commitPulls},
		{operation: "GET " + inRepo + "/compare/{basehead}", by: byAny, need: "contents=read", do: (*call).compare},
		{operation: "GET " + inRepo + "/contents/{path}", by: byAny, need: "contents=read", do: (*call).contents},
		{operation: "POST " + inRepo + "/merges", by: byToken, need: "contents=write", do: (*call).mergeBranch},
		{operation: "GET " + inRepo + "/collaborators/{username}/permission", by: byToken, do: (*call).collaborator},

		{operation: "GET " + inRepo + "/pulls", by: byAny, need: pullGet, do: (*call).listPulls},
		{operation: "POST " + inRepo + "/pulls", by: byToken, need: pullPut, content: true, do: (*call).createPull},
		{operation: "GET " + ofPull, by: byAny, need: pullGet, do: (*call).getPull},
		{operation: "PATCH " + ofPull, by: byToken, need: pullPut, do: (*call).patchPull},
		{operation: "GET " + ofPull + "/files", by: byAny, need: pullGet, do: (*call).pullFiles},
		{operation: "GET " + ofPull + "/commits", by: byAny, need: pullGet, do: (*call).pullCommits},
		{operation: "GET " + ofPull + "/merge", by: byAny, need: pullGet, do: (*call).isMerged},
		{operation: "PUT " + ofPull + "/merge", by: byToken, need: "contents=write", do: (*call).mergePull},
		{operation: "GET " + ofPull + "/requested_reviewers", by: byAny, need: pullGet, do: (*call).listRequested},
		{operation: "POST " + ofPull + "/requested_reviewers", by: byToken, need: pullPut, content: true, do: (*call).request},
		{operation: "DELETE " + ofPull + "/requested_reviewers", by: byToken, need: pullPut, do: (*call).unrequest},
		{operation: "GET " + ofPull + "/reviews", by: byAny, need: pullGet, do: (*call).listReviews},
		{operation: "POST " + ofPull + "/reviews", by: byToken, need: pullPut, content: true, do: (*call).createReview},
		{operation: "GET " + ofPull + "/reviews/{review_id}", by: byAny, need: pullGet, do: (*call).getReview},
		{operation: "GET " + ofPull + "/reviews/{review_id}/comments", by: byAny, need: pullGet, do: (*call).reviewComments},
		{operation: "GET " + ofPull + "/comments", by: byAny, need: pullGet, do: (*call).pullComments},
		{operation: "POST " + ofPull + "/comments", by: byToken, need: pullPut, content: true, do: (*call).createPullComment},
		{operation: "POST " + ofPull + "/comments/{comment_id}/replies", by: byToken, need: pullPut, content: true, do: (*call).reply},
		{operation: "GET " + inRepo + "/pulls/comments/{comment_id}", by: byAny, need: pullGet, do: (*call).getPullComment},
		{operation: "PATCH " + inRepo + "/pulls/comments/{comment_id}", by: byToken, need: pullPut, do: (*call).patchPullComment},

		{operation: "POST " + inRepo + "/check-runs", by: byInstallation, need: "checks=write", content: true, do: (*call).createCheck},
		{operation: "PATCH " + ofCheck, by: byInstallation, need: "checks=write", do: (*call).updateCheck},
		{operation: "GET " + ofCheck, by: byAny, need: "checks=read", do: (*call).getCheck},
		{operation: "POST " + ofCheck + "/rerequest", by: byInstallation, need: "checks=write", do: (*call).rerequest},
		{operation: "GET " + inRepo + "/commits/{ref}/check-runs", by: byAny, need: "checks=read", do: (*call).listChecks},
		{operation: "GET " + inRepo + "/commits/{ref}/check-suites", by: byAny, need: "checks=read", do: (*call).listSuites},
		{operation: "GET " + inRepo + "/commits/{ref}/status", by: byAny, need: "statuses=read", do: (*call).combinedStatus},

		{operation: "GET " + inRepo + "/actions/runs", by: byAny, need: "actions=read", do: (*call).listRuns},
		{operation: "GET " + ofRun, by: byAny, need: "actions=read", do: (*call).getRun},
		{operation: "GET " + ofRun + "/jobs", by: byAny, need: "actions=read", do: (*call).listJobs},
		{operation: "GET " + inRepo + "/actions/jobs/{job_id}", by: byAny, need: "actions=read", do: (*call).getJob},
		{operation: "POST " + ofRun + "/rerun-failed-jobs", by: byToken, need: "actions=write", do: (*call).rerunFailed},
		{operation: "POST " + inRepo + "/actions/jobs/{job_id}/rerun", by: byToken, need: "actions=write", do: (*call).rerunJob},
		{operation: "GET " + inRepo + "/actions/jobs/{job_id}/logs", by: byToken, need: "actions=read", do: (*call).jobLog},

		{operation: "GET " + inRepo + "/issues", by: byAny, need: eitherGet, do: (*call).listIssues},
		{operation: "POST " + inRepo + "/issues", by: byToken, need: "issues=write", content: true, do: (*call).createIssue},
		{operation: "GET " + ofIssue, by: byAny, need: eitherGet, do: (*call).getIssue},
		{operation: "PATCH " + ofIssue, by: byToken, need: eitherPut, do: (*call).patchIssue},
		{operation: "GET " + ofIssue + "/comments", by: byAny, need: eitherGet, do: (*call).listComments},
		{operation: "POST " + ofIssue + "/comments", by: byToken, need: eitherPut, content: true, do: (*call).createComment},
		{operation: "GET " + inRepo + "/issues/comments/{comment_id}", by: byAny, need: eitherGet, do: (*call).getComment},
		{operation: "PATCH " + inRepo + "/issues/comments/{comment_id}", by: byToken, need: eitherPut, do: (*call).patchComment},
		{operation: "DELETE " + inRepo + "/issues/comments/{comment_id}", by: byToken, need: eitherPut, do: (*call).deleteComment},
		{operation: "GET " + ofIssue + "/labels", by: byAny, need: eitherGet, do: (*call).issueLabels},
		{operation: "POST " + ofIssue + "/labels", by: byToken, need: eitherPut, do: (*call).addLabels},
		{operation: "PUT " + ofIssue + "/labels", by: byToken, need: eitherPut, do: (*call).setLabels},
		{operation: "DELETE " + ofIssue + "/labels/{name}", by: byToken, need: eitherPut, do: (*call).removeLabel},
		{operation: "GET " + inRepo + "/labels", by: byAny, need: eitherGet, do: (*call).listLabels},
		{operation: "GET " + inRepo + "/milestones", by: byAny, need: eitherGet, do: (*call).listMilestones},
		{operation: "GET " + inRepo + "/milestones/{milestone_number}", by: byAny, need: eitherGet, do: (*call).getMilestone},
		{operation: "PATCH " + inRepo + "/milestones/{milestone_number}", by: byToken, need: eitherPut, do: (*call).patchMilestone},
	}
	for _, r := range table.all {
		r.compile()
	}
}

// Operations lists the operations of REST, as the description names them.
func Operations() (out []string) {
	for _, r := range routes() {
		if r.operation != graphQL {
			out = append(out, r.operation)
		}
	}
	return out
}

var parameter = lazy.New(`\\\{(\w+)\\\}`)

// compile makes the pattern of a route. Parameters that name refs and files may have
// slashes.
func (r *route) compile() {
	method, path, _ := strings.Cut(r.operation, " ")
	r.method = method
	r.fixed = len(parameter.ReplaceAllString(regexp.QuoteMeta(path), ""))
	text := parameter.ReplaceAllStringFunc(regexp.QuoteMeta(path), func(p string) string {
		name := strings.Trim(p, `\{}`)
		r.names = append(r.names, name)
		switch name {
		case "ref", "branch", "path", "basehead":
			return "(.+)"
		}
		return "([^/]+)"
	})
	text = strings.Replace(text, `/contents/(.+)`, `/contents(?:/(.*))?`, 1) // the root has no path
	r.pattern = regexp.MustCompile("^" + text + "$")
}

// match finds the operation of a request.
func match(method, path string) (*route, map[string]string) {
	var best *route
	var params map[string]string
	for _, r := range routes() {
		if r.method != method && !(method == http.MethodHead && r.method == http.MethodGet) || best != nil && best.fixed >= r.fixed {
			continue
		}
		m := r.pattern.FindStringSubmatch(path)
		if m == nil {
			continue
		}
		best, params = r, map[string]string{}
		for i, name := range r.names {
			params[name], _ = url.PathUnescape(m[i+1])
			if params[name] == "" {
				params[name] = "/"
			}
		}
	}
	return best, params
}

var byID = lazy.New(`^/repositories/(\d+)/(.+)$`)

// byNumber finds the operation of an address below /repositories/{id}, to which
// renamed repositories redirect.
func (s *Server) byNumber(method, path string) (*route, map[string]string) {
	m := byID.FindStringSubmatch(path)
	if m == nil {
		return match(method, path)
	}
	n, _ := strconv.ParseInt(m[1], 10, 64)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.repos[n]; r != nil {
		return match(method, "/repos/"+r.full()+"/"+m[2])
	}
	return match(method, "/repos/-/-/"+m[2]) // a repository that there is not: the operation answers so
}

// serveAPI carries out a request to the API.
func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 32<<20))
	if err != nil {
		plain(w, http.StatusBadRequest, "Problems reading the body")
		return
	}
	rt, params := s.byNumber(r.Method, r.URL.EscapedPath())
	e := Exchange{Params: params, Request: r, Body: body}
	if rt == nil {
		plain(w, http.StatusNotFound, "Not Found")
		e.Status = http.StatusNotFound
		s.watch(e)
		return
	}
	e.Operation = rt.operation
	s.count(rt.operation)
	if !s.enter(r) {
		w.Header().Set("Retry-After", "60")
		plain(w, http.StatusForbidden, "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.")
		return
	}
	defer s.leave(r)
	f := s.fault(rt.operation, r, body)
	if f != nil && f.instead(w, r, s.Now()) {
		return
	}
	c := &call{Server: s, r: r, route: rt, params: params, body: body, header: http.Header{}}
	e.Status, e.Answer = c.carryOut()
	e.Header = c.header
	s.watch(e)
	if f != nil && f.Effect == Lose {
		panic(http.ErrAbortHandler)
	}
	if f != nil && f.Effect == FailLate {
		http.Error(w, "Bad Gateway", http.StatusBadGateway)
		return
	}
	for name, values := range c.header {
		w.Header()[name] = values
	}
	w.WriteHeader(e.Status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(e.Answer)
	}
}

func (s *Server) count(operation string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.called[operation]++
}

// Called is how many requests an operation had, such as "GET /repos/{owner}/{repo}".
func (s *Server) Called(operation string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.called[operation]
}

// Uncalled lists the operations that had no request.
func (s *Server) Uncalled() (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range routes() {
		if s.called[r.operation] == 0 {
			out = append(out, r.operation)
		}
	}
	return out
}

func (s *Server) watch(e Exchange) {
	if s.o.Watch != nil {
		s.o.Watch(e)
	}
}

// carryOut does the work of a call and makes its answer.
func (c *call) carryOut() (status int, answer []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	status, body := c.perform()
	c.header.Set("X-GitHub-Request-Id", strconv.FormatInt(c.next(), 16))
	c.header.Set("X-GitHub-Media-Type", "github.v3; format=json")
	if c.o.Enterprise != "" {
		c.header.Set("X-GitHub-Enterprise-Version", c.o.Enterprise)
	}
	if body == nil {
		return status, nil
	}
	if raw, ok := body.(rawText); ok {
		c.header.Set("Content-Type", raw.kind)
		return status, []byte(raw.text)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		panic(err)
	}
	answer = bytes.TrimRight(out.Bytes(), "\n")
	c.header.Set("Content-Type", "application/json; charset=utf-8")
	if status == http.StatusOK && c.r.Method == http.MethodGet {
		tag := etag(answer)
		c.header.Set("ETag", tag)
		c.header.Set("Cache-Control", "private, max-age=60, s-maxage=60")
		if matches(c.r, tag) {
			c.free()
			c.header.Del("Content-Type")
			return http.StatusNotModified, nil
		}
	}
	return status, answer
}

// rawText is an answer that is no JSON.
type rawText struct{ kind, text string }

// perform runs the checks and the operation, and turns a refusal into an answer.
func (c *call) perform() (status int, body any) {
	defer func() {
		r := recover()
		p, refused := r.(*problem)
		if r != nil && !refused {
			panic(r)
		}
		if refused {
			status, body = p.status, p.body
			for name, values := range p.header {
				c.header[name] = values
			}
		}
	}()
	c.free = func() {}
	c.authenticate()
	c.free = c.charge()
	return c.route.do(c)
}
