package stream

import (
	"context"
	"errors"
	"slices"
	"strings"

	"yardmaster/internal/api/op"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

// Ops returns the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.Stream(op.Row{
			ID:     "stream.subscribe",
			Method: "GET",
			Path:   "/v1/streams",
			Group:  "Sessions, audit, streams",
			Rule:   policy.PerRequest(),
			Events: []op.Event{{Name: "ready", Data: Ready{}, Doc: "Once, at the beginning."},
				{
					Name: "patch",
					Data: Patch{},
					Doc:  "A row of a topic as it is now: first the newest rows of each topic, then what changes.",
				}},
			Refuses: []op.Refusal{{Status: 403, Slug: "no-topic"}},
			Summary: "Follow the rows of several topics: a snapshot, then what changes",
			Doc: "The first frame, ready, says which topics are followed. Then comes a frame named patch for each row that " +
				"the topics' lists show now, and one for each row that changes. Each topic needs the scope of its list: tasks, " +
				"asks, plans, groups of plans, blockers, escalations (read:tasks), prs, approvals (read:prs), ci, runners " +
				"(read:runners), sessions (read:sessions), repos (read:repos), budgets (read:billing), and notifications of " +
				"the caller's own (read:account, for a person). With repo only rows about that repository are sent, and those " +
				"of topics whose rows are about none: runners, budgets, notifications. A removal is sent whatever the row " +
				"was about. Refused when none of the topics can be followed. A reader that cannot " +
				"keep up is cut off; connect again for a fresh snapshot.",
		}, s.subscribe),
	}
}

type subscribeIn struct {
	Topics string `json:"topics" minLength:"1" maxLength:"500" example:"tasks,prs" doc:"names, separated by commas: tasks, asks, plans, groups, blockers, escalations, prs, approvals, ci, runners, sessions, repos, budgets, notifications; what is no topic is ignored"`
	Repo   string `json:"repo,omitempty" pattern:"^[^/]+/[^/]+$" says:"must have the form OWNER/NAME" maxLength:"300" example:"acme/web" doc:"owner/name: only rows about this repository; one that the account does not have has no rows"`
}

func (s *Service) subscribe(ctx context.Context, in subscribeIn, sink *op.Sink) error {
	if in.Topics == "" {
		return fault.Field("topics", "is required")
	}
	actor := policy.From(ctx)
	if actor.AccountID == "" {
		return fault.New(fault.Forbidden, "", "This needs a credential of an account.")
	}
	ready, topics, own := s.choose(actor, strings.Split(strings.ReplaceAll(in.Topics, " ", ""), ","))
	if len(topics)+len(own) == 0 {
		return fault.New(fault.Forbidden, "no-topic", "None of the topics can be followed with this credential.").
			With("ignored", ready.Ignored).With("unauthorised", ready.Unauthorised)
	}
	var f *feed
	l := &listener{} // who follows rows of their own alone needs no feed, which reads whatever happens
	if len(topics) > 0 {
		var err error
		if f, l, err = s.listen(ctx, actor.AccountID, in.Repo, topics); err != nil {
			return err
		}
		defer s.leave(actor.AccountID, f, l)
	}
	var begin [][]byte
	for _, t := range topics {
		rows, err := f.snapshot(t, in.Repo)
		if err != nil {
			return err
		}
		first, n := rows.of(t, in.Repo)
		begin, ready.Snapshot[t.Name] = append(begin, first), n
	}
	var feeds []*ownFeed
	for _, o := range own {
		of, rows, err := s.begin(ctx, o)
		if err != nil {
			return err
		}
		first, n := rows.of(nil, "")
		feeds, begin, ready.Snapshot[o.Name] = append(feeds, of), append(begin, first), n
	}
	if err := sink.Send("", "ready", ready); err != nil {
		return err
	}
	for _, frames := range begin {
		if len(frames) == 0 {
			continue
		}
		if err := sink.Pass(frames); err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	mine := make(chan []byte)
	for _, o := range feeds {
		go func() { stop(o.follow(ctx, mine)) }()
	}
	for {
		select {
		case frames := <-mine:
			if err := sink.Pass(frames); err != nil {
				return err
			}
		case frames, ok := <-l.frames:
			if !ok {
				return errCut
			}
			if err := sink.Pass(frames); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// errCut ends a stream whose reader cannot keep up, or whose feed has failed.
var errCut = fault.New(fault.Unavailable, "stream-cut", "The stream fell behind. Connect "+
	"again for a fresh snapshot.").Because(errors.New("a listener was cut off"))

// choose sorts the requested topics into followed, unknown and forbidden ones.
func (s *Service) choose(actor policy.Actor, names []string) (Ready, []*Topic, []*Own) {
	out := Ready{Subscribed: []string{}, Ignored: []string{}, Unauthorised: []string{}, Snapshot: map[string]int{}}
	var topics []*Topic
	var own []*Own
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if name == "" {
			continue
		}
		i := slices.IndexFunc(s.Own, func(o Own) bool { return o.Name == name })
		switch t := s.topic(name); {
		case i >= 0 && policy.Require(s.Own[i].Scope).OfUser().Check(actor) != nil:
			out.Unauthorised = append(out.Unauthorised, name)
		case i >= 0:
			out.Subscribed = append(out.Subscribed, name)
			own = append(own, &s.Own[i])
		case t == nil:
			out.Ignored = append(out.Ignored, name)
		case policy.Require(t.Scope).Check(actor) != nil:
			out.Unauthorised = append(out.Unauthorised, name)
		default:
			out.Subscribed = append(out.Subscribed, name)
			topics = append(topics, t)
		}
	}
	return out, topics, own
}
