package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/client"
	"yardmaster/internal/terminal"
)

func planNoun() *noun {
	return &noun{name: "plan", list: "plan.list", get: "plan.get", label: "title", page: "plans",
		first: "yardmaster plan file DIR --repo OWNER/NAME",
		columns: []column{{"ID", "id", asID}, {"STATUS", "status", asState}, {"BUCKET", "bucket", asState}, {"MERGED", "merged", asNumber},
			{"OF", "total", asNumber}, {"REPOSITORY", "repo", asText}, {"ACTIVE", "last_activity_at", asAge}, {"TITLE", "title", asTitle}},
		hidden: []string{"planId", "created_by", "requested_by"},
		plain:  plainPlan,
		next: func(row map[string]any) []string {
			id := client.Word(short(plainText(row["id"])))
			if row["status"] == "held" {
				return []string{"Release it with: yardmaster plan approve " + id + ", or yardmaster plan cancel " + id}
			}
			return nil
		}}
}

func planCommands() []command {
	plan := nounCalled("plan")
	return append([]command{
		plan.listCommand("the plans, newest activity first", "yardmaster plan list --bucket stalled"),
		plan.viewCommand("one plan with its groups"),
		{words: "plan file", args: "DIR", summary: "commit a plan directory and execute it", define: definePlanFile,
			more: "The folder has overview.md, a document NN-slug.md for each group, and status.yml, which is made if there is none.",
			examples: []string{"yardmaster plan file plans/retries --repo acme/web",
				"yardmaster plan file plans/retries --repo acme/web --dry-run"}},
	}, commandsOf(
		act{words: "plan execute", args: "DIR", summary: "execute a plan directory that is committed",
			op: "plan.execute", plain: []string{"dir"}, made: plan,
			done: "Plan {id} is read.", next: "See it with: yardmaster plan view {id}",
			examples: []string{"yardmaster plan execute plans/retries --repo acme/web --dry-run"}},
		act{words: "plan start", args: "[TEXT]…", summary: "have a scout plan what is asked for", op: "plan.start", text: "ask",
			next:     "yardmaster plan list shows it when it is planned.",
			examples: []string{`yardmaster plan start --repo acme/web "Retry all calls to the shop."`}},
		act{words: "plan approve", args: "ID", summary: "release a held plan: all its tasks are minted",
			op: "plan.approve", of: plan, done: "Released.",
			next: "See its tasks with: yardmaster plan view {id}; yardmaster plan cancel {id} ends them"},
		act{words: "plan cancel", args: "ID", summary: "cancel a plan and those of its tasks that are not over",
			op: "plan.cancel", of: plan, done: "Cancelled.",
			next: "yardmaster plan execute reads the directory again, as a new plan."},
		act{words: "plan unlink", args: "ID", summary: "remove ordering-only edges of one group", op: "plan.unlink",
			of: plan, done: "It waits for less.",
			next: "yardmaster plan view {id} shows what is left."},
		act{words: "plan regroup", args: "ID", summary: "put tasks in the place of groups that are not done",
			op: "plan.regroup", of: plan, done: "Regrouped.",
			next: "yardmaster plan view {id} shows the groups."},
	)...)
}

// largestPlan is the size of all documents of a plan together, in bytes.
const largestPlan = 4 << 20

func definePlanFile(fl *flag.FlagSet) action {
	repo := fl.String("repo", "", "`OWNER/NAME`; that of the folder's git remote when empty")
	slug := fl.String("slug", "", "name of the directory below plans; that of DIR when empty")
	replaces := fl.String("replaces", "", "`ID` of the plan of this directory, held or failed, that the documents correct")
	dry := fl.Bool("dry-run", false, "record the plan held, to be approved")
	o := &output{}
	o.add(fl)
	return func(ctx context.Context, plain []string) error {
		if err := o.check(); err != nil {
			return err
		}
		documents, err := planDocuments(plain[0])
		if err != nil {
			return err
		}
		if *repo == "" {
			if *repo, err = repoHere(ctx); err != nil {
				return err
			}
		}
		in := map[string]any{"repo": *repo, "slug": *slug, "documents": documents, "dry_run": *dry}
		if *slug == "" {
			full, err := filepath.Abs(plain[0])
			if err != nil {
				return err
			}
			in["slug"] = filepath.Base(full)
		}
		plan := nounCalled("plan")
		if *replaces != "" {
			if in["replaces"], err = plan.find(ctx, *replaces); err != nil {
				return err
			}
		}
		c, err := connect()
		if err != nil {
			return err
		}
		p := terminal.Of(os.Stderr, os.Getenv).NewProgress(os.Stderr,
			fmt.Sprintf("Filing %d documents of %s in %s", len(documents), client.Size(size(documents)), *repo))
		c.Steps = p
		b, err := c.Fetch(ctx, http.MethodPost, "/v1/plans/file", in)
		p.Stop()
		if err != nil {
			return err
		}
		if o.forPrograms() {
			return o.print(os.Stdout, b)
		}
		then := "See it with: yardmaster plan view {id}; undo: yardmaster plan cancel {id}"
		if *dry {
			then = "See what it would start with: yardmaster plan view {id}; release it with: yardmaster plan approve {id}"
		}
		return act{made: plan, done: "Plan {id} is filed.", next: then}.say(b, nil, nil)
	}
}

// plainPlan puts the names of groups in the place of their ids.
func plainPlan(row map[string]any) {
	groups, _ := row["groups"].([]any)
	names := map[string]string{}
	for _, g := range groups {
		group := mapOf(g)
		names[plainText(group["id"])] = plainText(group["slug"])
	}
	for _, g := range groups {
		group := mapOf(g)
		var after []any
		waits, _ := group["upstream"].([]any)
		for _, w := range waits {
			name := cmp.Or(names[plainText(mapOf(w)["group_id"])], plainText(mapOf(w)["group_id"]))
			if mapOf(w)["kind"] == "ordering_only" {
				name += " (order only)"
			}
			after = append(after, name)
		}
		delete(group, "upstream")
		delete(group, "plan_id")
		group["waits_for"] = after
	}
}

// size is that of all documents together, in bytes.
func size(documents map[string]string) (n int64) {
	for _, text := range documents {
		n += int64(len(text))
	}
	return n
}

// planDocuments are the documents of a folder by their names: its Markdown and YAML.
func planDocuments(dir string) (map[string]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	out, size := map[string]string{}, 0
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		if !e.Type().IsRegular() || ext != ".md" && ext != ".yml" && ext != ".yaml" || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		if size += len(b); size > largestPlan {
			return nil, fmt.Errorf("the documents of %s have more than %d bytes", dir, largestPlan)
		}
		if !utf8.Valid(b) {
			return nil, fmt.Errorf("%s is no text", e.Name())
		}
		out[e.Name()] = string(b)
	}
	if out["overview.md"] == "" {
		return nil, errors.New("there is no overview.md in " + client.Inert(dir))
	}
	return out, nil
}
