package logsink

import (
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"slices"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/dial"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/llm/sink"
	"yardmaster/internal/policy"
)

const group = "Billing keys, donations, grants, onboarding, MCP"

// slugRefused is the slug of the refusal of a sink that does not take a probe.
const slugRefused = "log-sink-refused"

// Ops lists the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{
			ID: "billing.log_sink_get", Method: "GET", Path: "/v1/billing/log-sink", Group: group,
			Rule:    policy.Require(policy.ReadBilling),
			Summary: "Where copies of the account's model calls are sent, and how many",
			Doc:     "configuration is null where none are. Its headers and keys are never shown.",
		}, s.get),
		op.New(op.Row{
			ID: "billing.log_sink_set", Method: "PUT", Path: "/v1/billing/log-sink", Group: group,
			Rule:    policy.Require(policy.WriteBilling),
			Refuses: []op.Refusal{{Status: 422, Slug: slugRefused}},
			Summary: "Send copies of the account's model calls, with prompts and answers, to a place of its own",
			Doc: "A probe is sent first; one that is not taken is refused. What is set takes the place of what was, as a whole. " +
				"Secrets that the server knows or recognises are taken out. No call waits for the sink: what it does not " +
				"take in time is dropped and counted.",
		}, s.set),
		op.New(op.Row{
			ID: "billing.log_sink_clear", Method: "DELETE", Path: "/v1/billing/log-sink", Group: group,
			Rule:    policy.Require(policy.WriteBilling),
			Summary: "Send copies of model calls nowhere any more",
			Doc:     "What waits to be sent is forgotten. Clearing it again answers deleted false.",
		}, s.clear),
	}
}

func (s *Service) get(ctx context.Context, _ op.None) (out LogSink, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		out, err = show(tx)
		return err
	})
	return out, err
}

func show(tx *db.Tx) (out LogSink, err error) {
	r, ok, err := byAccount.Maybe(tx, tx.Account)
	if ok {
		out.Configuration = r.wire()
	}
	return out, err
}

type setIn struct {
	Kind    sink.Kind         `json:"kind" doc:"https: POST, a JSON object a line; otlp: spans as JSON; s3: an object a batch"`
	URL     string            `json:"url" minLength:"1" maxLength:"1000" format:"uri" example:"https://collector.example.com/in" doc:"of s3: the endpoint, the bucket and a prefix of keys; otlp without a path: /v1/traces is added"`
	Headers map[string]string `json:"headers,omitempty" maxItems:"20" maxLength:"4000" example:"{\"Authorization\":\"Bearer example\"}" doc:"sent with each batch; not for s3"`
	Region  string            `json:"region,omitempty" maxLength:"50" doc:"of s3; us-east-1 unless given"`
	Access  string            `json:"access_key_id,omitempty" maxLength:"200" doc:"of s3"`
	Secret  string            `json:"secret_access_key,omitempty" maxLength:"1000" doc:"of s3"`
}

// check refuses what cannot be a sink, with a fault that names the field. It asks name servers.
func (s *Service) check(ctx context.Context, to *sink.Target) (masked string, err error) {
	if err := to.Check(); err != nil {
		return "", err
	}
	d, wrong := s.Guard.Destination(ctx, to.URL)
	if wrong != "" {
		return "", fault.Field("url", wrong)
	}
	if u, err := url.Parse(to.URL); err != nil || u.Scheme == "http" && !s.PlainHTTP && !dial.Loopback(u.Hostname()) {
		return "", fault.Field("url", "must be https, or http on a loopback address that is allowed")
	}
	return d.Masked, nil
}

func (s *Service) set(ctx context.Context, in setIn) (out LogSink, err error) {
	to := sink.Target{Kind: in.Kind, URL: in.URL, Headers: in.Headers, Region: in.Region, Access: in.Access, Secret: in.Secret}
	masked, err := s.check(ctx, &to)
	if err != nil {
		return out, err
	}
	if tried := s.sender.Probe(ctx, to, s.Clock()); tried.Why != "" {
		return out, fault.Newf(fault.Unprocessable, slugRefused, "The sink has not taken a probe. %s", tried.Why)
	}
	text, err := json.Marshal(to)
	if err != nil {
		return out, err
	}
	names := slices.Sorted(maps.Keys(in.Headers))
	if names == nil {
		names = []string{}
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if _, err := put.Exec(tx, putArgs{
			AccountID: tx.Account, Kind: to.Kind, Masked: masked, HeaderNames: db.JSON[[]string]{V: names},
			Sealed: s.Ring.Seal(purpose(tx.Account), text), ProbedAt: tx.Now, Now: tx.Now,
		}); err != nil {
			return err
		}
		if out, err = show(tx); err != nil {
			return err
		}
		s.Hub.Notify(tx, event.LogSinkTopic)
		return setEvent.Record(tx, event.Subject{ID: tx.Account}, setData{Kind: to.Kind, URL: masked})
	})
	return out, err
}

func (s *Service) clear(ctx context.Context, _ op.None) (out LogSinkCleared, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		n, err := remove.Exec(tx, tx.Account)
		if out.Deleted = n > 0; err != nil || !out.Deleted {
			return err
		}
		s.Hub.Notify(tx, event.LogSinkTopic)
		return clearedEvent.Record(tx, event.Subject{ID: tx.Account}, event.None{})
	})
	return out, err
}
