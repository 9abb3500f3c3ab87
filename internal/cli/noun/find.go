package noun

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/table"
	"yardmaster/internal/client"
	"yardmaster/internal/lazy"
)

var (
	partOf = lazy.New(`^[0-9a-f][0-9a-f-]{3,35}$`)
	digits = lazy.New(`^[1-9][0-9]{0,8}$`)
	pageAt = lazy.New(`^https?://`)
	number = lazy.New(`^(?:([^/#\s]+/[^/#\s]+))?#([0-9]{1,9})$`)
)

// named tells whether a word is a part of an id that people may write for it.
func named(id, word string) bool { return strings.HasPrefix(id, word) || strings.HasSuffix(id, word) }

// Searched is the number of rows in which an object is looked for.
const Searched = 500

// Find is the id of the object that a word names: its id, the beginning or the end of
// that, @last, OWNER/NAME#NUMBER, or a name such as a branch.
func (n *Noun) Find(ctx context.Context, word string) (string, error) {
	if pageAt.MatchString(word) {
		return n.ofPage(ctx, word)
	}
	if word == "@last" {
		if last := n.recall(); len(last) > 0 {
			return last[0], nil
		}
		return "", exit.Misused("@last is the %s that was shown or made last, and none was yet", n.Name)
	}
	switch {
	case object.WholeID.MatchString(word):
		return word, nil
	case word == "":
		return "", exit.Misused("the %s has no name", n.Name)
	case n.Name == "repo" && word[0] != '-' && !strings.Contains(word, "/"):
		return n.inFull(ctx, word)
	case n.Key != "" && n.Key != "id" && n.Names == nil, word[0] == '-':
		return word, nil // it goes by its name alone
	}
	c, err := signin.Connect()
	if err != nil {
		return "", err
	}
	inClone := false
	if digits.MatchString(word) && (n.Name == "pr" || n.Name == "issue") {
		if repo, err := RepoHere(ctx); err == nil { // in a clone a number is meant before a part of an id
			inClone = true
			var none exit.NotFound
			if id, err := n.byNumber(ctx, c, repo, word); err == nil || !errors.As(err, &none) || len(word) < 4 {
				return id, err
			}
		}
	}
	if m := number.FindStringSubmatch(word); m != nil {
		return n.byNumber(ctx, c, m[1], m[2])
	}
	if digits.MatchString(word) && n.Name == "pr" && !inClone {
		var none exit.NotFound
		if id, err := n.numbered(ctx, c, word); err == nil || !errors.As(err, &none) || len(word) < 4 {
			return id, err
		}
	}
	if partOf.MatchString(word) {
		var seen []string
		for _, id := range n.recall() {
			if named(id, word) {
				seen = append(seen, id)
			}
		}
		if len(seen) == 1 {
			return seen[0], nil
		}
	}
	if n.finds() {
		return n.lookUp(ctx, c, word)
	}
	in := n.within(ctx)
	if n.PerRepo && in == nil {
		return "", fmt.Errorf("%q is no whole id: in a folder with a clone of the repository, parts of ids are found", word)
	}
	rows, more, err := n.Rows(ctx, c, in, Searched)
	if err != nil {
		return "", err
	}
	return n.among(rows, more, word)
}

// inFull is the full name of the only repository that has a name.
func (n *Noun) inFull(ctx context.Context, name string) (string, error) {
	c, err := signin.Connect()
	if err != nil {
		return "", err
	}
	rows, _, err := n.Rows(ctx, c, nil, Everything)
	if err != nil {
		return "", err
	}
	var all []string
	for _, r := range rows {
		v, _ := object.Decode(r)
		if full := n.ID(object.Map(v)); strings.HasSuffix(full, "/"+name) {
			all = append(all, full)
		}
	}
	switch len(all) {
	case 1:
		return all[0], nil
	case 0:
		return "", exit.Misused("%q has not the form OWNER/NAME, and no repository of the account has that name", name)
	}
	return "", exit.Misused("%q has not the form OWNER/NAME: say %s", name, strings.Join(all[:min(len(all), candidates)], " or "))
}

// Wide is the noun whose list has the objects of n of all repositories; n itself if its own
// list has them.
func (n *Noun) Wide() *Noun {
	if n.Everywhere == "" {
		return n
	}
	all := *n
	all.List, all.PerRepo = n.Everywhere, false
	all.Columns = append([]table.Column{{"REPOSITORY", "repo", table.Text}}, n.Columns...)
	return &all
}

// finds tells whether the list of a noun finds its objects by parts of their ids.
func (n *Noun) finds() bool {
	o := capability.One(n.Wide().List)
	_, known := capability.Filters(o)["id"]
	return (known || o.Input()["id"] == "query") && (!n.Wide().PerRepo || n.within(context.Background()) != nil)
}

// candidates is the number of objects of a name that are asked for: as many as are shown
// to somebody who has to choose.
const candidates = 8

// lookUp asks the server for the object that a word names: by a part of its id, and by the
// names for which its list has a filter.
func (n *Noun) lookUp(ctx context.Context, c *client.Client, word string) (string, error) {
	named := *n.Wide()
	named.Query = "" // one that the list leaves out has a name as well
	of := &named
	known := capability.Filters(capability.One(of.List))
	narrow := of.within(ctx)
	var asks [][]capability.Given
	if _, filter := known["id"]; partOf.MatchString(word) && filter {
		asks = append(asks, append(slices.Clone(narrow), capability.Given{Name: "filter", Text: "id:" + word}))
	} else if partOf.MatchString(word) {
		asks = append(asks, append(slices.Clone(narrow), capability.Given{Name: "id", Text: word}))
	}
	if n.Everywhere != "" { // repositories have branches of the same name
		if repo, err := RepoHere(ctx); err == nil {
			narrow = append(narrow, capability.Given{Name: "filter", Text: "repo:" + repo})
		}
	}
	for _, name := range n.Names {
		key := strings.Replace(name, "head_ref", "branch", 1)
		if _, filter := known[key]; filter {
			asks = append(asks, append(slices.Clone(narrow), capability.Given{Name: "filter", Text: key + ":" + word}))
		}
	}
	var rows []json.RawMessage
	beyond := false
	for _, in := range asks {
		some, more, err := of.Rows(ctx, c, in, candidates)
		if err != nil {
			return "", err
		}
		rows, beyond = append(rows, some...), beyond || more
	}
	return of.among(rows, beyond, word)
}

// among is the id of the row that a word names.
func (n *Noun) among(rows []json.RawMessage, more bool, word string) (string, error) {
	type hit struct{ id, label string }
	var hits []hit
	for _, r := range rows {
		v, err := object.Decode(r)
		row, ok := v.(map[string]any)
		if err != nil || !ok {
			continue
		}
		id := n.ID(row)
		is := id == word || partOf.MatchString(word) && object.WholeID.MatchString(id) && named(id, word)
		for _, name := range n.Names {
			if text := object.Text(row[name]); text != "" && text == word {
				is = true
			}
		}
		if is && !slices.ContainsFunc(hits, func(h hit) bool { return h.id == id }) {
			hits = append(hits, hit{id, object.Text(row[n.Label])})
		}
	}
	switch len(hits) {
	case 1:
		return hits[0].id, nil
	case 0:
		where := "there is none of that name or id"
		if more && len(rows) >= Searched {
			where = fmt.Sprintf("it is not among the newest %d; the whole id finds it", Searched)
		}
		return "", exit.NotFound(fmt.Sprintf("no %s is called %q: %s", n.Name, word, where))
	}
	text := fmt.Sprintf("%q may be any of %d:", word, len(hits))
	if more {
		text = fmt.Sprintf("%q may be any of more than %d, the newest of which are:", word, len(hits))
	}
	for _, h := range hits[:min(len(hits), 8)] {
		text += "\n  " + h.id + "  " + client.Inert(h.label)
	}
	return "", exit.Misuse(text)
}

// byNumber finds an object by the number that it has in its repository.
func (n *Noun) byNumber(ctx context.Context, c *client.Client, repo, digits string) (string, error) {
	if repo == "" {
		var err error
		if repo, err = RepoHere(ctx); err != nil {
			return "", err
		}
	}
	of := Called("pr")
	if n.Name == "issue" {
		of = n
	}
	in, err := InRepo(ctx, repo, nil)
	if err != nil {
		return "", err
	}
	rows, _, err := of.Rows(ctx, c, append(in, capability.Given{Name: "filter", Text: "number:" + digits}), 1)
	if err != nil {
		return "", err
	}
	for _, r := range rows {
		var row struct {
			ID     string  `json:"id"`
			Number *int    `json:"number"`
			Task   *string `json:"task_id"`
		}
		if json.Unmarshal(r, &row) != nil || row.Number == nil || strconv.Itoa(*row.Number) != digits {
			continue
		}
		switch {
		case n.Name != "task":
			return row.ID, nil
		case row.Task != nil:
			return *row.Task, nil
		}
		return "", fmt.Errorf("no task has made %s#%s", repo, digits)
	}
	return "", exit.NotFound(fmt.Sprintf("%s has no #%s", repo, digits))
}

// numbered finds the only pull request of the account that has a number.
func (n *Noun) numbered(ctx context.Context, c *client.Client, digits string) (string, error) {
	rows, more, err := n.Wide().Rows(ctx, c, nil, Searched)
	if err != nil {
		return "", err
	}
	var ids, names []string
	for _, r := range rows {
		v, _ := object.Decode(r)
		if row := object.Map(v); object.Text(row["number"]) == digits {
			ids, names = append(ids, n.ID(row)), append(names, client.Inert(object.Text(row["repo"]))+"#"+digits)
		}
	}
	switch {
	case len(ids) == 0:
		return "", exit.NotFound(fmt.Sprintf("none of your pull requests has the number %s; in full a number is written acme/proj#%s", digits, digits))
	case len(ids) > 1:
		return "", exit.Misuse(fmt.Sprintf("%s may be any of these: say %s", digits,
			strings.Join(names[:min(len(names), candidates)], " or ")))
	case more: // of which another may have it
		return "", exit.Misused("%s is the number of %s, and maybe of others: say %s", digits, names[0], names[0])
	}
	return ids[0], nil
}

// memory is the file in which the ids are kept that were shown last, of one server and
// account.
func (n *Noun) memory() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	address, name := signin.Server()
	if address == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(address + "\x00" + name))
	of := n.Name
	if of == "question" {
		of = "pr" // which it is about
	}
	return filepath.Join(dir, "yardmaster", hex.EncodeToString(sum[:8]), of)
}

// remembered is the number of ids that are kept of a noun.
const remembered = 200

// Seen keeps the id of what was shown or made, for @last.
func (n *Noun) Seen(id string) { n.keep(append([]string{id}, n.recall()...)) }

// heard keeps the ids of a list, for names that are parts of ids. @last stays.
func (n *Noun) heard(ids []string) {
	before := n.recall()
	n.keep(slices.Concat(before[:min(len(before), 1)], ids, before))
}

// keep writes ids into the memory. What cannot be kept is not missed.
func (n *Noun) keep(ids []string) {
	path := n.memory()
	var all []string
	for _, id := range ids {
		if id != "" && !strings.ContainsAny(id, " \n\r\t") && !slices.Contains(all, id) && len(all) < remembered {
			all = append(all, id)
		}
	}
	if path == "" || len(all) == 0 || os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return
	}
	_ = os.WriteFile(path, []byte(strings.Join(all, "\n")+"\n"), 0o600)
}

// recall are the ids that were shown last, the newest first.
func (n *Noun) recall() []string {
	path := n.memory()
	if path == "" {
		return nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.Fields(string(b))
}
