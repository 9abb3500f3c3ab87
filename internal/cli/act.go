package cli

import (
	"context"
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

// act is a command that calls one capability, mostly about one object. Its flags are the
// inputs of the capability that nothing else gives.
type act struct {
	words, args, summary string
	more                 string
	op                   string
	of                   *noun.Noun
	fixed                map[string]string // inputs that the words mean
	plain                []string          // inputs that the plain arguments after the object are
	// text is the input that the words of TEXT… are, or --file, or what is written in an
	// editor.
	text string
	// secret is the input that is read from standard input, unseen.
	secret string
	prompt string // for the secret
	// secretFile is an input that may be read from the file of --secret-file.
	secretFile string
	perRepo    bool // the capability is one of a repository: --repo
	// done says what has happened, and next how it is undone or what comes next: {id},
	// {0} and so on for the plain arguments, {name} for a member of the answer.
	done, next string
	// before is the capability that is asked before, for the undo: {before.NAME} is a member
	// of its answer.
	before string
	// earlier reads what there was before, in the place of before; nil if that cannot be told.
	earlier func(ctx context.Context, c *client.Client, plain []string) any
	// says answers what has happened and what comes next where that depends on what there was
	// before; "" leaves the one to done, or the other to next.
	says     func(of occasion) (done, next string)
	examples []string
	made     *noun.Noun // the answer has an object of it
	thing    string     // what a deletion deletes, if the first of its words does not say it
	// tables are the members of the objects in a list of the answer, in the order of a person.
	tables map[string][]string
	// plainly changes an answer for people: words in the place of what is missing.
	plainly func(ctx context.Context, c *client.Client, answer map[string]any)
	// shows writes the answer for people, if that is set.
	shows func(w io.Writer, answer map[string]any) error

	// memberFlag is an input that --member gives: the id of a member who is named.
	memberFlag string
	// learn adds to an answer what next needs.
	learn func(ctx context.Context, c *client.Client, answer map[string]any)
	// picks is that of the command.
	picks func(ctx context.Context, prompt, repo string) (string, error)

	hidden []string // members of the answer that are for programs

	flags string // where the object is: --repo and --environment as they were given
	place string // what is said where there is none of the name
}

// occasion is a call that was made: what there was before it, if that is known, the flags that
// were given as words of a command line, and the answer.
type occasion struct {
	before, answer map[string]any
	flags          string
	plain          []string
}

// done is a text about what has happened, with its holes filled.
func (o occasion) done(text string) string {
	return filled(text, spoken(o.plain), o.all(), client.Inert)
}

// next is a command that comes next, with its holes filled.
func (o occasion) next(text string) string {
	return filled(strings.ReplaceAll(text, "{flags}", o.flags), o.plain, o.all(), client.Word)
}

func (o occasion) all() map[string]any {
	all := maps.Clone(o.answer)
	if o.before != nil {
		all["before"] = o.before
	}
	return all
}

var hole = lazy.New(`\{([a-z0-9_.]+)\}`)

// filled puts values, as safe makes them, into the holes of a text. A hole without a value becomes a word in
// capitals.
func filled(text string, plain []string, answer any, safe func(string) string) string {
	return hole.ReplaceAllStringFunc(text, func(h string) string {
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

// command is the command of an act. The capability is looked at when its flags are
// declared.
func (a act) command() tree.Command {
	c := tree.Command{Words: a.words, Args: a.args, Summary: a.summary, More: a.more, Examples: a.examples, Of: a.of.Kind(),
		Values: map[string]tree.Values{}, Does: &a, Picks: a.picks}
	c.Define = func(fl *flag.FlagSet) tree.Action {
		for _, in := range capability.One(a.op).Inputs() {
			name := strings.ReplaceAll(in.Name, "_", "-")
			if at := slices.Index(a.plain, in.Name); at >= 0 { // a plain argument has a name of its own
				words := c.Wants()
				if at += len(words) - len(a.plain); at >= 0 && at < len(words) {
					name = strings.Trim(words[at], "[]…")
				}
			}
			if _, of, some := strings.Cut(in.Doc, "one of "); some {
				c.Values[name] = tree.Fixed(strings.Split(of, ", ")...)
			}
			if in.Kind == "true or false" {
				c.Values[name] = tree.Fixed("true", "false")
			}
		}
		return a.define(fl)
	}
	return c
}

// commandsOf are the commands of acts.
func commandsOf(all ...act) (out []tree.Command) {
	for _, a := range all {
		out = append(out, a.command())
	}
	return out
}

// Capability is the id of the capability that is called.
func (a *act) Capability() string { return a.op }

// texts are the flags of a command that takes a text.
type texts struct {
	file string
	edit bool
}

func (t *texts) add(fl *flag.FlagSet) {
	fl.StringVarP(&t.file, "file", "F", "", "read the text from `FILE`, - for standard input")
	fl.BoolVarP(&t.edit, "editor", "e", false, "write the text in an editor (VISUAL, EDITOR)")
}

// read is the text: the words, a file, standard input, or what is written in an editor,
// which opens on a terminal when there is nothing else.
func (t *texts) read(ctx context.Context, words []string, what string) (string, error) {
	text := strings.TrimSpace(strings.Join(words, " "))
	file := t.file
	if text == "-" {
		text, file = "", "-"
	}
	switch {
	case text != "" && file != "":
		return "", exit.Misused("give the text or --file, not both")
	case file != "":
		b, err := exit.OfFile(terminal.Read(file))
		if err != nil {
			return "", err
		}
		text = strings.TrimSpace(string(b))
	case t.edit || text == "" && terminal.Interactive():
		return draft.Compose(ctx, os.Getenv, text, what)
	}
	if text == "" {
		return "", exit.Misused("TEXT is missing: %s", what)
	}
	return text, nil
}

func (a act) define(fl *flag.FlagSet) tree.Action {
	o := capability.One(a.op)
	inputs := map[string]*string{}
	taken := slices.Concat(slices.Collect(maps.Keys(a.fixed)), a.plain, []string{a.text, a.secret, a.secretFile, a.memberFlag})
	if a.of != nil {
		taken = append(taken, noun.Placeholder(o.Path))
		if strings.Contains(o.Path, "{owner}") && a.of.Name == "repo" {
			taken = append(taken, "owner", "repo")
		}
	}
	var repo string
	if a.perRepo {
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
		if inSeconds(in.Doc) {
			usage = "`TIME` such as 30m, or a number of " + usage
		}
		inputs[in.Name] = fl.String(name, "", usage)
		required[in.Name] = in.Required
		if in.Kind == "true or false" {
			fl.Lookup(name).NoOptDefVal = "true"
		}
	}
	var t texts
	if a.text != "" {
		t.add(fl)
	}
	file := ""
	if a.secretFile != "" {
		fl.StringVar(&file, "secret-file", "", "read the "+a.secretFile+" from `FILE`, - for standard input")
	}
	member := ""
	if a.memberFlag != "" {
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
			in = append(in, capability.Given{Name: a.memberFlag, Text: id})
		}
		rest := plain
		if a.of != nil {
			in = append(in, a.of.Address(a.op, plain[0])...)
			rest = plain[1:]
		}
		for i, name := range a.plain {
			switch {
			case i >= len(rest):
			case i == len(a.plain)-1 && strings.HasSuffix(a.args, "…") && a.text == "": // it is all words that are left
				in = append(in, capability.Given{Name: name, Text: strings.Join(rest[i:], " "), Verbatim: true})
			default:
				in = append(in, capability.Given{Name: name, Text: rest[i]})
			}
		}
		rest = rest[min(len(a.plain), len(rest)):]
		for _, name := range object.Sorted(a.fixed) {
			in = append(in, capability.Given{Name: name, Text: a.fixed[name]})
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
		if a.perRepo {
			if in, err = noun.InRepo(ctx, repo, in); err != nil {
				return err
			}
		}
		c, err := signin.Connect()
		if err != nil {
			return err
		}
		if a.text != "" {
			text, err := t.read(ctx, rest, a.summary)
			if err != nil {
				return err
			}
			in = append(in, capability.Given{Name: a.text, Text: text, Verbatim: true})
		}
		if a.secret != "" {
			value, err := signin.Ask(ctx, a.prompt, true)
			if err != nil {
				return err
			}
			in = append(in, capability.Given{Name: a.secret, Text: value, Verbatim: true})
		}
		if file != "" {
			b, err := exit.OfFile(terminal.Read(file))
			if err != nil {
				return err
			}
			in = append(in, capability.Given{Name: a.secretFile, Text: strings.TrimRight(string(b), "\r\n"), Verbatim: true})
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
		if out.ForPrograms() {
			return out.Print(os.Stdout, b)
		}
		a.flags = retold(fl, repo)
		return a.say(ctx, c, b, plain, was)
	}
}

// was is what there was before the call; nil if there was nothing, or if that cannot be asked.
func (a act) was(ctx context.Context, c *client.Client, plain []string, in []capability.Given) any {
	id := ""
	if len(plain) > 0 {
		id = plain[0]
	}
	switch {
	case a.earlier != nil:
		return a.earlier(ctx, c, plain)
	case a.before == "":
		return nil
	}
	var of []capability.Given
	if a.of != nil {
		of = a.of.Address(a.before, id)
	}
	for name := range capability.One(a.before).Input() { // such as the repository
		if i := slices.IndexFunc(in, func(g capability.Given) bool { return g.Name == name }); i >= 0 && (name == "owner" || name == "repo") {
			of = append(of, in[i])
		}
	}
	path, _, err := capability.Assemble(capability.One(a.before), of)
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
