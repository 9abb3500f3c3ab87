package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/screen"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
	"yardmaster/internal/mail"
)

func defineMail(fl *flag.FlagSet) tree.Action {
	data := fl.String("data", cmp.Or(os.Getenv("YARDMASTER_DATA"), "./yardmaster-data"), "the server's data folder (YARDMASTER_DATA)")
	queue := fl.Bool("queue", false, "for operators: list the mails of the server that are not sent, and the addresses that were refused")
	retry := fl.String("retry", "", "for operators: send the mail `ID` now")
	clear := fl.String("clear", "", "for operators: mail notifications to `ADDRESS` again, which a mail server has refused")
	return func(ctx context.Context, plain []string) error {
		if *queue || *retry != "" || *clear != "" {
			c, err := signin.Connect()
			if err != nil {
				return err
			}
			return operateMails(ctx, c, *retry, *clear)
		}
		return readMails(*data, plain)
	}
}

func readMails(data string, plain []string) error {
	if _, err := os.Stat(data); err != nil {
		return fmt.Errorf("there is no data folder %s: name the server's with --data", data)
	}
	letters, err := mail.Folder{Dir: filepath.Join(data, "mail")}.List()
	if err != nil {
		return err
	}
	if len(plain) == 0 {
		return listMails(os.Stdout, letters)
	}
	if strings.Contains(plain[0], "@") {
		return newestMail(os.Stdout, letters, plain[0])
	}
	n, err := strconv.Atoi(plain[0])
	if err != nil || n < 1 || n > len(letters) {
		return fmt.Errorf("there is no mail %q: name one of the %d by its number, or the address it went to", plain[0], len(letters))
	}
	return showMail(os.Stdout, letters[n-1])
}

// newestMail prints the newest letter to an address.
func newestMail(w io.Writer, letters []mail.Letter, to string) error {
	for _, l := range slices.Backward(letters) {
		if strings.EqualFold(l.To, to) {
			return showMail(w, l)
		}
	}
	return fmt.Errorf("there is no mail to %s", to)
}

// queuedMail and refusedAddress are rows of mail.list and mail.refusals.
type (
	queuedMail struct {
		ID, To, State string
		Tries         int
		Age           int64   `json:"age_seconds"`
		LastError     *string `json:"last_error"`
	}
	refusedAddress struct {
		Address, Reason string
		RefusedAt       time.Time `json:"refused_at"`
	}
)

// operateMails clears an address and sends a mail again, if they are named, and lists what
// is not sent then.
func operateMails(ctx context.Context, c *client.Client, retry, clear string) error {
	if clear != "" {
		if err := c.Call(ctx, http.MethodPost, "/v1/admin/mail-refusals/"+url.PathEscape(clear)+"/clear", nil, nil); err != nil {
			return err
		}
	}
	if retry != "" {
		if err := c.Call(ctx, http.MethodPost, "/v1/admin/mails/"+url.PathEscape(retry)+"/retry", nil, nil); err != nil {
			return err
		}
	}
	if clear != "" || retry != "" {
		fmt.Println("Done; yardmaster mail --queue shows what becomes of it.")
	}
	mails, err := pages[queuedMail](ctx, c, "/v1/admin/mails?per_page=100")
	if err != nil {
		return err
	}
	refused, err := pages[refusedAddress](ctx, c, "/v1/admin/mail-refusals?per_page=100")
	if err != nil {
		return err
	}
	var rows [][]string
	for _, m := range mails {
		why := ""
		if m.LastError != nil {
			why = *m.LastError
		}
		rows = append(rows, []string{m.ID, m.State, (time.Duration(m.Age) * time.Second).String(), strconv.Itoa(m.Tries), m.To, why})
	}
	if len(rows) == 0 {
		fmt.Println("All mails are sent.")
	} else {
		screen.Lines("ID\tSTATE\tAGE\tTRIES\tTO\tLAST ERROR", rows)
	}
	if len(refused) == 0 {
		return nil
	}
	rows = nil
	for _, r := range refused {
		rows = append(rows, []string{r.Address, r.RefusedAt.Local().Format(time.DateTime), r.Reason})
	}
	screen.Lines("REFUSED ADDRESS\tSINCE\tREASON", rows)
	return nil
}

// pages reads all pages of a collection.
func pages[T any](ctx context.Context, c *client.Client, path string) (all []T, err error) {
	for next := ""; ; {
		var page struct {
			Data []T     `json:"data"`
			Next *string `json:"next_cursor"`
		}
		if err := c.Call(ctx, http.MethodGet, path+next, nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Data...)
		if page.Next == nil {
			return all, nil
		}
		next = "&cursor=" + url.QueryEscape(*page.Next)
	}
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
