package cli

import (
	"context"
	"net/url"
	"os"

	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/client"
)

// runSessionWatch prints what happens in a session until it ends.
func runSessionWatch(ctx context.Context, plain []string) error {
	c, err := signin.Connect()
	if err != nil {
		return err
	}
	p := printer(c, &guarded{w: os.Stdout, over: ctx.Err})
	p.Other = func(e client.Event) string {
		v, _ := object.Decode(e.Data) // none is no object
		return e.Kind + " " + object.Text(v)
	}
	w, last := p.Watcher(), ""
	return c.Stream(ctx, "/v1/sessions/"+url.PathEscape(plain[0])+"/events", "", func(f client.Frame) error {
		if e, is := f.Happened(); is {
			last = e.Kind
			w.Event(client.Task{}, e)
		} else if f.Event == "end" && last != "run.finished" && last != "session.ended" { // which say it themselves
			w.Event(client.Task{}, client.Event{Kind: "session.ended", Data: f.Data})
		}
		return ctx.Err()
	})
}
