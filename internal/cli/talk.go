package cli

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/act"
	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
)

// talkCommands are what people say about a pull request.
func talkCommands() []tree.Command {
	pr := noun.Called("pr")
	comments := noun.Thread().ListUnder("pr comments", "what people say about a pull request, newest thread first", pr, "id")
	comments.Examples = []string{"yardmaster pr comments acme/web#3"}
	return append([]tree.Command{comments, reviewCommand()}, act.Commands(
		act.Act{Words: "pr comment", Args: "ID [TEXT]…", Summary: "say something about a pull request, a line of it, or in a thread",
			More: "It begins no work: pr review --request-changes does.",
			Op:   "pr.comment", Of: pr, Text: "body", Done: "Said.", Next: "yardmaster pr comments {0} shows the conversation.",
			Examples: []string{`yardmaster pr comment acme/web#3 "Why not the clock of the server?" --path web/footer.go --line 12`}},
		act.Act{Words: "pr resolve", Args: "ID THREAD", Summary: "resolve a thread of a pull request; --reopen opens it again",
			Op: "pr.resolve_thread", Of: pr, Plain: []string{"thread_id"}, Done: "It is {state}.",
			Next:     "yardmaster pr comments {0} shows the others.",
			Examples: []string{"yardmaster pr resolve acme/web#3 THREAD"}},
	)...)
}

// reviewCommand has agents review a pull request again, or says what a person thinks of it.
func reviewCommand() tree.Command {
	pr := noun.Called("pr")
	c := tree.Command{Words: "pr review", Answers: "review.rerun", Args: "ID [TEXT]…", Of: pr,
		Summary: "have the latest review run again on the same commit; or approve the head, or request changes",
		More: "--request-changes holds the merge until you approve or take it back with --withdraw. An agent that looks after the pull " +
			"request is given the words of TEXT.",
		Examples: []string{"yardmaster pr review acme/web#3", `yardmaster pr review acme/web#3 --request-changes "Raise a TypeError."`,
			"yardmaster pr review acme/web#3 --approve"}}
	for _, op := range []string{"review.rerun", "review.request_changes", "review.withdraw_request", "pr.get"} { // each way has its own
		c.Members = append(c.Members, capability.Members(capability.One(op).Output())...)
	}
	slices.Sort(c.Members)
	c.Members = slices.Compact(c.Members)
	c.Define = func(fl *flag.FlagSet) tree.Action {
		head := map[string]string{"head_sha": ""} // that of the pull request when the command runs
		ways := []*reviewWay{
			{define: act.Act{Words: c.Words, Op: "review.rerun", Of: pr, Done: "It is reviewed again.",
				Next: "yardmaster pr reviews {id} shows the outcome."}.Define},
			{flag: "request-changes", usage: "request what TEXT says", define: act.Act{Words: c.Words, Args: c.Args,
				Op: "review.request_changes", Of: pr, Text: "body", Fixed: head, Summary: "what is to be changed",
				Done: "Requested: it holds the merge.",
				Next: "Undo: yardmaster pr review {id} --withdraw"}.Define},
			{flag: "approve", usage: "approve what is asked about the head, as pr approve does",
				define: deciding("pr approve", "approve-pending", "Approved")},
			{flag: "withdraw", usage: "take back what you have requested", define: act.Act{Words: c.Words,
				Op: "review.withdraw_request", Of: pr, Done: "Taken back.", Next: "See what it waits for: yardmaster pr view {id}"}.Define},
		}
		for _, w := range ways {
			w.add(fl)
		}
		return func(ctx context.Context, plain []string) error {
			way := ways[0]
			for _, w := range ways[1:] {
				if !w.chosen {
					continue
				}
				if way != ways[0] {
					return exit.Misused("give one of --request-changes, --approve and --withdraw")
				}
				way = w
			}
			if way.flag != "request-changes" && len(plain) > 1 {
				return exit.Misused("TEXT is for --request-changes")
			}
			if way.flag == "request-changes" {
				api, err := signin.Connect()
				if err != nil {
					return err
				}
				var at client.Pull
				if err := api.Call(ctx, http.MethodGet, "/v1/prs/"+url.PathEscape(plain[0]), nil, &at); err != nil {
					return err
				}
				head["head_sha"] = at.HeadSHA
			}
			return way.run(ctx, fl, plain)
		}
	}
	return c
}

// reviewWay is one of the things that pr review does.
type reviewWay struct {
	flag, usage string
	define      func(*flag.FlagSet) tree.Action
	chosen      bool
	own         *flag.FlagSet
	do          tree.Action
}

// add declares the flags of a way that no way before has.
func (r *reviewWay) add(fl *flag.FlagSet) {
	r.own = flag.NewFlagSet(r.flag, flag.ContinueOnError)
	r.do = r.define(r.own)
	r.own.VisitAll(func(f *flag.Flag) {
		if fl.Lookup(f.Name) == nil {
			fl.AddFlag(f)
		}
	})
	if r.flag != "" {
		fl.BoolVar(&r.chosen, r.flag, false, r.usage)
	}
}

// run does what a way does, with the flags that were given. One that it does not have is a
// misuse.
func (r *reviewWay) run(ctx context.Context, fl *flag.FlagSet, plain []string) (err error) {
	fl.Visit(func(f *flag.Flag) {
		switch own := r.own.Lookup(f.Name); {
		case err != nil || own == f || r.common(f.Name):
		case own == nil:
			err = exit.Misused("--%s is for another use of pr review", f.Name)
		default:
			err = r.own.Set(f.Name, f.Value.String())
		}
	})
	if err != nil {
		return err
	}
	return r.do(ctx, plain)
}

// common tells whether a flag is that of a way, or one that every command has.
func (r *reviewWay) common(name string) bool {
	switch name {
	case "request-changes", "approve", "withdraw", "context", "help":
		return true
	}
	return false
}
