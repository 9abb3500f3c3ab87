// Package act has the commands that are one call of a capability, as data: what they take, and what they say
// has happened and comes next.
package act

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/draft"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/output"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
	"yardmaster/internal/lazy"
	"yardmaster/internal/terminal"
)

// Act is a command that calls one capability, mostly about one object. Its flags are the
// inputs of the capability that nothing else gives.
type Act struct {
	Words, Args, Summary string
	More                 string
	Op                   string
	Of                   *noun.Noun
	Fixed                map[string]string // inputs that the words mean
	Plain                []string          // inputs that the plain arguments after the object are
	// Text is the input that the words of TEXT… are, or --file, or what is written in an
	// editor.
	Text string
	// Secret is the input that is read from standard input, unseen.
	Secret string
	Prompt string // for the secret
	// SecretFile is an input that may be read from the file of --secret-file.
	SecretFile string
	PerRepo    bool // the capability is one of a repository: --repo
	// Done says what has happened, and next how it is undone or what comes next: {id},
	// {0} and so on for the plain arguments, {name} for a member of the answer.
	Done, Next string
	// Before is the capability that is asked before, for the undo: {before.NAME} is a member
	// of its answer.
	Before string
	// Earlier reads what there was before, in the place of before; nil if that cannot be told.
	Earlier func(ctx context.Context, c *client.Client, plain []string) any
	// Says answers what has happened and what comes next where that depends on what there was
	// before; "" leaves the one to done, or the other to next.
	Says     func(of Occasion) (done, next string)
	Examples []string
	Made     *noun.Noun // the answer has an object of it
	Thing    string     // what a deletion deletes, if the first of its words does not say it
	// Tables are the members of the objects in a list of the answer, in the order of a person.
	Tables map[string][]string
	// Plainly changes an answer for people: words in the place of what is missing.
	Plainly func(ctx context.Context, c *client.Client, answer map[string]any)
	// Shows writes the answer for people, if that is set.
	Shows func(w io.Writer, answer map[string]any) error

	// MemberFlag is an input that --member gives: the id of a member who is named.
	MemberFlag string
	// Learn adds to an answer what next needs.
	Learn func(ctx context.Context, c *client.Client, answer map[string]any)
	// Picks is that of the command.
	Picks func(ctx context.Context, prompt, repo string) (string, error)

	Hidden []string // members of the answer that are for programs

	flags string // where the object is: --repo and --environment as they were given
	Place string // what is said where there is none of the name
}

// Occasion is a call that was made: what there was before it, if that is known, the flags that
// were given as words of a command line, and the answer.
type Occasion struct {
	Before, Answer map[string]any
	flags          string
	Plain          []string
}

// Done is a text about what has happened, with its holes filled.
func (o Occasion) Done(text string) string {
	return filled(text, spoken(o.Plain), o.all(), client.Inert)
}

// Next is a command that comes next, with its holes filled.
func (o Occasion) Next(text string) string {
	return filled(strings.ReplaceAll(text, "{flags}", o.flags), o.Plain, o.all(), client.Word)
}

func (o Occasion) all() map[string]any {
	all := maps.Clone(o.Answer)
	if o.Before != nil {
		all["before"] = o.Before
	}
	return all
}

// Hole is the place of a value in a text.
var Hole = lazy.New(`\{([a-z0-9_.]+)\}`)

// filled puts values, as safe makes them, into the holes of a text. A hole without a value becomes a word in
// capitals.
func filled(text string, plain []string, answer any, safe func(string) string) string {
	return Hole.ReplaceAllStringFunc(text, func(h string) string {
		name := strings.Trim(h, "{}")
		if name == "id" {
			name = "0"
		}
		if i := int(name[0] - '0'); len(name) == 1 && i >= 0 && i <= 9 {
			if i < len(plain) {
				return safe(plain[i])
			}
			return "ID"
		}
		v, known := object.Lookup(answer, name)
		switch {
		case known && v != nil:
			return safe(object.Text(v))
		case known && strings.HasPrefix(name, "before."):
			return "null"
		}
		return strings.ToUpper(name[strings.LastIndexByte(name, '.')+1:])
	})
}

// Command is the command of an act. The capability is looked at when its flags are
// declared.
func (a Act) Command() tree.Command {
	c := tree.Command{Words: a.Words, Args: a.Args, Summary: a.Summary, More: a.More, Examples: a.Examples, Of: a.Of.Kind(),
		Values: map[string]tree.Values{}, Does: &a, Picks: a.Picks}
	c.Define = func(fl *flag.FlagSet) tree.Action {
		for _, in := range capability.One(a.Op).Inputs() {
			name := strings.ReplaceAll(in.Name, "_", "-")
			if at := slices.Index(a.Plain, in.Name); at >= 0 { // a plain argument has a name of its own
				words := c.Wants()
				if at += len(words) - len(a.Plain); at >= 0 && at < len(words) {
					name = strings.Trim(words[at], "[]…")
				}
			}
			if len(in.Values) > 0 {
				c.Values[name] = tree.Fixed(in.Values...)
			}
			if in.Kind == "true or false" {
				c.Values[name] = tree.Fixed("true", "false")
			}
		}
		return a.Define(fl)
	}
	return c
}

// Commands are the commands of acts.
func Commands(all ...Act) (out []tree.Command) {
	for _, a := range all {
		out = append(out, a.Command())
	}
	return out
}

// Capability is the id of the capability that is called.
func (a *Act) Capability() string { return a.Op }

// Define declares the flags of the act, and answers what it does.
func (a Act) Define(fl *flag.FlagSet) tree.Action {
	o := capability.One(a.Op)
	inputs := map[string]*string{}
	taken := slices.Concat(slices.Collect(maps.Keys(a.Fixed)), a.Plain, []string{a.Text, a.Secret, a.SecretFile, a.MemberFlag})
	if a.Of != nil {
		taken = append(taken, noun.Placeholder(o.Path))
		if strings.Contains(o.Path, "{owner}") && a.Of.Name == "repo" {
			taken = append(taken, "owner", "repo")
		}
	}
	var repo string
	if a.PerRepo {
		taken = append(taken, "owner", "repo")
		fl.StringVar(&repo, "repo", "", "`OWNER/NAME`; that of the folder's git remote when empty")
	}
	required := map[string]bool{}
	for _, in := range o.Inputs() {
		if slices.Contains(taken, in.Name) {
			continue
		}
		name := strings.ReplaceAll(in.Name, "_", "-")
		usage := in.Doc
		if in.Unit == "seconds" {
			usage = "`TIME` such as 30m, or a number of " + usage
		}
		inputs[in.Name] = fl.String(name, "", usage)
		required[in.Name] = in.Required
		if in.Kind == "true or false" {
			fl.Lookup(name).NoOptDefVal = "true"
		}
	}
	var t Texts
	if a.Text != "" {
		t.Add(fl)
	}
	file := ""
	if a.SecretFile != "" {
		fl.StringVar(&file, "secret-file", "", "read the "+a.SecretFile+" from `FILE`, - for standard input")
	}
	member := ""
	if a.MemberFlag != "" {
		fl.StringVar(&member, "member", "", "`LOGIN` of the member who is meant")
	}
	out := &output.Flags{}
	out.Add(fl)
	return func(ctx context.Context, plain []string) error {
		if err := out.Check(); err != nil {
			return err
		}
		var in []capability.Given
		if member != "" {
			id, err := noun.Called("member").Find(ctx, member)
			if err != nil {
				return err
			}
			in = append(in, capability.Given{Name: a.MemberFlag, Text: id})
		}
		rest := plain
		if a.Of != nil {
			in = append(in, a.Of.Address(a.Op, plain[0])...)
			rest = plain[1:]
		}
		for i, name := range a.Plain {
			switch {
			case i >= len(rest):
			case i == len(a.Plain)-1 && strings.HasSuffix(a.Args, "…") && a.Text == "": // it is all words that are left
				in = append(in, capability.Given{Name: name, Text: strings.Join(rest[i:], " "), Verbatim: true})
			default:
				in = append(in, capability.Given{Name: name, Text: rest[i]})
			}
		}
		rest = rest[min(len(a.Plain), len(rest)):]
		for _, name := range object.Sorted(a.Fixed) {
			in = append(in, capability.Given{Name: name, Text: a.Fixed[name]})
		}
		for _, name := range object.Sorted(inputs) {
			flagName := strings.ReplaceAll(name, "_", "-")
			switch {
			case fl.Changed(flagName):
				in = append(in, capability.Given{Name: name, Text: seconds(o, name, *inputs[name])})
			case required[name]:
				_, usage := flag.UnquoteUsage(fl.Lookup(flagName))
				return exit.Misused("give --%s: %s", flagName, usage)
			}
		}
		var err error
		if a.PerRepo {
			if in, err = noun.InRepo(ctx, repo, in); err != nil {
				return err
			}
		}
		c, err := signin.Connect()
		if err != nil {
			return err
		}
		if a.Text != "" {
			text, err := t.Read(ctx, rest, a.Summary)
			if err != nil {
				return err
			}
			in = append(in, capability.Given{Name: a.Text, Text: text, Verbatim: true})
		}
		if a.Secret != "" {
			value, err := signin.Ask(ctx, a.Prompt, true)
			if err != nil {
				return err
			}
			in = append(in, capability.Given{Name: a.Secret, Text: value, Verbatim: true})
		}
		if file != "" {
			b, err := exit.OfFile(terminal.Read(file))
			if err != nil {
				return err
			}
			in = append(in, capability.Given{Name: a.SecretFile, Text: strings.TrimRight(string(b), "\r\n"), Verbatim: true})
		}
		path, body, err := capability.Assemble(o, in)
		if err != nil {
			return err
		}
		var was any
		if !out.ForPrograms() {
			was = a.was(ctx, c, plain, in)
		}
		b, err := c.Fetch(ctx, o.Method, path, body)
		if err != nil {
			return err
		}
		draft.Accepted(ctx)
		if err := a.nothingThere(b, plain, was); err != nil {
			return err
		}
		if sheet := len(b) > 0 && !json.Valid(b); sheet || out.ForPrograms() {
			return out.Print(os.Stdout, b)
		}
		a.flags = retold(fl, repo)
		return a.Say(ctx, c, b, plain, was)
	}
}

// was is what there was before the call; nil if there was nothing, or if that cannot be asked.
func (a Act) was(ctx context.Context, c *client.Client, plain []string, in []capability.Given) any {
	id := ""
	if len(plain) > 0 {
		id = plain[0]
	}
	switch {
	case a.Earlier != nil:
		return a.Earlier(ctx, c, plain)
	case a.Before == "":
		return nil
	}
	var of []capability.Given
	if a.Of != nil {
		of = a.Of.Address(a.Before, id)
	}
	for name := range capability.One(a.Before).Input() { // such as the repository
		if i := slices.IndexFunc(in,
			func(g capability.Given) bool { return g.Name == name }); i >= 0 && (name == "owner" || name == "repo") {
			of = append(of, in[i])
		}
	}
	path, _, err := capability.Assemble(capability.One(a.Before), of)
	if err != nil {
		return nil
	}
	b, err := c.Fetch(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil // the token may not read it
	}
	v, _ := object.Decode(b)
	return v
}

// spoken are plain arguments as a sentence has them: none for what is taken away.
func spoken(plain []string) []string {
	said := slices.Clone(plain)
	for i, word := range said {
		if word == "null" {
			said[i] = "none"
		}
	}
	return said
}
