package openapi

import (
	"fmt"
	"slices"
	"strings"

	"yardmaster/internal/api/op"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

// failures lists the slugs with which the row may fail, by status: first those that
// follow from its fields, then its own.
func failures(o *op.Op) map[int][]string {
	out := map[int][]string{}
	may := func(status int, slugs ...string) {
		for _, s := range slugs {
			if !slices.Contains(out[status], s) {
				out[status] = append(out[status], s)
			}
		}
	}
	kinds := func(all ...fault.Kind) {
		for _, k := range all {
			may(k.Status(), k.Slug())
		}
	}
	kinds(fault.Invalid, fault.RateLimited, fault.Internal, fault.Unavailable)
	may(503, op.SlugOpen)
	if !o.Rule.IsPublic() || o.Holder != nil {
		kinds(fault.Unauthenticated)
	}
	if !o.Rule.IsPublic() {
		if len(o.Rule.Names()) > 0 && !o.Rule.TakesAny() {
			may(403, "missing-scope")
		}
		if o.Rule.NeedsUser() {
			may(403, "user-required")
		}
		if o.Rule.NeedsSession() {
			may(403, "session-required")
		}
		may(403, "not-a-member", "sso-session")
		if op.Writes(o.Method) {
			may(403, "cross-origin")
		}
	}
	if o.From != op.AnyPage {
		may(403, "cross-origin")
	}
	if strings.Contains(o.Path, "{") {
		kinds(fault.NotFound)
	}
	if op.Writes(o.Method) {
		kinds(fault.TooLarge)
		for _, k := range fault.Kinds() {
			if k.Status() == 507 {
				kinds(k)
			}
		}
		if !o.Rule.IsPublic() {
			may(507, "quota-full")
		}
	}
	if o.Shape().Body {
		kinds(fault.UnsupportedMedia)
	}
	if o.Keyed() {
		may(409, "idempotency-conflict", "idempotency-in-flight")
	}
	for _, r := range o.Refuses {
		may(r.Status, r.Slug)
	}
	return out
}

// refusal returns a response with a problem, with an example for each slug.
func (d *schemas) refusal(kind fault.Kind, slugs []string) object {
	h := object{"X-Request-Id": headerRef("X-Request-Id")}
	switch kind {
	case fault.RateLimited:
		for name, ref := range limitHeaders() {
			h[name] = ref
		}
		h["Retry-After"] = headerRef("Retry-After")
	case fault.Unavailable:
		h["Retry-After"] = headerRef("Retry-After")
	case fault.Unauthenticated:
		h["WWW-Authenticate"] = headerRef("WWW-Authenticate")
	case fault.MethodNotAllowed:
		h["Allow"] = headerRef("Allow")
	}
	samples, says := object{}, make([]string, len(slugs))
	for i, slug := range slugs {
		samples[slug] = d.example(kind, slug)
		says[i] = "`" + slug + "`"
		if why := d.means(slug); why != "" {
			says[i] += ": " + why
		}
	}
	return object{
		"description": kind.Title() + ". " + strings.Join(says, " "), "headers": h,
		"content": object{op.ProblemType: object{"schema": object{"$ref": d.root + "Problem"}, "examples": samples}},
	}
}

func (d *schemas) means(slug string) string {
	if d.Meaning == nil {
		return ""
	}
	return d.Meaning(slug)
}

// problem returns a problem as some row answers it.
func (d *schemas) problem(kind fault.Kind, slug string) object {
	sample := object{
		"type": d.Samples.BaseURL + "/problems/" + slug, "title": kind.Title(),
		"status": kind.Status(), "detail": kind.Title() + ".",
		"instance": "/v1/tasks/" + d.Samples.Formats["uuid"], "request_id": d.Samples.Formats["uuid"],
	}
	if why := d.means(slug); why != "" {
		sample["detail"] = why
	}
	switch kind {
	case fault.Invalid:
		if slug == kind.Slug() {
			sample["detail"] = "The request has invalid fields."
			sample["errors"] = object{"title": []string{"is required"}}
		}
	case fault.RateLimited:
		sample["retry_after"] = 7
	case fault.Conflict:
		sample["reason"] = slug
	case fault.Forbidden:
		if slug == "missing-scope" {
			sample["detail"] = fmt.Sprintf("The credential lacks %s.", policy.ReadTasks)
			sample["missing_scopes"] = []policy.Scope{policy.ReadTasks}
		}
	}
	return sample
}
