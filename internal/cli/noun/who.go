package noun

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"yardmaster/internal/cli/object"
	"yardmaster/internal/client"
)

// somebody is how the API names somebody or something that acts: its kind and its id. Whoever
// asked for a task or an ask, the person whom an audit row is about, and a box that works, are ids alone.
var somebody = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`("requested_by":\s*|"object":\s*|"box_id":\s*)?"((?:user|pat|box|source|schedule):)?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"`)
})

// namesAtOnce is for how many actors the server answers at once.
const namesAtOnce = 100

// WithNames has people see the names of those whom an answer names by their ids. Whom the
// account does not know is named by the short id.
func WithNames(ctx context.Context, c *client.Client, people func(io.Writer, []byte) error) func(io.Writer, []byte) error {
	names := map[string]string{} // "" for whom the account does not know; asked for once, however often a list is shown anew
	return func(w io.Writer, b []byte) error {
		fresh := map[string]bool{}
		for _, m := range somebody().FindAllSubmatch(b, -1) {
			label := labelOf(m)
			if _, asked := names[label]; label != "" && !asked {
				fresh[label] = true
			}
		}
		for some := range slices.Chunk(slices.Sorted(maps.Keys(fresh)), namesAtOnce) {
			maps.Copy(names, actorNames(ctx, c, some))
		}
		return people(w, somebody().ReplaceAllFunc(b, func(found []byte) []byte {
			m := somebody().FindSubmatch(found)
			label := labelOf(m)
			name := names[label]
			switch of := strings.HasPrefix(string(m[1]), `"object"`); {
			case label == "", name == "" && of && len(m[2]) == 0:
				return found // most ids, and most objects, are nobody
			case name == "":
				kind, id, _ := strings.Cut(label, ":")
				name = kind + ":" + object.Short(id)
			}
			if strings.HasPrefix(string(m[1]), `"box_id"`) { // which says what it is
				name = strings.TrimPrefix(name, "box:")
			}
			text, err := json.Marshal(name)
			if err != nil {
				return found
			}
			return slices.Concat(m[1], text)
		}))
	}
}

// labelOf is the kind and the id of whom a match of somebody names; "" if it is an id of no such member.
func labelOf(m [][]byte) string {
	switch {
	case len(m[2]) > 0:
		return string(m[2]) + string(m[3])
	case strings.HasPrefix(string(m[1]), `"box_id"`):
		return "box:" + string(m[3])
	case len(m[1]) > 0:
		return "user:" + string(m[3])
	}
	return ""
}

// actorNames are some actors by their labels: a person by the login, another by its kind and
// name; "" for those without a name.
func actorNames(ctx context.Context, c *client.Client, labels []string) map[string]string {
	out := map[string]string{}
	for _, l := range labels {
		out[l] = ""
	}
	var all struct {
		Data []struct{ Actor, Name string }
	}
	if err := c.Call(ctx, http.MethodGet, "/v1/actors?"+url.Values{"actor": labels}.Encode(), nil, &all); err != nil {
		return out
	}
	for _, n := range all.Data {
		kind, _, _ := strings.Cut(n.Actor, ":")
		if out[n.Actor] = n.Name; kind != "user" {
			out[n.Actor] = kind + ":" + n.Name
		}
	}
	return out
}
