package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	flag "github.com/spf13/pflag"

	"yardmaster/internal/app"
	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/signin"
)

// bashWords splits the line for bash where the package bash-completion is not there to do it:
// = and : and @ do not end a word.
const bashWords = `    if declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
        _get_comp_words_by_ref "$@" cur prev words cword
        return
    fi
    local i piece bare joined=0 line="${COMP_LINE:0:COMP_POINT}"
    words=() cword=-1
    for ((i = 0; i <= COMP_CWORD; i++)); do
        bare="${line#"${line%%[![:space:]]*}"}"
        piece="${COMP_WORDS[i]}"
        ((i == COMP_CWORD)) && piece="$bare"
        if ((cword >= 0)) && [[ "$bare" == "$line" ]] && { ((joined)) || [[ "$piece" == [=:@]* ]]; }; then
            words[cword]+="$piece"
        else
            words[++cword]="$piece"
        fi
        joined=0
        [[ "$piece" == *[=:@] ]] && joined=1
        line="${bare#"$piece"}"
    done
    cur="${words[cword]}"
    prev="${words[cword - 1]-}"
`

// bashScript is the script for bash, which needs nothing but bash.
func bashScript(root *cobra.Command) ([]byte, error) {
	var b bytes.Buffer
	if err := root.GenBashCompletionV2(&b, true); err != nil {
		return nil, err
	}
	script := b.String()
	for _, change := range [][2]string{
		{"    _get_comp_words_by_ref \"$@\" cur prev words cword\n", bashWords},
		{"        _init_completion -n =: || return\n", "        _init_completion -n =:@ || return\n"},
		{"        __yardmaster_init_completion -n =: || return\n", "        __yardmaster_init_completion -n =:@ || return\n"},
		{"    __yardmaster_handle_special_char \"$cur\" =\n",
			"    __yardmaster_handle_special_char \"$cur\" =\n" +
				"    ((${#COMPREPLY[*]} == 1)) && COMPREPLY[0]=\"${COMPREPLY[0]//\\\\,/,}\"\n"}, // no shell reads a comma as more
	} {
		if strings.Count(script, change[0]) != 1 {
			return nil, errors.New("the script for bash is not what was expected: it has no " + strings.TrimSpace(change[0]))
		}
		script = strings.Replace(script, change[0], change[1], 1)
	}
	return []byte(script), nil
}

func runCompletion(_ context.Context, plain []string) error {
	root := tree()
	switch plain[0] {
	case "bash":
		script, err := bashScript(root)
		if err != nil {
			return err
		}
		_, err = os.Stdout.Write(script)
		return err
	case "zsh":
		return root.GenZshCompletion(os.Stdout)
	case "fish":
		return root.GenFishCompletion(os.Stdout, true)
	}
	return exit.Misused("there is no script for %q, but for bash, zsh and fish", plain[0])
}

// listed are values of which several may be given, with commas between: the last is completed.
func listed(of values) values {
	return func(ctx context.Context, words []string, begun string) (out []string) {
		before := begun[:strings.LastIndexByte(begun, ',')+1]
		taken := strings.Split(before, ",")
		for _, v := range of(ctx, words, begun[len(before):]) {
			if value, _, _ := strings.Cut(v, "\t"); !slices.Contains(taken, value) {
				out = append(out, before+v)
			}
		}
		return out
	}
}

// valuesOfFlags completes the flags that many commands have.
func (c *command) valuesOfFlags(cc *cobra.Command) {
	for name, from := range map[string]values{
		"json": listed(func(context.Context, []string, string) []string { return fieldsOf(cc) }), "output": fixed("table", "json", "yaml"),
		"scopes": listed(mintable), "events": listed(eventTypes), "member": logins, "actor": logins,
		"repo": namesCalled("repo"), "template": namesCalled("template"), "box": namesCalled("box"), "task": namesCalled("task"),
		"pr": namesCalled("pr"), "after": listed(namesCalled("task")), "replaces": namesCalled("plan"),
	} {
		f := cc.Flags().Lookup(name)
		if f == nil || c.values[name] != nil {
			continue
		}
		if kind, _ := flag.UnquoteUsage(f); kind != "TEMPLATE" { // which is a text for an answer, and no name
			_ = cc.RegisterFlagCompletionFunc(name, completeWith(from))
		}
	}
	cc.Flags().VisitAll(func(f *flag.Flag) {
		if f.NoOptDefVal == "true" && f.Value.Type() == "string" && c.values[f.Name] == nil {
			_ = cc.RegisterFlagCompletionFunc(f.Name, completeWith(fixed("true", "false")))
		}
	})
}

// mintable are the scopes that a token of the person may have.
func mintable(ctx context.Context, _ []string, _ string) []string {
	c, err := signin.Connect()
	if err != nil {
		return nil
	}
	var all struct {
		Scopes []string `json:"mintable_scopes"`
	}
	if c.Call(ctx, http.MethodGet, "/v1/tokens", nil, &all) != nil {
		return nil
	}
	return all.Scopes
}

// eventTypes are the types of events that a webhook may be sent: those that an attempt to send one may be of.
func eventTypes(context.Context, []string, string) []string {
	return capability.EnumOf(capability.RowOf(capability.One("webhook.deliveries").Output()), "type")
}

// eventKinds are the kinds of events that the audit record has.
func eventKinds(context.Context, []string, string) (all []string) {
	b, err := app.EventsDocument()
	if err != nil {
		return nil
	}
	var known struct {
		Kinds map[string]struct {
			Description string `json:"description"`
		} `json:"$defs"`
	}
	if json.Unmarshal(b, &known) != nil {
		return nil
	}
	for _, kind := range object.Sorted(known.Kinds) {
		all = append(all, kind+"\t"+known.Kinds[kind].Description)
	}
	return all
}

// logins are those of the members.
func logins(ctx context.Context, _ []string, _ string) []string {
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

// namesCalled are the names of the objects of the noun of that name that a person may have begun to write.
func namesCalled(name string) values {
	return func(ctx context.Context, words []string, begun string) []string {
		return namesBegun(nounCalled(name))(ctx, words, begun)
	}
}

// namesBegun are the names of the objects of a noun that a person may have begun to write.
func namesBegun(n *noun) values {
	all := namesOf(n)
	return func(ctx context.Context, words []string, begun string) []string {
		hasNumbers := slices.Contains([]string{"pr", "question", "issue", "task"}, n.name)
		switch repo, _, numbered := strings.Cut(begun, "#"); {
		case n.name == "member":
			return logins(ctx, words, begun)
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
}

// fewRepos is the number of repositories whose numbers are offered together.
const fewRepos = 4

// numbersBegun are the numbers in the repositories whose name begins like that; the names of
// those alone if there are many.
func numbersBegun(ctx context.Context, n *noun, begun string) (all []string) {
	var repos []string
	for _, v := range namesOf(nounCalled("repo"))(ctx, nil, begun) {
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

// numbersOf are the numbers of the pull requests, or issues, of a repository.
func numbersOf(ctx context.Context, n *noun, repo string) (all []string) {
	of := nounCalled("pr")
	if n.name == "issue" {
		of = n
	}
	in, err := inRepo(ctx, repo, nil)
	if err != nil {
		return nil
	}
	c, err := signin.Connect()
	if err != nil {
		return nil
	}
	rows, _, err := of.rows(ctx, c, in, 100)
	if err != nil {
		return nil
	}
	for _, row := range objectsOf(rows) {
		if digits := object.Text(row["number"]); digits != "" {
			all = append(all, repo+"#"+digits+"\t"+described(of, row))
		}
	}
	return all
}

func inputsOfCall(ctx context.Context, words []string, begun string) (all []string) {
	if len(words) == 0 || capability.All()[words[0]] == nil {
		return nil
	}
	o := capability.All()[words[0]]
	if name, _, value := strings.Cut(begun, "="); value {
		return idsOfCall(ctx, o, name)
	}
	for _, in := range o.Inputs() {
		all = append(all, in.Name+"=\t"+in.Doc)
	}
	return all
}

// idsOfCall are the ids that an input of a path may be, where that is the place of a noun.
func idsOfCall(ctx context.Context, o *app.Op, name string) (all []string) {
	before, _, in := strings.Cut(o.Path, "{"+name+"}")
	if !in {
		return nil
	}
	for _, n := range nouns() {
		if n.get == "" || n.wide().perRepo || capability.One(n.get).Path != before+"{"+name+"}" {
			continue
		}
		of := n.wide()
		c, err := signin.Connect()
		if err != nil {
			return nil
		}
		rows, _, err := of.rows(ctx, c, nil, 100)
		if err != nil {
			return nil
		}
		for _, row := range objectsOf(rows) {
			if id := of.id(row); object.WholeID.MatchString(id) || of.key == "name" && plainName(id) {
				all = append(all, name+"="+id+"\t"+described(of, row))
			}
		}
		return all
	}
	return nil
}
