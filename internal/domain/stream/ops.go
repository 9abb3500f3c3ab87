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
				"(read:sessions), repos (read:repos). Refused when none of the topics can be followed. A reader that cannot " +
				"keep up is cut off; connect again for a fresh snapshot.",
		}, s.subscribe),
	}
}

type subscribeIn struct {
	Topics string `json:"topics" minLength:"1" maxLength:"500" example:"tasks,prs" doc:"names, separated by commas: tasks, asks, plans, blockers, prs, approvals, ci, runners, sessions, repos; what is no topic is ignored"`
}

func (s *Service) subscribe(ctx context.Context, in subscribeIn, sink *op.Sink) error {
	if in.Topics == "" {
		return fault.Field("topics", "is required")
	}
	actor := policy.From(ctx)
	if actor.AccountID == "" {
		return fault.New(fault.Forbidden, "", "This needs a credential of an account.")
	}
	ready, topics := s.choose(actor, strings.Split(strings.ReplaceAll(in.Topics, " ", ""), ","))
	if len(topics) == 0 {
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
	for {
		select {
		case frames, ok := <-l.frames:
			if !ok {
				return errCut
			}
			if err := sink.Pass(frames); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// errCut ends a stream whose reader cannot keep up, or whose feed has failed.
var errCut = fault.New(fault.Unavailable, "stream-cut", "The stream fell behind. Connect "+
	"again for a fresh snapshot.").Because(errors.New("a listener was cut off"))

// choose sorts the requested topics into followed, unknown and forbidden ones.
func (s *Service) choose(actor policy.Actor, names []string) (Ready, []*Topic) {
	out := Ready{Subscribed: []string{}, Ignored: []string{}, Unauthorised: []string{}}
	var topics []*Topic
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if name == "" {
			continue
		}
		switch t := s.topic(name); {
		case t == nil:
			out.Ignored = append(out.Ignored, name)
		case policy.Require(t.Scope).Check(actor) != nil:
			out.Unauthorised = append(out.Unauthorised, name)
		default:
			out.Subscribed = append(out.Subscribed, name)
			topics = append(topics, t)
		}
	}
	return out, topics
}
