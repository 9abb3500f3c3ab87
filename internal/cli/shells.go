package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"yardmaster/internal/app"
	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
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
	root := wholeTree()
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

// flagValues are those of the flags that many commands have.
func flagValues() map[string]tree.Values {
	return map[string]tree.Values{
		"scopes": tree.Listed(mintable), "events": tree.Listed(eventTypes), "member": noun.Logins, "actor": noun.Logins,
		"person": noun.Logins,
		"repo":   noun.NamesCalled("repo"), "template": noun.NamesCalled("template"), "box": noun.NamesCalled("box"),
		"task": noun.NamesCalled("task"),
		"pr":   noun.NamesCalled("pr"), "after": tree.Listed(noun.NamesCalled("task")), "replaces": noun.NamesCalled("plan"),
	}
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
	for _, n := range noun.All() {
		if n.Get == "" || n.Wide().PerRepo || capability.One(n.Get).Path != before+"{"+name+"}" {
			continue
		}
		of := n.Wide()
		c, err := signin.Connect()
		if err != nil {
			return nil
		}
		rows, _, err := of.Rows(ctx, c, nil, 100)
		if err != nil {
			return nil
		}
		for _, row := range noun.ObjectsOf(rows) {
			if id := of.ID(row); object.WholeID.MatchString(id) || of.Key == "name" && plainName(id) {
				all = append(all, name+"="+id+"\t"+noun.Described(of, row))
			}
		}
		return all
	}
	return nil
}
