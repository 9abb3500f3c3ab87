package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"unicode/utf8"

	"yardmaster/internal/client"
)

func runTaskCreate(ctx context.Context, args []string) error {
	fl := flags("task create")
	repo := fl.String("repo", "", "`OWNER/NAME` of the repository, as `yardmaster repo list` shows it")
	title := fl.String("title", "", "one line; the first of the text when empty")
	template := fl.String("template", "", "`NAME` of the agent template; the repository's default when empty")
	plain, err := parse(fl, args, "TEXT…")
	if err != nil {
		return err
	}
	text := strings.TrimSpace(strings.Join(plain, " "))
	if *repo == "" || text == "" {
		return misuse{"give --repo OWNER/NAME, and what is to be done"}
	}
	in := map[string]any{"repo": *repo, "title": headline(*title, text), "problem": text}
	if *template != "" {
		in["template"] = *template
	}
	c, err := connect()
	if err != nil {
		return err
	}
	var out struct {
		TaskID   string `json:"task_id"`
		Position int64  `json:"queue_position"`
		Depth    int64  `json:"queue_depth"`
	}
	if err := c.Call(ctx, http.MethodPost, "/v1/tasks", in, &out); err != nil {
		return err
	}
	fmt.Printf("%s\nqueued, %d of %d; follow it with: yardmaster task watch %s\n", out.TaskID, out.Position, out.Depth, out.TaskID)
	return nil
}

// headline is the title, or else the first line of the text, cut at a word.
func headline(title, text string) string {
	if title != "" {
		return title
	}
	line, _, _ := strings.Cut(text, "\n")
	const most = 120 // characters
	if utf8.RuneCountInString(line) <= most {
		return line
	}
	line = string([]rune(line)[:most-1])
	if at := strings.LastIndexByte(line, ' '); at > 0 {
		line = line[:at]
	}
	return strings.TrimSpace(line) + "…"
}

func runTaskList(ctx context.Context, args []string) error {
	if _, err := parse(flags("task list"), args); err != nil {
		return err
	}
	c, err := connect()
	if err != nil {
		return err
	}
	var p page[client.Task]
	if err := c.Call(ctx, http.MethodGet, "/v1/tasks?per_page=25", nil, &p); err != nil {
		return err
	}
	var rows [][]string
	for _, t := range p.Data {
		rows = append(rows, []string{t.ID, t.Status, t.Repo, t.Kind, t.Title})
	}
	table("ID\tSTATUS\tREPOSITORY\tKIND\tTITLE", rows, `yardmaster task create --repo OWNER/NAME "…"`)
	return nil
}

func runTaskWatch(ctx context.Context, args []string) error {
	plain, err := parse(flags("task watch"), args, "ID")
	if err != nil {
		return err
	}
	c, err := connect()
	if err != nil {
		return err
	}
	t, err := c.Watch(ctx, plain[0], client.Print(os.Stdout, width()))
	if err != nil {
		return err
	}
	switch t.Status {
	case "merged", "completed":
		return nil
	case "failed":
		return fmt.Errorf("the task failed; `yardmaster task redispatch %s` tries it again", t.ID)
	}
	return fmt.Errorf("the task was %s", t.Status)
}

// onTask calls a capability of one task, and decodes the answer into out.
func onTask(ctx context.Context, id, verb string, in map[string]any, out any) error {
	c, err := connect()
	if err != nil {
		return err
	}
	return c.Call(ctx, http.MethodPost, "/v1/tasks/"+url.PathEscape(id)+"/"+verb, in, out)
}

func runTaskCancel(ctx context.Context, args []string) error {
	plain, err := parse(flags("task cancel"), args, "ID")
	if err != nil {
		return err
	}
	var out struct {
		Kind   string `json:"kind"`
		Status string `json:"status"`
	}
	if err := onTask(ctx, plain[0], "cancel", nil, &out); err != nil {
		return err
	}
	if out.Kind == "already_terminal" {
		fmt.Printf("It is over already: %s.\n", out.Status)
		return nil
	}
	fmt.Println("Cancelled.")
	return nil
}

func runTaskReassign(ctx context.Context, args []string) error {
	plain, err := parse(flags("task reassign"), args, "ID")
	if err != nil {
		return err
	}
	var out struct {
		Reassigned bool   `json:"reassigned"`
		Status     string `json:"status"`
	}
	if err := onTask(ctx, plain[0], "reassign", nil, &out); err != nil {
		return err
	}
	if out.Reassigned {
		fmt.Println("Taken from its box; it waits for the next.")
	} else {
		fmt.Printf("No box works on it: it is %s.\n", out.Status)
	}
	return nil
}

func runTaskRedispatch(ctx context.Context, args []string) error {
	fl := flags("task redispatch")
	guidance := fl.String("guidance", "", "what the next attempt should know, `TEXT` of at most 2000 characters")
	plain, err := parse(fl, args, "ID")
	if err != nil {
		return err
	}
	in := map[string]any{}
	if *guidance != "" {
		in["guidance"] = *guidance
	}
	var out struct {
		Saved struct {
			Found bool   `json:"found"`
			SHA   string `json:"sha"`
		} `json:"saved_wip"`
	}
	if err := onTask(ctx, plain[0], "redispatch", in, &out); err != nil {
		return err
	}
	from := "from the beginning"
	if out.Saved.Found {
		from = fmt.Sprintf("from the work saved at %.10s", out.Saved.SHA)
	}
	fmt.Printf("Queued again, %s; follow it with: yardmaster task watch %s\n", from, plain[0])
	return nil
}
