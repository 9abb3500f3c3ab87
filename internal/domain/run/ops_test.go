package run

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/protocol"
)

// handler serves the rows of tasks and runs to the account's members.
func (f *fixture) handler() http.Handler {
	return rest.Handler(rest.Config{AccountHeader: "X-Account", Pipeline: &op.Pipeline{
		Authenticate: func(_ context.Context, p op.Presented) (policy.Actor, error) {
			account := p.Account
			if account == "" {
				account = f.account
			}
			return policy.Actor{Credential: policy.PAT, CredentialID: "p", UserID: "ann", AccountID: account,
				Scopes: policy.Scopes(policy.ReadTasks, policy.WriteTasks)}, nil
		},
		Enter: func(ctx context.Context, a policy.Actor) context.Context { return db.WithAccount(ctx, a.AccountID) },
	}}, append(f.Tasks.Ops(), f.Ops()...))
}

func (f *fixture) get(path string, want int) map[string]any {
	f.t.Helper()
	w := httptest.NewRecorder()
	f.handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	out := map[string]any{}
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != want {
		f.t.Fatalf("GET %s: %d, want %d: %s", path, w.Code, want, w.Body)
	}
	return out
}

// post sends a task's action and returns the status of the answer.
func (f *fixture) post(path string) int {
	w := httptest.NewRecorder()
	f.handler().ServeHTTP(w, httptest.NewRequest("POST", path, nil))
	return w.Code
}

func TestAttempts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		taskID := f.create(task.KindWork)
		path := "/v1/tasks/" + taskID + "/attempts"
		if got := f.get(path, 200)["data"].([]any); len(got) != 0 {
			t.Errorf("before the first: %v", got)
		}
		if got := f.get("/v1/tasks/"+taskID, 200); got["run"] != nil || got["status"] != "pending" {
			t.Errorf("task before the first: %v", got)
		}
		for _, text := range []string{"HTTP 401 unauthorized", ""} {
			st := f.claim(f.boxes[0])
			f.mustSay(f.boxes[0], st, 1, append(started(),
				finished(protocol.Finished{State: protocol.Failed, Kind: task.AgentError, Error: text}))...)
			f.pass(time.Minute)
		}
		got := f.get(path, 200)["data"].([]any)
		if len(got) != 2 {
			t.Fatalf("attempts %v", got)
		}
		first, second := got[0].(map[string]any), got[1].(map[string]any)
		if first["attempt"] != 1.0 || first["failure_kind"] != task.ProviderAuth || first["outcome"] != "failed" ||
			first["lease_expires_at"] != nil ||
			second["attempt"] != 2.0 || second["failure_kind"] != task.AgentError || second["ended_reason"] != task.AgentError {
			t.Errorf("attempts %v", got)
		}
		if pulse := f.get("/v1/tasks/"+taskID, 200)["run"].(map[string]any); pulse["id"] != second["id"] || pulse["state"] != Ended ||
			pulse["last_seq"] != 5.0 {
			t.Errorf("pulse %v", pulse)
		}
		page := f.get(path+"?per_page=1", 200)
		if rows := page["data"].([]any); len(rows) != 1 || rows[0].(map[string]any)["id"] != first["id"] {
			t.Errorf("first page %v", page)
		}
		page = f.get(path+"?per_page=1&cursor="+page["next_cursor"].(string), 200)
		if rows := page["data"].([]any); len(rows) != 1 || rows[0].(map[string]any)["id"] != second["id"] || page["next_cursor"] != nil {
			t.Errorf("last page %v", page)
		}
		f.get(path+"?per_page=201", 400)
		f.get(path+"?limit=1", 400)
		f.get("/v1/tasks/"+id.Random()+"/attempts", 404)
		f.tenant().get(path, 404)
	})
}

func TestRunEvents(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		taskID := f.create(task.KindWork)
		path := "/v1/tasks/" + taskID + "/events"
		if got := f.get(path, 200); got["run_id"] != nil || len(got["events"].([]any)) != 0 || got["next_since_seq"] != 0.0 {
			t.Errorf("unstarted: %v", got)
		}
		st := f.claim(f.boxes[0])
		f.mustSay(f.boxes[0], st, 1, started()...)
		page := f.get(path+"?per_page=3", 200)
		if page["run_id"] != st.Run || len(page["events"].([]any)) != 3 || page["next_since_seq"] != 3.0 {
			t.Errorf("page %v", page)
		}
		rest := f.get(path+"?since_seq=3&wait_ms=25000", 200)
		if events := rest["events"].([]any); len(events) != 1 || events[0].(map[string]any)["kind"] != protocol.EventStarted {
			t.Errorf("rest %v", rest)
		}

		got := make(chan map[string]any)
		go func() { got <- f.get(path+"?since_seq=4&wait_ms=25000", 200) }()
		f.mustSay(f.boxes[0], st, 5, ev("agent.update", map[string]int{"n": 1}))
		if late := <-got; late["next_since_seq"] != 5.0 {
			t.Errorf("waited for %v", late)
		}
		if empty := f.get(path+"?since_seq=5&wait_ms=1", 200); empty["next_since_seq"] != 5.0 || len(empty["events"].([]any)) != 0 {
			t.Errorf("empty page after a wait: %v", empty)
		}
		f.mustSay(f.boxes[0], st, 6, finished(protocol.Finished{State: protocol.Failed}))
		if end := f.get(path+"?since_seq=6&wait_ms=25000&run_id="+st.Run, 200); len(end["events"].([]any)) != 0 {
			t.Errorf("after the end: %v", end)
		}

		f.get(path+"?wait_ms=25001", 400)
		f.get(path+"?per_page=1001", 400)
		f.get(path+"?run_id="+id.New(), 404)
		f.get("/v1/tasks/nonsense/events?wait_ms=25000", 404)
		other := f.create(task.KindWork)
		f.get("/v1/tasks/"+other+"/events?run_id="+st.Run, 404)
	})
}

func TestReport(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		taskID := f.create(task.KindScout)
		path := "/v1/tasks/" + taskID + "/report"
		if got := f.get(path, 200); got["report"] != nil || got["report_md"] != "none" || got["runs_seen"] != 0.0 {
			t.Errorf("before: %v", got)
		}
		st := f.claim(f.boxes[0])
		f.mustSay(f.boxes[0], st, 1, append(started(),
			finished(protocol.Finished{State: protocol.Succeeded}))...)
		if got := f.get(path, 200); got["report_missing"] != true {
			t.Errorf("without a report: %v", got)
		}
		f.pass(time.Minute)
		st = f.claim(f.boxes[1])
		f.mustSay(f.boxes[1], st, 1, finished(protocol.Finished{State: protocol.Succeeded, ReportBy: "report_md",
			Report: "# Login lives in auth\n\nSee `auth/login.go:12` and auth/login.go:40-44, not v1.2:3x.\n\n## Split hints\n- api first\n- " +
				"then web\n\n## Other\n- no"}))
		got := f.get(path, 200)
		scout := got["scout_context"].(map[string]any)
		files := scout["files"].([]any)
		if got["report_md"] != "report_md" || got["report_missing"] != false || got["runs_seen"] != 2.0 ||
			len(got["artifacts"].([]any)) != 1 ||
			fmt.Sprint(scout["split_hints"]) != "[api first then web]" || scout["summary"] != "Login lives in auth" || len(files) != 1 ||
			fmt.Sprint(files[0].(map[string]any)["citations"]) != "[auth/login.go:12 auth/login.go:40-44]" {
			t.Errorf("report %v", got)
		}
	})
}

// What a task of the kind devops did is summed up, and its agent is told to; others have no
// such summary.
func TestDevopsLane(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		for kind, want := range map[string]any{task.KindDevops: "The image is built once", task.KindWork: nil} {
			taskID := f.create(kind)
			st := f.claim(f.boxes[0])
			if told := strings.Contains(st.Prompt, "built, checked and delivered"); told != (want != nil) {
				t.Errorf("%s is told of its lane: %v", kind, told)
			}
			path := "/v1/tasks/" + taskID + "/report"
			if got := f.get(path, 200); got["devops"] != nil {
				t.Errorf("%s has the summary %v before a report", kind, got["devops"])
			}
			f.mustSay(f.boxes[0], st, 1, append(started(), finished(protocol.Finished{State: protocol.Succeeded, ReportBy: "report_md",
				Report: "# The image is built once\n\nNot twice."}))...)
			if got := f.get(path, 200); got["devops"] != want {
				t.Errorf("%s has the summary %v, not %v", kind, got["devops"], want)
			}
		}
	})
}

// frame is one server-sent event.
type frame struct{ id, event, data string }

// follow opens the stream of a run; the channel ends with the stream.
func (f *fixture) follow(url, runID, last string) <-chan frame {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience.Of(f.t))
	req, err := http.NewRequestWithContext(ctx, "GET", url+"/v1/fleet/runs/"+runID+"/events", nil)
	if err != nil {
		f.t.Fatal(err)
	}
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { cancel(); resp.Body.Close() })
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		f.t.Fatalf("stream answers %d %v", resp.StatusCode, resp.Header)
	}
	out := make(chan frame)
	go func() {
		defer close(out)
		var fr frame
		for sc := bufio.NewScanner(resp.Body); sc.Scan(); {
			key, value, _ := strings.Cut(sc.Text(), ": ")
			switch key {
			case "id":
				fr.id = value
			case "event":
				fr.event = value
			case "data":
				fr.data = value
			case "":
				if fr.data != "" {
					out <- fr
				}
				fr = frame{}
			}
		}
	}()
	return out
}

func TestTail(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.create(task.KindWork)
		st := f.claim(f.boxes[0])
		srv := httptest.NewServer(f.handler())
		t.Cleanup(srv.Close)
		f.mustSay(f.boxes[0], st, 1, started()...)
		whole, resumed := f.follow(srv.URL, st.Run, ""), f.follow(srv.URL, st.Run, "3")
		expect := func(from <-chan frame, ids ...string) {
			t.Helper()
			for _, want := range ids {
				if fr := <-from; fr.id != want || fr.event != "event" || !json.Valid([]byte(fr.data)) {
					t.Fatalf("frame %+v, want %s", fr, want)
				}
			}
		}
		expect(whole, "1", "2", "3", "4")
		expect(resumed, "4")
		f.mustSay(f.boxes[0], st, 5, ev("agent.update", nil), finished(protocol.Finished{State: protocol.Failed, Kind: task.GaveUp}))
		for _, s := range []<-chan frame{whole, resumed} {
			expect(s, "5", "6")
			if end := <-s; end.event != "end" || end.id != "6.end" || !strings.Contains(end.data, task.GaveUp) {
				t.Errorf("last frame %+v", end)
			}
			if more, ok := <-s; ok {
				t.Errorf("after the end: %+v", more)
			}
		}
		// A client that was cut off between the last row and the end hears the end, and once.
		late := f.follow(srv.URL, st.Run, "6")
		if end := <-late; end.event != "end" || end.id != "6.end" || !strings.Contains(end.data, task.GaveUp) {
			t.Errorf("at the last row a client hears %+v", end)
		}
		if early := <-f.follow(srv.URL, st.Run, "5.end"); early.id != "6" {
			t.Errorf("at the end of a shorter stream a client hears %+v", early)
		}
		for last, want := range map[string]int{"6.end": 204, "9.end": 204, "6.en": 400, ".end": 400, "-1.end": 400} {
			req, err := http.NewRequest("GET", srv.URL+"/v1/fleet/runs/"+st.Run+"/events", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Last-Event-ID", last)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if resp.Body.Close(); resp.StatusCode != want {
				t.Errorf("a resume at %s answers %d, want %d", last, resp.StatusCode, want)
			}
		}
		f.get("/v1/fleet/runs/"+id.New()+"/events", 404)
		f.get("/v1/fleet/runs/nonsense/events", 404)
		f.tenant().get("/v1/fleet/runs/"+st.Run+"/events", 404)
	})
}
