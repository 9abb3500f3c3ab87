package cli

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/attestation"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/output"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
)

// provenanceCommands are about what merges came of.
func provenanceCommands() []tree.Command {
	return []tree.Command{
		{Words: "provenance show", Args: "ID", Summary: "what a merged pull request came of, signed, and where that is kept",
			Of: noun.Called("pr"), Answers: "pr.provenance", Define: defineProvenanceShow,
			Examples: []string{"yardmaster provenance show acme/web#3", "yardmaster provenance show @last --to merge.dsse.json"}},
		{Words: "provenance verify", Args: "FILE", Define: defineProvenanceVerify,
			Summary: "check a signed statement about a merge without a server, and print what it says",
			More:    "FILE is - for standard input, such as a note of git.",
			Examples: []string{"yardmaster provenance verify merge.dsse.json --key KEY",
				"git notes --ref=yardmaster show HEAD | yardmaster provenance verify - --key KEY --commit HEAD_SHA"}},
	}
}

// proof is the answer of pr.provenance.
type proof struct {
	State     string  `json:"state"`
	MergeSHA  *string `json:"merge_sha"`
	Envelope  *string `json:"envelope"`
	PublicKey string  `json:"public_key"`
	Artifact  place   `json:"artifact"`
	Note      place   `json:"note"`
}

type place struct {
	State string  `json:"state"`
	ID    *string `json:"id"`
	Why   *string `json:"why"`
}

func (p place) String() string {
	switch {
	case p.Why != nil:
		return p.State + ": " + client.Inert(*p.Why)
	case p.ID != nil:
		return p.State + ", " + *p.ID
	}
	return p.State
}

func defineProvenanceShow(fl *flag.FlagSet) tree.Action {
	to := fl.String("to", "", "`FILE` to write the envelope into, - for standard output")
	o := &output.Flags{}
	o.Add(fl)
	return func(ctx context.Context, plain []string) error {
		if err := o.Check(); err != nil {
			return err
		}
		c, err := signin.Connect()
		if err != nil {
			return err
		}
		var p proof
		done, err := o.Answered(ctx, c, http.MethodGet, "/v1/prs/"+url.PathEscape(plain[0])+"/provenance", nil, &p)
		if done || err != nil {
			return err
		}
		if p.Envelope == nil {
			return fmt.Errorf("there is no statement yet: the state is %s", client.Inert(p.State))
		}
		switch *to {
		case "-":
			_, err = fmt.Println(*p.Envelope)
			return err
		case "":
		default:
			return os.WriteFile(*to, []byte(*p.Envelope+"\n"), 0o666)
		}
		key, err := attestation.ParseKey(p.PublicKey)
		if err != nil {
			return err
		}
		s, err := attestation.Verify([]byte(*p.Envelope), key)
		if err != nil {
			return err
		}
		b, err := json.Marshal(s)
		if err == nil {
			err = noun.WithNames(ctx, c, saidOf)(os.Stdout, b)
		}
		if err != nil {
			return err
		}
		fmt.Printf("artifact   %s\nnote       %s\nkey        %s\n", p.Artifact, p.Note, p.PublicKey)
		return nil
	}
}

func defineProvenanceVerify(fl *flag.FlagSet) tree.Action {
	key := fl.String("key", "", "public `KEY` of the account (or several, with commas), noted down at another time; provenance show prints it")
	commit := fl.String("commit", "", "`SHA` of the commit that it has to be about")
	return func(_ context.Context, plain []string) error {
		var keys []ed25519.PublicKey
		for word := range strings.SplitSeq(*key, ",") {
			k, err := attestation.ParseKey(word)
			if err != nil {
				return exit.Misused("--key: %v", err)
			}
			keys = append(keys, k)
		}
		in := io.NopCloser(os.Stdin)
		if plain[0] != "-" {
			f, err := exit.OfFile(os.Open(plain[0]))
			if err != nil {
				return err
			}
			in = f
		}
		defer in.Close()
		b, err := io.ReadAll(io.LimitReader(in, mostStatements*(attestation.MaxSize+1)+1))
		if err != nil {
			return err
		}
		all, err := verified(string(b), *commit, keys)
		for i, s := range all {
			if i > 0 {
				fmt.Println()
			}
			said(os.Stdout, s)
		}
		return err
	}
}

// mostStatements is how many pull requests the note of one commit may be about.
const mostStatements = 20

// verified are the statements of a note, one a line. None is answered unless all hold.
func verified(text, commit string, keys []ed25519.PublicKey) (all []attestation.Statement, err error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) > mostStatements {
		return nil, fmt.Errorf("there are more than %d statements", mostStatements)
	}
	for _, line := range lines {
		s, err := attestation.Verify([]byte(line), keys...)
		if err != nil {
			return nil, err
		}
		if about := s.Subject[0].Digest["gitCommit"]; commit != "" && commit != about {
			return nil, fmt.Errorf("it is signed, and is about the commit %s", client.Inert(about))
		}
		all = append(all, s)
	}
	return all, nil
}

// saidOf is said of a statement in JSON, in which people and boxes may have their names.
func saidOf(out io.Writer, b []byte) error {
	var s attestation.Statement
	err := json.Unmarshal(b, &s)
	if err == nil {
		said(out, s)
	}
	return err
}

// said prints what a statement says, in short.
func said(out io.Writer, s attestation.Statement) {
	m, none := s.Predicate, "nobody knows"
	p := func(what, format string, a ...any) {
		fmt.Fprintf(out, "%-10s %s\n", what, client.Inert(fmt.Sprintf(format, a...)))
	}
	p("commit", "%s", s.Subject[0].Digest["gitCommit"])
	p("merges", "%s#%d at %s into %s", m.PullRequest.Repo, m.PullRequest.Number, m.PullRequest.HeadSHA, m.PullRequest.BaseRef)
	p("decided", "%s, %s", text(m.MergedBy, none), m.MergedAt.UTC().Format("2006-01-02 15:04:05 UTC"))
	if m.Asked != nil {
		by := text(m.Asked.RequestedBy, m.Asked.CreatedBy)
		if object.WholeID.MatchString(by) { // the person, who has no kind before the id there
			by = "user:" + by
		}
		p("asked", "%s, task %s, verdict %s", by, m.Asked.TaskID, text(m.Asked.Verdict, "none"))
	}
	for _, r := range m.Runs {
		p("run", "%s %s of %s, %s with %s on %s, isolation %s", r.Kind, text(r.Outcome, "unfinished"), r.Template, r.Agent,
			cmp.Or(strings.Join(r.Models, ", "), "no model"), r.BoxID, text(r.Isolation, "not measured"))
	}
	for _, r := range m.Reviews {
		p("review", "%s %s of %s", r.State, text(r.Verdict, ""), r.HeadSHA)
	}
	for _, a := range m.Approvals {
		p("approval", "%s %s by %s of %s", a.Kind, a.State, text(a.By, none), a.HeadSHA)
	}
	p("checks", "%s, %d run again", m.Checks.State, len(m.Checks.Reruns))
	p("spend", "%s USD, %d calls without a price", text(m.Spend.USD, "unknown"), m.Spend.UnpricedCalls)
}

func text(s *string, none string) string {
	if s == nil {
		return none
	}
	return *s
}
