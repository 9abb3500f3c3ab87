package machine

import (
	"bufio"
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/app"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
	"yardmaster/internal/config"
	"yardmaster/internal/event/hashchain"
	"yardmaster/internal/lazy"
)

// AuditExport writes the account's audit rows as lines of JSON, newest first, in
// the form of the API.
func AuditExport(ctx context.Context, _ []string) error {
	c, err := signin.Connect()
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	err = client.Each(ctx, c, "/v1/audit/events?per_page=200", func(row json.RawMessage) error {
		_, err := out.WriteString(client.Escape(string(row)) + "\n") // which hashes the same
		return err
	})
	if err != nil {
		return err
	}
	return out.Flush()
}

// AuditVerify verifies an export without a server.
func AuditVerify(fl *flag.FlagSet) tree.Action {
	head := fl.String("head", "", "`FILE` of signed heads (- for standard input), or the hash that the newest row must have")
	key := fl.String("key", "",
		"public `KEY` that the heads are signed with (or several, with commas), noted down at another time; keys list shows it")
	return func(_ context.Context, plain []string) error { return runAuditVerify(plain[0], *head, *key) }
}

func runAuditVerify(file, head, key string) error {
	signed := head != "" && !hash.MatchString(head)
	if signed != (key != "") {
		return exit.Misused("give --head FILE and --key together: heads prove nothing without the key")
	}
	if signed && head == "-" && file == "-" {
		return exit.Misused("only one of FILE and --head can be standard input")
	}
	in, err := opened(file)
	if err != nil {
		return err
	}
	defer in.Close()
	if !signed {
		return auditVerify(in, head, os.Stdout)
	}
	var trusted []ed25519.PublicKey
	for word := range strings.SplitSeq(key, ",") {
		k, err := hashchain.ParsePublicKey(word)
		if err != nil {
			return exit.Misused("--key: %v", err)
		}
		trusted = append(trusted, k)
	}
	notes, err := opened(head)
	if err != nil {
		return err
	}
	defer notes.Close()
	book, err := hashchain.ReadBook(notes, trusted...)
	if err != nil {
		return err
	}
	return auditCompare(in, book, os.Stdout)
}

// hash is the form of the hash of a head.
var hash = lazy.New(`^[0-9a-f]{64}$`)

func opened(path string) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(os.Stdin), nil
	}
	return exit.OfFile(os.Open(path))
}

func auditVerify(in io.Reader, head string, out io.Writer) error {
	spans, err := hashchain.Verify(in)
	if err != nil {
		return err
	}
	if len(spans) == 0 {
		return errors.New("there are no rows")
	}
	if head != "" && (len(spans) != 1 || spans[0].Head.Hash != head) {
		return fmt.Errorf("the newest row is not the one with the hash %s: rows are missing at the end", head)
	}
	whole(out, spans)
	return nil
}

// auditCompare verifies an export against signed heads.
func auditCompare(in io.Reader, book *hashchain.Book, out io.Writer) error {
	book.Check()
	for _, bad := range book.Bad {
		fmt.Fprintf(out, "heads: %s\n", bad)
	}
	spans, missing, passed, err := hashchain.VerifyAgainst(in, book)
	if err != nil {
		return err
	}
	if len(spans) == 0 {
		return errors.New("there are no rows")
	}
	whole(out, spans)
	for _, p := range passed {
		fmt.Fprintln(out, client.Inert(p))
	}
	switch {
	case len(missing) > 0:
		return errors.New(strings.Join(missing, "\n"))
	case len(book.Bad) > 0:
		return errors.New("heads that are not signed with the key were left out")
	}
	for _, c := range book.Chains() {
		if i := slices.IndexFunc(spans, func(s hashchain.Span) bool { return s.AccountID == c.Account }); i >= 0 {
			heads := c.Heads()
			fmt.Fprintf(out, "%s: every head that is signed is there, %d in all; the newest is %s\n", accountName(c.Account),
				len(heads), heads[len(heads)-1].Says())
		}
	}
	return nil
}

func accountName(id string) string { return cmp.Or(client.Inert(id), "the platform") }

func whole(out io.Writer, spans []hashchain.Span) {
	for _, s := range spans {
		account := accountName(s.AccountID)
		fmt.Fprintf(out, "%s: %d rows, %d to %d, are whole; the newest has the hash %s\n", account, s.Rows, s.First.Seq, s.Head.Seq,
			s.Head.Hash)
		if s.First.Seq > 1 {
			fmt.Fprintf(out, "%s: what came before row %d is not in the file\n", account, s.First.Seq)
		}
	}
}

// AuditAccept accepts the current rows after an operator has deliberately
// restored an older database.
func AuditAccept(fl *flag.FlagSet) tree.Action {
	return configured(fl, func(ctx context.Context, cfg *config.Config, plain []string) error {
		return withKeys(ctx, cfg, true, func(k *app.KeyChest) error { return k.AcceptBreaks(ctx, plain[0], os.Stdout) })
	})
}
