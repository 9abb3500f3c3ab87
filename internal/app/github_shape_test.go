package app

import (
	"encoding/json"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/proof/patience"
)

// Another default branch at GitHub is followed, with its policy file, and cannot be chosen
// here; a branch svc there holds tasks before a box has one, until it is gone.
func TestShapeAtGitHub(t *testing.T) {
	t.Parallel()
	f := connect(t, db.SQLite)
	defer f.tell()
	f.shop.Commit(f.ann, "trunk", "Another policy", map[string]string{".svc/policy.yml": "version: 1\nmerge: {mode: never}\n"})
	f.shop.Choose(f.ann, "trunk")
	patience.Until(t, "the default branch is followed", func() bool {
		var r struct {
			DefaultBranch string `json:"default_branch"`
		}
		var p struct {
			Policy struct{ Merge struct{ Mode string } }
		}
		decode(t, f.send("GET", "/v1/repos/acme/shop", f.owner, "").want(200), &r)
		decode(t, f.send("GET", "/v1/repos/acme/shop/policy", f.owner, "").want(200), &p)
		return r.DefaultBranch == "trunk" && p.Policy.Merge.Mode == "never"
	})
	refused := f.send("PATCH", "/v1/repos/acme/shop", f.owner, `{"default_branch": "main"}`).want(400)
	if !strings.Contains(string(refused.body), "is chosen at its code host") {
		t.Errorf("%s", refused.body)
	}
	f.send("PUT", "/v1/templates/edit", f.owner, `{"agent": "command", "command": ["true"]}`).want(200)
	var filed struct {
		TaskID string `json:"task_id"`
	}
	decode(t, f.send("POST", "/v1/tasks", f.owner,
		`{"repo": "acme/shop", "title": "Say when", "problem": "The README does not say when.", "template": "edit"}`).want(202), &filed)
	held := func() bool {
		var task struct {
			Holds []struct {
				ClearsWhen string `json:"clears_when"`
			}
		}
		a := f.send("GET", "/v1/tasks/"+filed.TaskID, f.owner, "").want(200)
		if err := json.Unmarshal(a.body, &task); err != nil {
			t.Fatal(err)
		}
		for _, h := range task.Holds {
			if strings.Contains(h.ClearsWhen, "the branch svc of the repository is deleted or renamed") {
				return true
			}
		}
		return false
	}
	f.shop.Push(f.ann, "svc", f.shop.Head("trunk"))
	patience.Until(t, "the task is held", held)
	f.shop.Push(f.ann, "svc", "")
	patience.Until(t, "the task is free", func() bool { return !held() })
}
