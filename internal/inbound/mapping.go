package inbound

import (
	"slices"
	"strings"

	"yardmaster/internal/lazy"
)

// Mapping says where a delivery of the generic kind has what is wanted. A text that
// begins with a slash is a JSON pointer (RFC 6901); in any other text, each {/pointer}
// stands for the value there.
type Mapping struct {
	_         struct{} `doc:"Where a delivery has what is wanted. A value that begins with a slash is a JSON pointer (RFC 6901); in any other text each {/pointer} stands for the value there." schema:"SourceMapping"`
	Title     string   `json:"title,omitempty" maxLength:"500" example:"{/alert/name} on {/host}" doc:"title of the ask; /title unless given"`
	Body      string   `json:"body,omitempty" maxLength:"2000" example:"/alert/description" doc:"text of the ask; /body unless given"`
	DedupeKey string   `json:"dedupe_key,omitempty" maxLength:"500" example:"/alert/id" doc:"deliveries with the same value are one ask, which counts them; /dedupe_key unless given. Where there is none, each delivery is an ask of its own"`
	Project   string   `json:"project,omitempty" maxLength:"500" example:"/service" doc:"looked up in the projects of the source, to find the repository; /project unless given"`
	URL       string   `json:"url,omitempty" maxLength:"500" example:"/alert/url" doc:"page that the ask names; /url unless given"`
	Sender    string   `json:"sender,omitempty" maxLength:"500" example:"/user/login" doc:"who has done it; what the bot of the source does is own_echo. /sender unless given"`
	When      *When    `json:"when,omitempty" doc:"what a delivery must say to be an ask; left out: each delivery is one"`
}

// When is a condition of a Mapping.
type When struct {
	_  struct{} `doc:"A condition on a value of a delivery." schema:"SourceCondition"`
	At string   `json:"at" minLength:"1" maxLength:"500" example:"/status" doc:"JSON pointer to the value"`
	Is []string `json:"is" maxItems:"20" maxLength:"200" example:"[\"firing\"]" doc:"values that make the delivery an ask"`
}

// fields lists the members of a mapping by name, with the pointer that each is without.
func (m *Mapping) fields() []struct {
	name, otherwise string
	value           *string
} {
	return []struct {
		name, otherwise string
		value           *string
	}{
		{"title", "/title", &m.Title}, {"body", "/body", &m.Body}, {"dedupe_key", "/dedupe_key", &m.DedupeKey},
		{"project", "/project", &m.Project}, {"url", "/url", &m.URL}, {"sender", "/sender", &m.Sender},
	}
}

// full is the mapping with what is used for members that are left out.
func (m Mapping) full() Mapping {
	for _, f := range m.fields() {
		if *f.value == "" {
			*f.value = f.otherwise
		}
	}
	return m
}

var (
	place   = lazy.New(`\{(/[^{}]*)\}`)
	pointer = lazy.New(`^(/([^/~]|~[01])*)+$`)
)

// maxPlaces limits the places of one template.
const maxPlaces = 20

// Check answers what is wrong with a mapping, by the name of the member; empty if nothing
// is.
func (m Mapping) Check() map[string]string {
	wrong := map[string]string{}
	for _, f := range m.fields() {
		text := *f.value
		places := place.FindAllStringSubmatch(text, -1)
		switch {
		case text == "":
		case strings.HasPrefix(text, "/"):
			if !pointer.MatchString(text) {
				wrong[f.name] = "is no JSON pointer (RFC 6901)"
			}
		case len(places) == 0 && strings.Contains(text, "{"):
			wrong[f.name] = "has a brace without a place: places are written {/pointer}"
		case len(places) > maxPlaces:
			wrong[f.name] = "has more than 20 places"
		default:
			for _, p := range places {
				if !pointer.MatchString(p[1]) {
					wrong[f.name] = "has a place that is no JSON pointer (RFC 6901): " + p[1]
				}
			}
		}
	}
	if w := m.When; w != nil {
		if !pointer.MatchString(w.At) {
			wrong["when.at"] = "is no JSON pointer (RFC 6901)"
		}
		if len(w.Is) == 0 {
			wrong["when.is"] = "must have at least one value"
		}
	}
	return wrong
}

// fill is a member of a mapping with the values of a document.
func (d Document) fill(text string) string {
	if strings.HasPrefix(text, "/") {
		return d.text(text)
	}
	return place.ReplaceAllStringFunc(text, func(p string) string { return clip(d.text(p[1:len(p)-1]), maxValue) })
}

// holds tells whether a document meets a condition.
func (d Document) holds(w *When) bool { return w == nil || slices.Contains(w.Is, d.text(w.At)) }
