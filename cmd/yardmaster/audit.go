package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"yardmaster/internal/chain"
	"yardmaster/internal/client"
)

// runAuditExport writes the account's audit rows as lines of JSON, newest
// first, as the API shows them.
func runAuditExport(ctx context.Context, args []string) error {
	if _, err := parse(flags("audit export"), args); err != nil {
		return err
	}
	c, err := connect()
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	err = client.Each(ctx, c, "/v1/audit/events?per_page=200", func(row json.RawMessage) error {
		_, err := out.Write(append(row, '\n'))
		return err
	})
	if err != nil {
		return err
	}
	return out.Flush()
}

// runAuditVerify checks an export without any server.
func runAuditVerify(_ context.Context, args []string) error {
	fl := flags("audit verify")
	head := fl.String("head", "", "hash that the newest row must have, noted down at another time")
	plain, err := parse(fl, args, "FILE")
	if err != nil {
		return err
	}
	in := io.Reader(os.Stdin)
	if plain[0] != "-" {
		f, err := os.Open(plain[0])
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	return auditVerify(in, *head, os.Stdout)
}

func auditVerify(in io.Reader, head string, out io.Writer) error {
	spans, err := chain.Verify(in)
	if err != nil {
		return err
	}
	if len(spans) == 0 {
		return errors.New("there are no rows")
	}
	if head != "" && (len(spans) != 1 || spans[0].Head.Hash != head) {
		return fmt.Errorf("the newest row is not the one with the hash %s: rows are missing at the end", head)
	}
	for _, s := range spans {
		account := cmp.Or(client.Inert(s.AccountID), "the platform")
		fmt.Fprintf(out, "%s: %d rows, %d to %d, are whole; the newest has the hash %s\n", account, s.Rows, s.First.Seq, s.Head.Seq, s.Head.Hash)
		if s.First.Seq > 1 {
			fmt.Fprintf(out, "%s: what came before row %d is not in the file\n", account, s.First.Seq)
		}
	}
	return nil
}
