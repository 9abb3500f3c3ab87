package mail

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	netmail "net/mail"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Folder keeps each letter as an .eml file that only its owner can read.
type Folder struct{ Dir string }

const suffix = ".eml"

// Send writes a letter to its file. Sending a letter again replaces the file.
func (f Folder) Send(_ context.Context, l Letter) error {
	text, err := l.bytes()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.Dir, 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(f.Dir, ".mail-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // absent after a successful rename
	_, err = tmp.Write(text)
	if err == nil {
		err = tmp.Sync()
	}
	if closed := tmp.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("write mail %s: %w", l.ID, err)
	}
	return os.Rename(tmp.Name(), filepath.Join(f.Dir, l.ID+suffix))
}

// List reads the letters of the folder, oldest first. It answers none for a folder
// that does not exist.
func (f Folder) List() ([]Letter, error) {
	paths, err := fs.Glob(os.DirFS(f.Dir), "*"+suffix)
	if err != nil {
		return nil, err
	}
	var all []Letter // the ids that name the files sort by time
	for _, p := range paths {
		l, err := f.read(p)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", filepath.Join(f.Dir, p), err)
		}
		all = append(all, l)
	}
	return all, nil
}

// Remove removes the letters of the folder that are meant, and answers how many. A file that is no
// letter stays.
func (f Folder) Remove(meant func(Letter) bool) (n int, err error) {
	paths, err := fs.Glob(os.DirFS(f.Dir), "*"+suffix)
	for _, p := range paths {
		l, no := f.read(p)
		if no != nil || !meant(l) {
			continue
		}
		if no := os.Remove(filepath.Join(f.Dir, p)); no != nil && !errors.Is(no, fs.ErrNotExist) {
			err = errors.Join(err, no)
			continue
		}
		n++
	}
	return n, err
}

func (f Folder) read(name string) (Letter, error) {
	file, err := os.Open(filepath.Join(f.Dir, name))
	if err != nil {
		return Letter{}, err
	}
	defer file.Close()
	m, err := netmail.ReadMessage(file)
	if err != nil {
		return Letter{}, err
	}
	l := Letter{ID: strings.TrimSuffix(name, suffix)}
	if l.At, err = m.Header.Date(); err != nil {
		l.At = time.Time{}
	}
	if l.To, err = bare(m.Header, "To"); err != nil {
		return Letter{}, err
	}
	if l.From, err = bare(m.Header, "From"); err != nil {
		return Letter{}, err
	}
	if l.Subject, err = new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject")); err != nil {
		return Letter{}, err
	}
	l.Unsubscribe = strings.Trim(m.Header.Get("List-Unsubscribe"), "<>")
	l.List, _, _ = strings.Cut(strings.Trim(m.Header.Get("List-Id"), "<>"), listDomain)
	l.Thread = strings.Trim(m.Header.Get("References"), "<>")
	kind, with, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		return Letter{}, err
	}
	if kind != "multipart/alternative" {
		l.Text, err = quoted(m.Body)
		return l, err
	}
	parts := multipart.NewReader(m.Body, with["boundary"])
	for {
		p, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return l, nil
		}
		if err != nil {
			return Letter{}, err
		}
		text, err := quoted(p)
		if err != nil {
			return Letter{}, err
		}
		if strings.HasPrefix(p.Header.Get("Content-Type"), "text/html") {
			l.HTML = text
		} else {
			l.Text = text
		}
	}
}

// quoted decodes the body of a part, with the ends of lines of this machine.
func quoted(r io.Reader) (string, error) {
	text, err := io.ReadAll(quotedprintable.NewReader(r))
	return strings.ReplaceAll(string(text), "\r\n", "\n"), err
}

func bare(h netmail.Header, name string) (string, error) {
	a, err := netmail.ParseAddress(h.Get(name))
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return a.Address, nil
}
