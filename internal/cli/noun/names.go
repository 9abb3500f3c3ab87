package noun

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
)

// NamesOf are the names of the objects of a noun, for those who write them.
func NamesOf(n *Noun) tree.Values {
	return func(ctx context.Context, _ []string, begun string) []string {
		c, err := signin.Connect()
		if err != nil {
			return nil
		}
		in := n.within(ctx)
		of := n
		if n.PerRepo && in == nil {
			if of = n.Wide(); of.PerRepo {
				return nil
			}
		}
		if _, known := capability.Filters(capability.One(of.List))["id"]; known && partOf.MatchString(begun) {
			in = append(in, capability.Given{Name: "filter", Text: "id:" + begun})
		}
		rows, _, err := of.Rows(ctx, c, in, 100)
		if err != nil {
			return nil
		}
		if len(rows) == 0 && len(in) > 0 && in[len(in)-1].Name == "filter" { // begun is the middle of one
			if rows, _, err = of.Rows(ctx, c, in[:len(in)-1], 100); err != nil {
				return nil
			}
		}
		var all []string
		known := ObjectsOf(rows)
		for _, row := range known {
			if name := of.nameBegun(row, known, begun); name != "" {
				all = append(all, name+"\t"+Described(of, row))
			}
		}
		return all
	}
}

// nameBegun is the name of an object that begins like that; "" if it has none. It is the id, or before that
// what people tell it by, if that is a name and no other of them all has it; or a name such as a branch.
func (n *Noun) nameBegun(row map[string]any, all []map[string]any, begun string) string {
	id := object.Part(n.ID(row), 12)
	if n.Key != "" {
		id = n.ID(row)
	}
	names := []string{id}
	for _, member := range n.Names {
		name := object.Text(row[member])
		switch {
		case len(slices.DeleteFunc(slices.Clone(all), func(r map[string]any) bool { return object.Text(r[member]) != name })) > 1:
		case member == n.Label:
			names = slices.Insert(names, 0, name)
		default:
			names = append(names, name)
		}
	}
	for _, name := range names {
		// A shell puts what is chosen into its line: it must be one plain word, which the
		// command takes for a name.
		if name != "" && strings.HasPrefix(name, begun) && !strings.ContainsAny(name[:1], "-@+") && client.Plain(name) &&
			!strings.Contains(name, "#") {
			return name
		}
	}
	return ""
}

// ObjectsOf are rows that are objects.
func ObjectsOf(rows []json.RawMessage) (all []map[string]any) {
	for _, r := range rows {
		if v, err := object.Decode(r); err == nil && object.Map(v) != nil {
			all = append(all, object.Map(v))
		}
	}
	return all
}

// Described is what a completion says of an object: inert, and without what shells read.
func Described(n *Noun, row map[string]any) string {
	var words []string
	for _, at := range []string{"status", "state", n.Label} {
		if text := object.Text(row[at]); text != "" {
			words = append(words, text)
		}
	}
	return client.Inert(strings.Join(words, " "))
}

// Begun are the names of the objects of a noun that a person may have begun to write.
func (n *Noun) Begun(ctx context.Context, words []string, begun string) []string {
	all := NamesOf(n)
	hasNumbers := slices.Contains([]string{"pr", "question", "issue", "task"}, n.Name)
	switch repo, _, numbered := strings.Cut(begun, "#"); {
	case n.Name == "member":
		return Logins(ctx, words, begun)
	case numbered && hasNumbers:
		return numbersOf(ctx, n, repo)
	case hasNumbers && strings.Contains(begun, "/"):
		return append(all(ctx, words, begun), numbersBegun(ctx, n, begun)...)
	case strings.HasPrefix(begun, "@"):
		if len(n.recall()) > 0 {
			return []string{"@last"}
		}
		return nil
	}
	return all(ctx, words, begun)
}

// NamesCalled are the names of the objects of the noun of that name that a person may have begun to write.
func NamesCalled(name string) tree.Values {
	return func(ctx context.Context, words []string, begun string) []string {
		return Called(name).Begun(ctx, words, begun)
	}
}

// numbersOf are the numbers of the pull requests, or issues, of a repository.
func numbersOf(ctx context.Context, n *Noun, repo string) (all []string) {
	of := Called("pr")
	if n.Name == "issue" {
		of = n
	}
	in, err := InRepo(ctx, repo, nil)
	if err != nil {
		return nil
	}
	c, err := signin.Connect()
	if err != nil {
		return nil
	}
	rows, _, err := of.Rows(ctx, c, in, 100)
	if err != nil {
		return nil
	}
	for _, row := range ObjectsOf(rows) {
		if digits := object.Text(row["number"]); digits != "" {
			all = append(all, repo+"#"+digits+"\t"+Described(of, row))
		}
	}
	return all
}

// numbersBegun are the numbers in the repositories whose name begins like that; the names of
// those alone if there are many.
func numbersBegun(ctx context.Context, n *Noun, begun string) (all []string) {
	var repos []string
	for _, v := range NamesOf(Called("repo"))(ctx, nil, begun) {
		repo, _, _ := strings.Cut(v, "\t")
		repos = append(repos, repo)
	}
	for _, repo := range repos {
		if len(repos) > fewRepos {
			all = append(all, repo+"#")
		} else {
			all = append(all, numbersOf(ctx, n, repo)...)
		}
	}
	return all
}

// fewRepos is the number of repositories whose numbers are offered together.
const fewRepos = 4

// Logins are those of the members.
func Logins(ctx context.Context, _ []string, _ string) []string {
	c, err := signin.Connect()
	if err != nil {
		return nil
	}
	var members struct{ Data []struct{ Login string } }
	if c.Call(ctx, http.MethodGet, "/v1/org/members", nil, &members) != nil {
		return nil
	}
	var all []string
	for _, m := range members.Data {
		all = append(all, m.Login)
	}
	slices.Sort(all)
	return all
}

// IDsOfPage are the objects of the noun that is named before them.
func IDsOfPage(ctx context.Context, words []string, begun string) []string {
	if len(words) == 0 || !slices.Contains(PageNouns(ctx, nil, ""), words[0]) {
		return nil
	}
	return NamesCalled(words[0])(ctx, nil, begun)
}

// PageNouns are the names of the nouns whose objects have pages.
func PageNouns(context.Context, []string, string) (all []string) {
	for _, n := range All() {
		if n.Page != "" {
			all = append(all, n.Name)
		}
	}
	return all
}
