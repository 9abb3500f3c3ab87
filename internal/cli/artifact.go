package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/act"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/output"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
)

// artifactCommands are about what is kept besides code.
func artifactCommands() []tree.Command {
	artifact := noun.Called("artifact")
	return append([]tree.Command{
		artifact.ListCommand("the newest artifacts", "yardmaster artifact list", "yardmaster artifact list --repo acme/web"),
		{Words: "artifact get", Args: "ID", Summary: "save an artifact as a file, and compare its size and digest", Of: artifact,
			Answers: "artifact.get", Define: defineArtifactGet,
			Examples: []string{"yardmaster artifact get @last", "yardmaster artifact get shot.png --to /tmp/shot.png"}},
		{Words: "artifact put", Args: "FILE", Summary: "store a file", Answers: "artifact.put", Define: defineArtifactPut,
			Examples: []string{"yardmaster artifact put speed.txt --repo acme/web", "yardmaster artifact put shot.png --task @last"}},
	}, act.Commands(
		act.Act{Words: "artifact share", Args: "ID", Summary: "make a link by which anybody can have an artifact", Op: "artifact.share",
			Of: artifact, Done: "Anybody can have it at {url} until {url_expires_at}.", Next: "Undo: yardmaster artifact delete {id}",
			Examples: []string{"yardmaster artifact share @last --expires-in-days 3"}},
		act.Act{Words: "artifact delete", Args: "ID", Summary: "delete an artifact, its bytes and its links", Op: "artifact.delete",
			Of: artifact, Done: "It is deleted.", Next: "yardmaster artifact put FILE stores another.",
			Examples: []string{"yardmaster artifact delete @last"}},
	)...)
}

// stored is an artifact as the API answers it, with the address of its bytes or of their upload.
type stored struct {
	ID            string            `json:"id"`
	Name          string            `json:"name"`
	Size          int64             `json:"size"`
	SHA256        *string           `json:"sha256"`
	URL           string            `json:"url"`
	UploadURL     string            `json:"upload_url"`
	UploadHeaders map[string]string `json:"upload_headers"`
}

func defineArtifactGet(fl *flag.FlagSet) tree.Action {
	to := fl.String("to", "", "`FILE` to write, - for standard output; its own name in the current folder when empty")
	force := fl.Bool("force", false, "write over a file that is there")
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
		var a stored
		done, err := o.Answered(ctx, c, http.MethodGet, "/v1/artifacts/"+url.PathEscape(plain[0])+"/url", nil, &a)
		if done || err != nil {
			return err
		}
		noun.Called("artifact").Seen(a.ID)
		at := *to
		switch {
		case at == "-":
			return a.receive(ctx, os.Stdout)
		case at == "" && (!filepath.IsLocal(a.Name) || filepath.Base(a.Name) != a.Name || strings.HasPrefix(a.Name, ".")):
			return exit.Misused("the artifact is called %q, which is no name for a file here; give --to FILE", client.Inert(a.Name))
		case at == "":
			at = a.Name
		}
		if err := a.save(ctx, at, *force); err != nil {
			return err
		}
		says := "Its digest is what it was when it was stored."
		if a.SHA256 == nil {
			says = "Nobody has said its digest; its size is right."
		}
		screen.Say("%s has %s. %s\n", at, client.Size(a.Size), says)
		return nil
	}
}

// save writes the bytes of an artifact into a file, whole or not at all.
func (a stored) save(ctx context.Context, at string, force bool) error {
	if _, err := os.Lstat(at); err == nil && !force {
		return exit.Misused("%s is there already; give --to FILE, or --force to write over it", client.Inert(at))
	}
	f, err := exit.OfFile(os.CreateTemp(filepath.Dir(at), ".yardmaster-*"))
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // it has another name by then, or is of no use
	if err := errors.Join(a.receive(ctx, f), f.Close()); err != nil {
		return err
	}
	if force {
		return os.Rename(f.Name(), at)
	}
	return os.Link(f.Name(), at) // which fails if there is such a file by now
}

// receive copies the bytes of an artifact, and fails unless they are those that were stored.
func (a stored) receive(ctx context.Context, to io.Writer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.URL, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req) // without the token: the address is enough
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the bytes are not there: %s", resp.Status)
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(resp.Body, a.Size+1))
	switch {
	case err != nil:
		return err
	case n != a.Size:
		return fmt.Errorf("the artifact has %d bytes, and %d came", a.Size, n)
	case a.SHA256 != nil && hex.EncodeToString(sum.Sum(nil)) != *a.SHA256:
		return errors.New("the bytes are not those that were stored: their digest is another one")
	}
	return nil
}

func defineArtifactPut(fl *flag.FlagSet) tree.Action {
	name := fl.String("name", "", "`NAME` of the artifact; that of the file when empty")
	mediaType := fl.String("type", "", "`TYPE` of its bytes, such as text/plain; by the name of the file when empty")
	repo := fl.String("repo", "", "`OWNER/NAME` that it belongs to")
	task := fl.String("task", "", "`ID` of the task that it belongs to")
	run := fl.String("run", "", "`ID` of the run that it is of")
	o := &output.Flags{}
	o.Add(fl)
	return func(ctx context.Context, plain []string) error {
		if err := o.Check(); err != nil {
			return err
		}
		in := map[string]any{"name": *name, "content_type": *mediaType}
		if *name == "" {
			in["name"] = filepath.Base(plain[0])
		}
		if *mediaType == "" {
			in["content_type"] = typeOf(plain[0])
		}
		c, err := signin.Connect()
		if err != nil {
			return err
		}
		if err := belongs(ctx, c, in, *repo, *task, *run); err != nil {
			return err
		}
		f, err := exit.OfFile(os.Open(plain[0]))
		if err != nil {
			return err
		}
		defer f.Close()
		b, err := send(ctx, c, f, in)
		if err != nil {
			return err
		}
		if o.ForPrograms() {
			return o.Print(os.Stdout, b)
		}
		return act.Act{Made: noun.Called("artifact"), Done: "{name} is stored.",
			Next: "Anybody can have it with: yardmaster artifact share {id}; undo: yardmaster artifact delete {id}"}.Say(ctx, c, b, nil, nil)
	}
}

// belongs notes what an artifact belongs to.
func belongs(ctx context.Context, c *client.Client, in map[string]any, repo, task, run string) (err error) {
	if run != "" {
		in["run_id"] = run
	}
	if task != "" {
		if in["task_id"], err = noun.Called("task").Find(ctx, task); err != nil {
			return err
		}
	}
	if repo == "" {
		return nil
	}
	of, err := noun.InRepo(ctx, repo, nil)
	if err == nil {
		in["repo_id"], err = noun.IDOfRepo(ctx, c, of[0].Text, of[1].Text)
	}
	return err
}

// typeOf is the type of a file by its name: those that pages show, and what the system knows.
func typeOf(name string) string {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".txt", ".log", "":
		return "text/plain"
	case ".md":
		return "text/markdown"
	case ".diff", ".patch":
		return "text/x-diff"
	case ".json":
		return "application/json"
	case ".csv":
		return "text/csv"
	}
	if t := mime.TypeByExtension(filepath.Ext(name)); t != "" {
		return t
	}
	return "application/octet-stream"
}

// send records an artifact and sends the bytes of a file to where the server says.
func send(ctx context.Context, c *client.Client, f *os.File, in map[string]any) ([]byte, error) {
	sum := sha256.New()
	size, err := io.Copy(sum, f)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, err
	}
	digest := hex.EncodeToString(sum.Sum(nil))
	in["size"], in["sha256"] = size, digest
	b, err := c.Fetch(ctx, http.MethodPost, "/v1/artifacts", in)
	if err != nil {
		return nil, err
	}
	var a stored
	if err := json.Unmarshal(b, &a); err != nil {
		return nil, err
	}
	again := sha256.New()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, a.UploadURL, hashing{io.LimitReader(f, size), again})
	if err != nil {
		return nil, err
	}
	req.ContentLength = size
	if size == 0 {
		req.Body = http.NoBody
	}
	for name, value := range a.UploadHeaders {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req) // without the token: the address is enough
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16))
	switch {
	case resp.StatusCode/100 != 2:
		return nil, fmt.Errorf("the bytes were not taken: %s", resp.Status)
	case size > 0 && hex.EncodeToString(again.Sum(nil)) != digest:
		return nil, fmt.Errorf("the file was changed while it was sent: delete what was stored with yardmaster artifact delete %s, and store it again", a.ID)
	}
	return b, nil
}

// hashing is a reader that takes the digest of what is read.
type hashing struct {
	io.Reader
	sum hash.Hash
}

func (h hashing) Read(b []byte) (int, error) {
	n, err := h.Reader.Read(b)
	h.sum.Write(b[:n])
	return n, err
}
