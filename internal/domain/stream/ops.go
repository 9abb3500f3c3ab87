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
				"asks, plans, blockers (read:tasks), prs, approvals (read:prs), ci, runners (read:runners), sessions " +
				"(read:sessions), repos (read:repos), and notifications of the caller's own (read:account, for a person). Refused when none of the topics can be followed. A reader that cannot " +
				"keep up is cut off; connect again for a fresh snapshot.",
		}, s.subscribe),
	}
}

type subscribeIn struct {
	Topics string `json:"topics" minLength:"1" maxLength:"500" example:"tasks,prs" doc:"names, separated by commas: tasks, asks, plans, blockers, prs, approvals, ci, runners, sessions, repos, notifications; what is no topic is ignored"`
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
	f, l, err := s.listen(ctx, actor.AccountID, topics)
	if err != nil {
		return err
	}
	defer s.leave(actor.AccountID, f, l)
	if err := sink.Send("", "ready", ready); err != nil {
		return err
	}
	for _, t := range topics {
		frames, err := f.snapshot(t)
		if err != nil {
			return err
		}
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
	for _, o := range own {
		go func() { stop(s.follow(ctx, o, mine)) }()
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
	out := Ready{Subscribed: []string{}, Ignored: []string{}, Unauthorised: []string{}}
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
