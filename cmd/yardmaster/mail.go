package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"text/tabwriter"
	"time"

	"yardmaster/internal/client"
	"yardmaster/internal/mail"
)

func runMail(_ context.Context, args []string) error {
	fl := flags("mail")
	data := fl.String("data", cmp.Or(os.Getenv("YARDMASTER_DATA"), "./yardmaster-data"), "the server's data folder (YARDMASTER_DATA)")
	plain, err := parse(fl, args, "[NUMBER]")
	if err != nil {
		return err
	}
	letters, err := mail.Folder{Dir: filepath.Join(*data, "mail")}.List()
	if err != nil {
		return err
	}
	if len(plain) == 0 {
		return listMails(os.Stdout, letters)
	}
	n, err := strconv.Atoi(plain[0])
	if err != nil || n < 1 || n > len(letters) {
		return fmt.Errorf("there is no mail %q: name one of the %d by its number", plain[0], len(letters))
	}
	return showMail(os.Stdout, letters[n-1])
}

// showMail prints a letter without control characters: strangers have chosen names
// in it.
func showMail(w io.Writer, l mail.Letter) error {
	_, err := fmt.Fprintf(w, "Date:    %s\nFrom:    %s\nTo:      %s\nSubject: %s\n\n%s\n", l.At.Local().Format(time.RFC1123Z),
		client.Inert(l.From), client.Inert(l.To), client.Inert(l.Subject), client.Escape(l.Text))
	return err
}

// listMails prints the newest letter last, at the end of the terminal.
func listMails(w io.Writer, letters []mail.Letter) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NUMBER\tDATE\tTO\tSUBJECT")
	for i, l := range letters {
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\n", i+1, l.At.Local().Format(time.DateTime), client.Inert(l.To), client.Inert(l.Subject))
	}
	return t.Flush()
}
