package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/act"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/output"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
	"yardmaster/internal/terminal"
)

func planCommands() []tree.Command {
	plan := noun.Called("plan")
	return append([]tree.Command{
		plan.ListCommand("the plans, newest activity first", "yardmaster plan list --bucket stalled"),
		plan.ViewCommand("one plan with its groups"),
		{Words: "plan read", Answers: "plan.group_get", Args: "ID [GROUP]", Summary: "what the groups of a plan are asked to do", Of: plan,
			Define: tree.Answers(runPlanRead), More: "GROUP is the name of a group, as plan view shows it; all of them are shown without it.",
			Values:   map[string]tree.Values{"GROUP": groupsBegun},
			Examples: []string{"yardmaster plan read @last", "yardmaster plan read @last 01-add-the-field"}},
		{Words: "plan file", Answers: "plan.file", Args: "DIR", Summary: "commit a plan directory and execute it", Define: definePlanFile,
			More: "The folder has overview.md, a document NN-slug.md for each group, and status.yml, which is made if there is none.",
			Examples: []string{"yardmaster plan file plans/retries --repo acme/web",
				"yardmaster plan file plans/retries --repo acme/web --dry-run"}},
	}, act.Commands(
		act.Act{Words: "plan execute", Args: "DIR", Summary: "execute a plan directory that is committed",
			Op: "plan.execute", Plain: []string{"dir"}, Made: plan,
			Done: "Plan {id} is read.", Next: "See it with: yardmaster plan view {id}",
			Examples: []string{"yardmaster plan execute plans/retries --repo acme/web --dry-run"}},
		act.Act{Words: "plan start", Args: "[TEXT]…", Summary: "have a scout plan what is asked for", Op: "plan.start", Text: "ask",
			Next:     "yardmaster plan list shows it when it is planned.",
			Examples: []string{`yardmaster plan start --repo acme/web "Retry all calls to the shop."`}},
		act.Act{Words: "plan survey", Args: "FANOUT", Summary: "what the scouts of a plan over several repositories found, merged",
			Op: "plan.context", Plain: []string{"fanoutId"},
			More: "FANOUT is the fanout_id that plan start answered.",
			Tables: map[string][]string{"repos": {"repo", "status", "summary", "split_hints", "access_needed", "handoffs"},
				"claims": {"text", "repos", "citations"}}},
		act.Act{Words: "plan approve", Args: "ID", Summary: "release a held plan: all its tasks are minted",
			Op: "plan.approve", Of: plan, Done: "Released.",
			Next: "See its tasks with: yardmaster plan view {id}; yardmaster plan cancel {id} ends them"},
		act.Act{Words: "plan cancel", Args: "ID", Summary: "cancel a plan and those of its tasks that are not over",
			Op: "plan.cancel", Of: plan, Done: "Cancelled.",
			Next: "yardmaster plan execute reads the directory again, as a new plan."},
		act.Act{Words: "plan unlink", Args: "ID", Summary: "remove ordering-only edges of one group", Op: "plan.unlink",
			Of: plan, Done: "It waits for less.",
			Next: "yardmaster plan view {id} shows what is left."},
		act.Act{Words: "plan regroup", Args: "ID", Summary: "put tasks in the place of groups that are not done",
			Op: "plan.regroup", Of: plan, Done: "Regrouped.",
			Next: "yardmaster plan view {id} shows the groups."},
	)...)
}

// largestPlan is the size of all documents of a plan together, in bytes.
const largestPlan = 4 << 20

func definePlanFile(fl *flag.FlagSet) tree.Action {
	repo := fl.String("repo", "", "`OWNER/NAME`; that of the folder's git remote when empty")
	slug := fl.String("slug", "", "name of the directory below plans; that of DIR when empty")
	replaces := fl.String("replaces", "", "`ID` of the plan of this directory, held or failed, that the documents correct")
	dry := fl.Bool("dry-run", false, "record the plan held, to be approved")
	o := &output.Flags{}
	o.Add(fl)
	return func(ctx context.Context, plain []string) error {
		if err := o.Check(); err != nil {
			return err
		}
		documents, err := planDocuments(plain[0])
		if err != nil {
			return err
		}
		if *repo == "" {
			if *repo, err = noun.RepoHere(ctx); err != nil {
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
		plan := noun.Called("plan")
		if *replaces != "" {
			if in["replaces"], err = plan.Find(ctx, *replaces); err != nil {
				return err
			}
		}
		c, err := signin.Connect()
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
		if o.ForPrograms() {
			return o.Print(os.Stdout, b)
		}
		then := "See it with: yardmaster plan view {id}; undo: yardmaster plan cancel {id}"
		if *dry {
			then = "See what it would start with: yardmaster plan read {id}; release it with: yardmaster plan approve {id}"
		}
		return act.Act{Made: plan, Done: "Plan {id} is filed.", Next: then}.Say(ctx, c, b, nil, nil)
	}
}

// planGroup is a group of a plan. Problem is there only where it is asked for alone.
type planGroup struct {
	ID      string `json:"id"`
	Slug    string `json:"slug"`
	Title   string `json:"title"`
	Repo    string `json:"repo"`
	Status  string `json:"status"`
	Problem string `json:"problem"`
}

func planGroups(ctx context.Context, c *client.Client, plan string) ([]planGroup, error) {
	var p struct {
		Groups []planGroup `json:"groups"`
	}
	err := c.Call(ctx, http.MethodGet, "/v1/plans/"+url.PathEscape(plan), nil, &p)
	return p.Groups, err
}

func runPlanRead(ctx context.Context, plain []string, o *output.Flags) error {
	c, err := signin.Connect()
	if err != nil {
		return err
	}
	groups, err := planGroups(ctx, c, plain[0])
	if err != nil {
		return err
	}
	if len(plain) > 1 {
		at := slices.IndexFunc(groups, func(g planGroup) bool { return g.Slug == plain[1] || g.ID == plain[1] })
		if at < 0 {
			return exit.NotFound(fmt.Sprintf("the plan has no group %s; yardmaster plan view %s lists them", client.Inert(plain[1]),
				client.Word(object.Short(plain[0]))))
		}
		groups = groups[at : at+1]
	}
	at := func(g planGroup) string {
		return "/v1/plans/" + url.PathEscape(plain[0]) + "/groups/" + url.PathEscape(g.ID)
	}
	if o.ForPrograms() {
		all := []json.RawMessage{}
		for _, g := range groups {
			b, err := c.Fetch(ctx, http.MethodGet, at(g), nil)
			if err != nil {
				return err
			}
			all = append(all, b)
		}
		b, err := object.Encode(all)
		if err != nil {
			return err
		}
		return o.Print(os.Stdout, b)
	}
	if len(groups) == 0 {
		fmt.Println("It has no groups yet.")
		return nil
	}
	return screen.Paging(func() error {
		for i, g := range groups {
			path := at(g)
			if err := c.Call(ctx, http.MethodGet, path, nil, &g); err != nil {
				return err
			}
			if i > 0 {
				fmt.Println()
			}
			if _, err := fmt.Printf("== %s, %s, in %s ==\n%s\n", client.Inert(g.Slug), client.Inert(g.Status),
				client.Inert(g.Repo), client.Escape(strings.TrimSpace(g.Problem))); err != nil {
				return err // whoever reads has seen enough
			}
		}
		return nil
	})
}

// groupsBegun completes the name of a group of the plan that is named before it.
func groupsBegun(ctx context.Context, plain []string, _ string) (all []string) {
	c, err := signin.Connect()
	if err != nil || len(plain) == 0 {
		return nil
	}
	id, err := noun.Called("plan").Find(ctx, plain[0])
	if err != nil {
		return nil
	}
	groups, err := planGroups(ctx, c, id)
	if err != nil {
		return nil
	}
	for _, g := range groups {
		if client.Plain(g.Slug) {
			all = append(all, g.Slug+"\t"+client.Inert(g.Title))
		}
	}
	return all
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
	entries, err := exit.OfFile(os.ReadDir(dir))
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
