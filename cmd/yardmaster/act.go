package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"

	flag "github.com/spf13/pflag"

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
	of                   *noun
	fixed                map[string]string // inputs that the words mean
	plain                []string          // inputs that the plain arguments after the object are
	// text is the input that the words of TEXT… are, or --file, or what is written in an
	// editor.
	text string
	// secret is the input that is read from standard input, unseen.
	secret  string
	prompt  string // for the secret
	perRepo bool   // the capability is one of a repository: --repo
	// done says what has happened, and next how it is undone or what comes next: {id},
	// {0} and so on for the plain arguments, {name} for a member of the answer.
	done, next string
	// before is the capability that is asked before, for the undo: {before.NAME} is a member
	// of its answer.
	before   string
	examples []string
	made     *noun // the answer has an object of it
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
		v, known := lookup(answer, name)
		switch {
		case known && v != nil:
			return safe(plainText(v))
		case known && strings.HasPrefix(name, "before."):
			return "null"
		}
		return strings.ToUpper(name[strings.LastIndexByte(name, '.')+1:])
	})
}

// command is the command of an act. The capability is looked at when its flags are
// declared.
func (a act) command() command {
	c := command{words: a.words, args: a.args, summary: a.summary, more: a.more, examples: a.examples, of: a.of,
		values: map[string]values{}, does: &a}
	c.define = func(fl *flag.FlagSet) action {
		for _, in := range one(a.op).Inputs() {
			name := strings.ReplaceAll(in.Name, "_", "-")
			if _, of, some := strings.Cut(in.Doc, "one of "); some {
				c.values[name] = fixed(strings.Split(of, ", ")...)
			}
			if in.Kind == "true or false" {
				c.values[name] = fixed("true", "false")
			}
		}
		return a.define(fl)
	}
	return c
}

// commandsOf are the commands of acts.
func commandsOf(all ...act) (out []command) {
	for _, a := range all {
		out = append(out, a.command())
	}
	return out
}

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
		return "", misused("give the text or --file, not both")
	case file != "":
		b, err := terminal.Read(file)
		if err != nil {
			return "", err
		}
		text = strings.TrimSpace(string(b))
	case t.edit || text == "" && terminal.Interactive():
		return terminal.Edit(ctx, os.Getenv, text, what)
	}
	if text == "" {
		return "", misused("TEXT is missing: %s", what)
	}
	return text, nil
}

func (a act) define(fl *flag.FlagSet) action {
	o := one(a.op)
	inputs := map[string]*string{}
	taken := slices.Concat(slices.Collect(maps.Keys(a.fixed)), a.plain, []string{a.text, a.secret})
	if a.of != nil {
		taken = append(taken, placeholder(o.Path))
		if strings.Contains(o.Path, "{owner}") && a.of.name == "repo" {
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
		inputs[in.Name] = fl.String(name, "", in.Doc)
		required[in.Name] = in.Required
		if in.Kind == "true or false" {
			fl.Lookup(name).NoOptDefVal = "true"
		}
	}
	var t texts
	if a.text != "" {
		t.add(fl)
	}
	out := &output{}
	out.add(fl)
	return func(ctx context.Context, plain []string) error {
		if err := out.check(); err != nil {
			return err
		}
		var in []given
		rest := plain
		if a.of != nil {
			in = append(in, a.of.address(a.op, plain[0])...)
			rest = plain[1:]
		}
		for i, name := range a.plain {
			if i < len(rest) {
				in = append(in, given{name: name, text: rest[i]})
			}
		}
		rest = rest[min(len(a.plain), len(rest)):]
		for _, name := range sorted(a.fixed) {
			in = append(in, given{name: name, text: a.fixed[name]})
		}
		for _, name := range sorted(inputs) {
			flagName := strings.ReplaceAll(name, "_", "-")
			switch {
			case fl.Changed(flagName):
				in = append(in, given{name: name, text: *inputs[name]})
			case required[name]:
				return misused("give --%s: %s", flagName, fl.Lookup(flagName).Usage)
			}
		}
		var err error
		if a.perRepo {
			if in, err = inRepo(ctx, repo, in); err != nil {
				return err
			}
		}
		c, err := connect()
		if err != nil {
			return err
		}
		if a.text != "" {
			text, err := t.read(ctx, rest, a.summary)
			if err != nil {
				return err
			}
			in = append(in, given{name: a.text, text: text, verbatim: true})
		}
		if a.secret != "" {
			value, err := ask(ctx, a.prompt, true)
			if err != nil {
				return err
			}
			in = append(in, given{name: a.secret, text: value, verbatim: true})
		}
		path, body, err := assemble(o, in)
		if err != nil {
			return err
		}
		var was any
		if a.before != "" && !out.forPrograms() {
			was = a.was(ctx, c, plain)
		}
		b, err := c.Fetch(ctx, o.Method, path, body)
		if err != nil {
			return err
		}
		if out.forPrograms() {
			return out.print(os.Stdout, b)
		}
		return a.say(b, plain, was)
	}
}

// was is what the capability before answers; nil if it cannot be asked.
func (a act) was(ctx context.Context, c *client.Client, plain []string) any {
	var in []given
	if a.of != nil {
		in = a.of.address(a.before, plain[0])
	}
	path, _, err := assemble(one(a.before), in)
	if err != nil {
		return nil
	}
	b, err := c.Fetch(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil // the token may not read it
	}
	v, _ := decoded(b)
	return v
}

// say prints what has happened, and how it is undone or what comes next. was is what was
// asked before.
func (a act) say(b []byte, plain []string, was any) error {
	answer, _ := decoded(b) // none is no object
	row, ok := answer.(map[string]any)
	if !ok {
		row = map[string]any{}
	}
	if was != nil {
		row["before"] = was
		answer = row
	}
	if ok && a.made != nil {
		id := a.made.id(row)
		if id == "" { // where more than one object was made
			id = plainText(row[a.made.name+"_id"])
		}
		if id != "" {
			a.made.seen(id)
		}
		plain = append([]string{id}, plain...)
	}
	said := slices.Clone(plain)
	for i, word := range said {
		if word == "null" {
			said[i] = "none"
		}
	}
	if a.done != "" {
		fmt.Println(filled(a.done, said, answer, client.Inert))
	} else if len(b) > 0 {
		n := a.of
		if n == nil || one(a.op).Method != http.MethodGet {
			n = &noun{name: a.words}
		}
		if err := n.view(os.Stdout, b); err != nil {
			return err
		}
	}
	if a.next != "" {
		fmt.Println(filled(a.next, plain, answer, client.Word))
	}
	return nil
}
