package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/output"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/client"
)

// rehearse shows a task as it would be filed, and files none. Its inputs are judged as the server judges them; that
// there are its repository, which takes tasks, and its template is asked; whether there is room in the queue is not.
func rehearse(ctx context.Context, o *output.Flags, in map[string]any) error {
	b, err := object.Encode(in)
	if err != nil {
		return err
	}
	if wrong := capability.One("task.create").Check(b); wrong != nil {
		return &client.Problem{Type: "/problems/invalid", Status: http.StatusBadRequest, Detail: "The request has invalid fields.",
			Errors: wrong}
	}
	c, err := signin.Connect()
	if err != nil {
		return err
	}
	owner, name, _ := strings.Cut(in["repo"].(string), "/")
	var repo struct {
		Enabled bool `json:"enabled"`
	}
	if err := c.Call(ctx, http.MethodGet, "/v1/repos/"+url.PathEscape(owner)+"/"+url.PathEscape(name), nil, &repo); err != nil {
		return err
	}
	if !repo.Enabled {
		return fmt.Errorf("%s takes no tasks: yardmaster repo enable %s", owner+"/"+name, client.Word(owner+"/"+name))
	}
	if template := object.Text(in["template"]); template != "" {
		if err := c.Call(ctx, http.MethodGet, "/v1/templates/"+url.PathEscape(template), nil, nil); err != nil {
			return err
		}
	}
	if o.ForPrograms() {
		return o.Print(os.Stdout, b)
	}
	show := &noun.Noun{Name: "task", Hidden: []string{"problem"}}
	if err := noun.WithNames(ctx, c, func(w io.Writer, b []byte) error { return show.View(w, b) })(os.Stdout, b); err != nil {
		return err
	}
	fmt.Println()
	screen.Paragraph(os.Stdout, object.Text(in["problem"]))
	screen.Afterword("Nothing was filed: without --dry-run it is.")
	return nil
}
