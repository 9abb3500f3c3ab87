package openapi

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"yardmaster/internal/api/op"
)

// explain returns a description of the row's fields in words.
func (d *schemas) explain(o *op.Op) string {
	var says []string
	say := func(format string, a ...any) { says = append(says, fmt.Sprintf(format, a...)) }
	if o.Doc != "" {
		says = append(says, o.Doc)
	}
	names := o.Rule.Names()
	scope := fmt.Sprintf("the scope `%s`", strings.Join(names, "`, `"))
	if len(names) > 1 {
		scope = fmt.Sprintf("the scopes `%s`", strings.Join(names, "` and `"))
	}
	switch {
	case o.Holder != nil:
		say("Needs `Authorization: Bearer` with a credential of its own: %s", o.Holder.Doc)
	case o.Rule.IsPublic():
		say("Needs no credential.")
	case o.Rule.TakesAny(), len(names) == 0:
		say("Needs a valid credential, and no scope of it.")
	default:
		say("Needs %s.", scope)
		if other := o.Rule.Instead().Names(); len(other) > 0 {
			say("Instead of that, `%s` will do.", strings.Join(other, "`, `"))
		}
	}
	switch {
	case o.Rule.NeedsSession():
		say("Works for a signed-in browser session only.")
	case o.Rule.NeedsUser():
		say("The credential must name a user.")
	}
	if o.Rule.TakesFixLink() {
		say("%s", d.FixLink)
	}
	if o.Keyed() {
		say("Takes an `Idempotency-Key`.")
	}
	if o.NoStore && op.Writes(o.Method) {
		say("The answer is not kept: an `Idempotency-Key` is ignored.")
	}
	switch g := o.Paging; {
	case g == nil:
	case g.Full:
		say("The list is always whole.")
	case g.Bounded:
		say("`limit` is %d unless sent, and at most %d; `has_more` tells that there are more.", g.Default, g.Max)
	case g.Uncursored:
		say("`per_page` is %d unless sent, and at most %d; `has_more` tells that there are more.", g.Default, g.Max)
	default:
		say("A page has %d rows unless `per_page` is sent, and at most %d.", g.Default, g.Max)
	}
	switch {
	case o.IsStream() && o.Resume:
		say("The answer is a stream of server-sent events. `Last-Event-ID` takes up where a connection broke off; " +
			"with the id of `end` the answer is 204.")
	case o.IsStream():
		say("The answer is a stream of server-sent events; `Last-Event-ID` is refused.")
	}
	if o.PerAddress > 0 {
		say("An address may call it %d times a minute.", o.PerAddress)
	}
	if o.Shape().Body && o.MaxBody != 1<<20 {
		say("The body may have %d bytes.", o.MaxBody)
	}
	return strings.Join(says, " ")
}

// done says what a success means: what was done, and what the answer contains.
func (d *schemas) done(o *op.Op, status int) string {
	if status == 304 {
		return "What the caller has is still the answer."
	}
	if o.Done != "" {
		return o.Done
	}
	var what string
	switch {
	case status == 202 && o.AnswersReply():
		return "Accepted; there is nothing to answer."
	case o.IsStream():
		return "The stream of events."
	case o.Lines != nil:
		return "The lines, one JSON object each."
	case o.AnswersAsset(), o.AnswersReply():
		return "The answer."
	default:
		switch s := d.named[schemaName(o.Output())]; {
		case s == nil:
			what = "The answer is an object."
		case len(s.Properties) == 0:
			what = "The answer has no members."
		case s.Description != "":
			what = s.Description
		default:
			what = "The answer is a " + schemaName(o.Output()) + "."
		}
	}
	switch {
	case status == 201:
		return "Made. " + what
	case status == 202:
		return "Accepted; what follows happens later. " + what
	case op.Writes(o.Method):
		return "Done. " + what
	}
	return what
}

// content returns the content of a success: for each media type its schema and an
// example.
func (d *schemas) content(o *op.Op) object {
	of := func(t reflect.Type) object {
		s := d.of(t)
		m := object{"schema": s}
		if v, ok := d.sample("", s, nil); ok {
			m["example"] = v
		}
		return object{"application/json": m}
	}
	switch {
	case o.IsStream():
		return object{"text/event-stream": d.frames(o)}
	case o.Lines != nil:
		s := d.of(reflect.TypeOf(o.Lines))
		return object{"application/jsonl": object{
			"schema": object{
				"type": "string", "contentMediaType": "application/jsonl", "contentSchema": object{"type": "array", "items": s},
			},
			"example": d.line(s) + "\n",
		}}
	case o.AnswersAsset():
		return object{"application/json": object{"schema": object{"type": "object", "additionalProperties": true}}}
	case o.Body != nil:
		return of(reflect.TypeOf(o.Body))
	case o.AnswersReply(), o.Status >= 400:
		return nil
	}
	return of(o.Output())
}

// frames describes a stream: the names of its frames, and the schema of the data of
// each.
func (d *schemas) frames(o *op.Op) object {
	kinds, text := []object{}, "retry: "+strconv.Itoa(op.Retry)+"\n\n"
	failed := op.Event{Name: "error", Data: op.Problem{}, Doc: "The stream cannot go on; nothing follows."}
	for _, e := range append(slices.Clone(o.Events), failed) {
		data := d.of(reflect.TypeOf(e.Data))
		frame := object{
			"event": object{"const": e.Name},
			"data":  object{"type": "string", "contentMediaType": "application/json", "contentSchema": data},
		}
		need := []string{"event", "data"}
		says := ""
		if e.ID {
			takes := "What Last-Event-ID takes."
			if !o.Resume {
				takes = "Of the end. The stream cannot be gone on with: Last-Event-ID is refused."
			}
			frame["id"] = object{"type": "string", "description": takes}
			need = append(need, "id")
			says = "id: 1\n"
			if e.Name == op.EndFrame {
				says = "id: 1" + op.EndMark + "\n"
			}
		}
		kinds = append(kinds, object{
			"type": "object", "title": e.Name, "description": e.Doc, "properties": frame, "required": need,
		})
		if e.Name != failed.Name { // the example shows no failure
			text += says + "event: " + e.Name + "\ndata: " + d.line(data) + "\n\n"
		}
	}
	return object{
		"schema": object{"type": "string", "contentMediaType": "text/event-stream",
			"contentSchema": object{"type": "array", "items": object{"oneOf": kinds}}},
		"example": text,
	}
}

// results lists the possible answers, by status.
func (d *schemas) results(o *op.Op) object {
	h := object{"X-Request-Id": headerRef("X-Request-Id")}
	content := d.content(o)
	if o.AnswersAsset() {
		h["ETag"] = headerRef("ETag")
	}
	if !o.Rule.IsPublic() {
		for name, ref := range limitHeaders() {
			h[name] = ref
		}
	}
	if o.Keyed() {
		h["X-Idempotent-Replayed"] = headerRef("X-Idempotent-Replayed")
	}
	out := object{}
	for i, s := range append([]int{o.Status}, o.Also...) {
		ok := object{"description": d.done(o, s), "headers": h}
		if content != nil && s != 304 && (i == 0 || !o.AnswersReply()) {
			ok["content"] = content
		}
		if s < 400 { // some rows only refuse
			out[strconv.Itoa(s)] = ok
		}
	}
	if o.Resume {
		out["204"] = object{"description": "The stream is over, and Last-Event-ID is the id of its end: nothing follows. " +
			"A browser's EventSource stops.", "headers": h}
	}
	for status, slugs := range failures(o) {
		out[strconv.Itoa(status)] = d.refuse(status, slugs)
	}
	return out
}
