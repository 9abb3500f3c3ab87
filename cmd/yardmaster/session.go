package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"time"

	"yardmaster/internal/client"
	"yardmaster/internal/terminal"
)

// runSessionWatch prints what happens in a session until it ends.
func runSessionWatch(ctx context.Context, plain []string) error {
	c, err := connect()
	if err != nil {
		return err
	}
	s := screen()
	return c.Stream(ctx, "/v1/sessions/"+url.PathEscape(plain[0])+"/events", "", func(f client.Frame) error {
		var v map[string]any
		if json.Unmarshal(f.Data, &v) != nil || len(v) == 0 {
			return nil
		}
		at := ""
		if t, err := time.Parse(time.RFC3339Nano, plainText(v["at"])); err == nil {
			at = t.Local().Format("15:04:05") + " "
			delete(v, "at")
		}
		kind := plainText(v["kind"])
		delete(v, "kind")
		if kind == "" {
			kind = f.Event
		}
		text := client.Inert(plainText(v))
		for line := range client.Broken(text, s.Width-len(at)-12) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			fmt.Fprintf(os.Stdout, "%s%s %s\n", s.Paint(terminal.Faint, at), s.Paint(terminal.Run,
				fmt.Sprintf("%-10s", client.Inert(kind))), line)
			at, kind = "         ", ""
		}
		return nil
	})
}
