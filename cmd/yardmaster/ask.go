package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"yardmaster/internal/client"
)

// filedAsk has the members of an ask that the command line uses.
type filedAsk struct {
	ID               string  `json:"askId"`
	Repo             *string `json:"repo"`
	Title            string  `json:"title"`
	State            string  `json:"state"`
	EscalationReason *string `json:"escalation_reason"`
	Verdict          *struct {
		Kind           string   `json:"kind"`
		Reason         string   `json:"reason"`
		TaskIDs        []string `json:"task_ids"`
		CoveringTaskID *string  `json:"covering_task_id"`
		PlanID         *string  `json:"plan_id"`
	} `json:"verdict"`
}

func runAskFile(ctx context.Context, args []string) error {
	fl := flags("ask file")
	repo := fl.String("repo", "", "`OWNER/NAME`; the judge may pick when empty")
	title := fl.String("title", "", "one line; the first of the text when empty")
	key := fl.String("dedupe-key", "", "file it once for this key")
	plain, err := parse(fl, args, "TEXT…")
	if err != nil {
		return err
	}
	text := strings.TrimSpace(strings.Join(plain, " "))
	if text == "" {
		return misuse{"give what is wanted"}
	}
	in := map[string]any{"title": headline(*title, text), "body": text}
	if *repo != "" {
		in["repo"] = *repo
	}
	if *key != "" {
		in["dedupe_key"] = *key
	}
	c, err := connect()
	if err != nil {
		return err
	}
	var out struct {
		Kind  string `json:"kind"`
		ID    string `json:"askId"`
		State string `json:"state"`
	}
	if err := c.Call(ctx, http.MethodPost, "/v1/asks", in, &out); err != nil {
		return err
	}
	fmt.Printf("%s\n%s, %s; see what becomes of it with: yardmaster ask get %s\n", out.ID, out.Kind, out.State, out.ID)
	return nil
}

func runAskList(ctx context.Context, args []string) error {
	if _, err := parse(flags("ask list"), args); err != nil {
		return err
	}
	c, err := connect()
	if err != nil {
		return err
	}
	var p page[filedAsk]
	if err := c.Call(ctx, http.MethodGet, "/v1/asks?per_page=25", nil, &p); err != nil {
		return err
	}
	var rows [][]string
	for _, a := range p.Data {
		repo, verdict := "", ""
		if a.Repo != nil {
			repo = *a.Repo
		}
		if a.Verdict != nil {
			verdict = a.Verdict.Kind
		}
		rows = append(rows, []string{a.ID, a.State, verdict, repo, a.Title})
	}
	table("ID\tSTATE\tVERDICT\tREPOSITORY\tTITLE", rows, `yardmaster ask file "…"`)
	return nil
}

func runAskGet(ctx context.Context, args []string) error {
	plain, err := parse(flags("ask get"), args, "ID")
	if err != nil {
		return err
	}
	c, err := connect()
	if err != nil {
		return err
	}
	var a filedAsk
	if err := c.Call(ctx, http.MethodGet, "/v1/asks/"+url.PathEscape(plain[0]), nil, &a); err != nil {
		return err
	}
	say := func(what, text string) { fmt.Fprintf(os.Stdout, "%-12s%s\n", what, client.Inert(text)) }
	say("title", a.Title)
	if a.Repo != nil {
		say("repository", *a.Repo)
	}
	say("state", a.State)
	if a.EscalationReason != nil {
		say("escalated", *a.EscalationReason)
	}
	if v := a.Verdict; v != nil {
		say("verdict", v.Kind)
		say("because", v.Reason)
		for _, taskID := range v.TaskIDs {
			say("task", taskID)
		}
		if v.CoveringTaskID != nil {
			say("covered by", *v.CoveringTaskID)
		}
		if v.PlanID != nil {
			say("plan", *v.PlanID)
		}
	}
	return nil
}
