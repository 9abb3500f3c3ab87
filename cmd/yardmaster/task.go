package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"unicode/utf8"

	"yardmaster/internal/client"
)

func runTaskCreate(ctx context.Context, args []string) error {
	fl := flags("task create")
	repo := fl.String("repo", "", "OWNER/NAME")
	title := fl.String("title", "", "one line; the first of the text when empty")
	template := fl.String("template", "", "agent template; the repository's default when empty")
	plain, err := parse(fl, args)
	if err != nil {
		return err
	}
	text := strings.TrimSpace(strings.Join(plain, " "))
	if *repo == "" || text == "" {
		return errors.New("give --repo OWNER/NAME and what is to be done")
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

func runTaskList(ctx context.Context, _ []string) error {
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
	table("ID\tSTATUS\tREPOSITORY\tKIND\tTITLE", rows)
	return nil
}

func runTaskWatch(ctx context.Context, args []string) error {
	plain, err := parse(flags("task watch"), args)
	if err != nil {
		return err
	}
	if len(plain) != 1 {
		return errors.New("give the id of one task")
	}
	c, err := connect()
	if err != nil {
		return err
	}
	t, err := c.Watch(ctx, plain[0], client.Print(os.Stdout))
	if err != nil {
		return err
	}
	if t.Status != "merged" && t.Status != "completed" {
		return fmt.Errorf("the task is %s", t.Status)
	}
	return nil
}

func runPRApprove(ctx context.Context, args []string) error {
	plain, err := parse(flags("pr approve"), args)
	if err != nil {
		return err
	}
	if len(plain) != 1 {
		return errors.New("give the id of one pull request")
	}
	c, err := connect()
	if err != nil {
		return err
	}
	pr, err := c.Approve(ctx, plain[0])
	if err != nil {
		return err
	}
	fmt.Printf("Approved %s #%d at %.10s.\n", pr.Repo, pr.Number, pr.HeadSHA)
	return nil
}
