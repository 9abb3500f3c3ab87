package artifact

import (
	"context"
	"errors"
	"log/slog"
	"mime"
	"strings"
	"time"
	"unicode"

	"yardmaster/internal/api/op"
	"yardmaster/internal/blob"
	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/observe"
	"yardmaster/internal/policy"
)

const group = "CI runs and artifacts"

// Ops lists the capabilities of artifacts.
func (s *Service) Ops() []op.Op {
	read, write := policy.Require(policy.ReadArtifacts), policy.Require(policy.WriteArtifacts)
	away := op.Refusal{Status: 503, Slug: "object-store-unavailable"}
	missing := op.Refusal{Status: 404, Slug: "not-found"}
	return []op.Op{
		op.New(op.Row{ID: "artifact.list", Method: "GET", Path: "/v1/artifacts", Group: group, Rule: read,
			Paging: &op.Paging{Default: 50, Max: 200, Uncursored: true, Filters: map[string][]string{
				"run_id": nil, "task_id": nil, "repo_id": nil,
			}},
			Summary: "The artifacts of the account, newest first",
			Doc: "Those whose bytes have arrived. Filters narrow the list to a run, a task or a repository, by its id. There is no " +
				"cursor: a filter finds what is older."}, s.list),
		op.New(op.Row{ID: "artifact.put", Method: "POST", Path: "/v1/artifacts", Group: group, Rule: write, Status: 201, NoStore: true,
			Refuses: []op.Refusal{missing, {Status: 503, Slug: "no-object-store"}},
			Summary: "Record an artifact, and get an address to store its bytes at",
			Doc: "Send the bytes by PUT to upload_url, with the headers of upload_headers and exactly the Content-Length of size. The " +
				"address takes them once, within an hour. The artifact shows when they have arrived, and is forgotten when they have not " +
				"within a day. One of a run belongs to its task and its repository, one of a task to its repository. It is kept for 30 " +
				"days with the visibility run, and else for 180, unless the operator says otherwise."}, s.put),
		op.New(op.Row{ID: "artifact.get", Method: "GET", Path: "/v1/artifacts/{id}/url", Group: group, Rule: read, NoStore: true,
			Refuses: []op.Refusal{missing, away},
			Summary: "An artifact, and an address that answers its bytes for five minutes",
			Doc: "The address answers a file to save. There is one 404 for an artifact that is unknown or of another account, whose " +
				"bytes never arrived, or that is gone."}, s.get),
		op.New(op.Row{ID: "artifact.share", Method: "POST", Path: "/v1/artifacts/{id}/share", Group: group, Rule: write, NoStore: true,
			Refuses: []op.Refusal{missing, {Status: 409, Slug: "bytes-missing"}, away},
			Summary: "Make a link by which anybody can have an artifact",
			Doc: "The link needs no credential and ends after expires_in_days, or with the artifact. Another call makes another link; a " +
				"deletion ends all. Browsers show plain texts and pictures, in a sandbox, and save all else as a file. The owners and " +
				"admins of the account are told."}, s.share),
		op.New(op.Row{ID: "artifact.delete", Method: "DELETE", Path: "/v1/artifacts/{id}", Group: group, Rule: write,
			Summary: "Delete an artifact and its bytes",
			Doc:     "Addresses and links of it answer nothing from then on. Deleting what is not there answers deleted false."},
			s.delete),
		op.New(op.Row{ID: "artifact.open", Method: "GET", Path: "/artifacts/{token}", Group: group, Rule: policy.Public(), Status: 303,
			PerAddress: 60,
			Refuses:    []op.Refusal{missing, {Status: 410, Slug: "artifact-link-expired"}, away},
			Summary:    "The link of a shared artifact",
			Doc: "Leads to an address of the bytes that is good for five minutes. A link that was changed, and one of an artifact that " +
				"is gone, answer the same."}, s.open),
	}
}

// Artifact is an artifact as the API shows it.
type Artifact struct {
	_           struct{}   `doc:"Something that was stored besides code." schema:"Artifact"`
	ID          string     `json:"id" format:"uuid" doc:"id of the artifact"`
	Name        string     `json:"name" example:"coverage.txt" doc:"name of the file"`
	ContentType string     `json:"content_type" example:"text/plain" doc:"media type, as whoever stored it says"`
	Size        int64      `json:"size" example:"48211" doc:"in bytes"`
	SHA256      *string    `json:"sha256" example:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" doc:"digest of the bytes, as whoever stored it says; null: nobody said"`
	Visibility  Visibility `json:"visibility" doc:"run and account: the members of the account; public: whoever has a link, too"`
	RunID       *string    `json:"run_id" format:"uuid" doc:"the run that made it; null: none did"`
	TaskID      *string    `json:"task_id" format:"uuid" doc:"the task that it belongs to; null: none"`
	RepoID      *string    `json:"repo_id" format:"uuid" doc:"the repository that it belongs to; null: none"`
	CreatedBy   string     `json:"created_by" example:"user:0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"who recorded it"`
	CreatedAt   time.Time  `json:"created_at" doc:"when it was recorded"`
	StoredAt    *time.Time `json:"stored_at" doc:"when its bytes had arrived; null: not yet"`
	SharedUntil *time.Time `json:"shared_until" doc:"when its last link ends; null: it was never shared"`
	ExpiresAt   time.Time  `json:"expires_at" doc:"when it is deleted"`
}

func (r row) wire() Artifact {
	var digest *string
	if r.SHA256 != "" {
		digest = &r.SHA256
	}
	return Artifact{
		ID: r.ID, Name: r.Name, ContentType: r.MediaType, Size: r.Size, SHA256: digest, Visibility: Visibility(r.Visibility),
		RunID:  r.RunID,
		TaskID: r.TaskID, RepoID: r.RepoID, CreatedBy: r.CreatedBy, CreatedAt: r.CreatedAt, StoredAt: r.StoredAt,
		SharedUntil: r.SharedUntil, ExpiresAt: r.ExpiresAt,
	}
}

type listIn struct{ op.PageIn }

func (s *Service) list(ctx context.Context, in listIn) (out op.Bounded[Artifact], err error) {
	for _, name := range []string{"run_id", "task_id", "repo_id"} {
		if want := in.Want(name); want != "" && !id.Valid(want) {
			return out, fault.Field("filter", name+" must be an id")
		}
	}
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		rows, err := list(tx, in.PageIn)
		all := make([]Artifact, len(rows))
		for i, r := range rows {
			all[i] = r.wire()
		}
		out = op.NewBounded(in.PageIn, all)
		return err
	})
	return out, err
}

type putIn struct {
	Name        string  `json:"name" minLength:"1" maxLength:"200" example:"coverage.txt" doc:"name of the file, without a path"`
	ContentType string  `json:"content_type" maxLength:"200" example:"text/plain" doc:"media type of the bytes"`
	Size        int64   `json:"size" minimum:"0" maximum:"5368709120" example:"48211" doc:"of the bytes"`
	SHA256      string  `json:"sha256,omitempty" pattern:"^([0-9a-f]{64})?$" says:"must be 64 hexadecimal digits" example:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" doc:"digest of the bytes, for whoever reads them; it is not checked here"`
	Visibility  string  `json:"visibility,omitempty" enum:"run,account" doc:"run unless sent, if there is a run_id, and else account"`
	RunID       *string `json:"run_id,omitempty" example:"null" doc:"the run that it is of"`
	TaskID      *string `json:"task_id,omitempty" example:"null" doc:"the task that it belongs to; a run has its own"`
	RepoID      *string `json:"repo_id,omitempty" example:"null" doc:"the repository that it belongs to; a task has its own"`
}

// Upload is where the bytes of an artifact are to be sent.
type Upload struct {
	_ struct{} `doc:"An artifact that waits for its bytes." schema:"ArtifactUpload"`
	Artifact
	UploadURL       string            `json:"upload_url" format:"uri" example:"https://yardmaster.example.com/blob/0199d3a4/artifacts/0199d3a5?expires=1790000000&signature=5f2c" doc:"takes the bytes by PUT, once, without a credential; it is one itself"`
	UploadHeaders   map[string]string `json:"upload_headers" example:"{\"Content-Type\":\"text/plain\",\"If-None-Match\":\"*\"}" doc:"what the PUT must have"`
	UploadExpiresAt time.Time         `json:"upload_expires_at" doc:"when the address ends"`
}

// check refuses what an artifact cannot be called.
func check(name, mediaType string) error {
	switch plain, _, err := mime.ParseMediaType(mediaType); {
	case strings.ContainsAny(name, `/\`) || strings.ContainsFunc(name, unicode.IsControl) || strings.TrimSpace(name) != name || name == "":
		return fault.Field("name", "must be the name of a file, without a path and without control characters")
	case err != nil || strings.Count(plain, "/") != 1:
		return fault.Field("content_type", "must be a media type")
	}
	return nil
}

func (s *Service) put(ctx context.Context, in putIn) (out Upload, err error) {
	if err := check(in.Name, in.ContentType); err != nil {
		return out, err
	}
	if _, off := s.Objects.(blob.Off); off {
		return out, fault.New(fault.Unavailable, "no-object-store", "This server keeps no objects. Its operator has to say with blob where they go.")
	}
	r := row{
		Name: in.Name, MediaType: in.ContentType, Size: in.Size, SHA256: in.SHA256, Visibility: in.Visibility,
		RunID: in.RunID, TaskID: in.TaskID, RepoID: in.RepoID,
	}
	if r.Visibility == "" {
		if r.Visibility = Account; r.RunID != nil {
			r.Visibility = OfRun
		}
	}
	if r.Visibility == OfRun && r.RunID == nil {
		return out, fault.Field("visibility", "run needs a run_id")
	}
	return s.record(ctx, r, policy.From(ctx).Label())
}

// record makes the row of an artifact, and the address of its upload.
func (s *Service) record(ctx context.Context, r row, by string) (out Upload, err error) {
	var key string
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		r := r
		if err := s.place(tx, &r); err != nil {
			return err
		}
		r.ID, r.AccountID, r.CreatedBy, r.CreatedAt = id.New(), tx.Account, by, tx.Now
		r.ExpiresAt = tx.Now.Add(s.life(r.Visibility))
		key = r.key()
		if err := bounded(tx, &r, by); err != nil {
			return err
		}
		if err := s.add(tx, r); err != nil {
			return err
		}
		out = Upload{Artifact: r.wire(), UploadHeaders: blob.Upload(r.MediaType), UploadExpiresAt: tx.Now.Add(uploadLife)}
		return recordedEvent.Record(tx, r.subject(), putData{
			Name: r.Name, Size: r.Size, MediaType: r.MediaType, Visibility: r.Visibility, RunID: r.RunID,
		})
	})
	if err != nil {
		return Upload{}, err
	}
	out.UploadURL, err = s.Objects.PresignPut(ctx, key, r.Size, r.MediaType, uploadLife)
	return out, err
}

// place finds what an artifact belongs to. What is unknown, foreign or malformed is the same
// fault.NotFound; what contradicts the run or the task is refused by its name.
func (s *Service) place(tx *db.Tx, r *row) error {
	belongs := func(name, noun string, to **string, is string) error {
		if *to != nil && **to != is {
			return fault.Field(name, "is not that of the "+noun)
		}
		*to = &is
		return nil
	}
	if r.RunID != nil {
		taskID, repoID, ok := "", "", false
		var err error
		if id.Valid(*r.RunID) {
			taskID, repoID, ok, err = s.Places.Run(tx, *r.RunID)
		}
		if err == nil && !ok {
			err = fault.Missing("run")
		}
		if err != nil {
			return err
		}
		if err := belongs("task_id", "run", &r.TaskID, taskID); err != nil {
			return err
		}
		return belongs("repo_id", "run", &r.RepoID, repoID)
	}
	if r.TaskID != nil {
		repoID, ok := "", false
		var err error
		if id.Valid(*r.TaskID) {
			repoID, ok, err = s.Places.Task(tx, *r.TaskID)
		}
		if err == nil && !ok {
			err = fault.Missing("task")
		}
		if err != nil {
			return err
		}
		return belongs("repo_id", "task", &r.RepoID, repoID)
	}
	if r.RepoID != nil {
		ok := false
		var err error
		if id.Valid(*r.RepoID) {
			ok, err = s.Places.Repo(tx, *r.RepoID)
		}
		if err == nil && !ok {
			err = fault.Missing("repository")
		}
		return err
	}
	return nil
}

type idIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the artifact"`
}

// Download is an artifact and where its bytes are had.
type Download struct {
	_ struct{} `doc:"An artifact, and an address of its bytes." schema:"ArtifactDownload"`
	Artifact
	URL          string    `json:"url" format:"uri" example:"https://yardmaster.example.com/blob/0199d3a4/artifacts/0199d3a5?expires=1790000000&signature=5f2c" doc:"answers the bytes by GET, without a credential; it is one itself"`
	URLExpiresAt time.Time `json:"url_expires_at" doc:"when the address ends"`
}

// there reads an artifact whose bytes are there. It fails with fault.NotFound for any other.
func (s *Service) there(ctx context.Context, artifactID string) (r row, now time.Time, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		now = tx.Now
		r, err = find(tx, byID, artifactID)
		return err
	})
	if err != nil {
		return r, now, err
	}
	ok, err := s.present(ctx, r)
	if err == nil && !ok {
		err = fault.Missing("artifact")
	}
	if err == nil && r.StoredAt == nil {
		r.StoredAt = &now
	}
	return r, now, err
}

func (s *Service) get(ctx context.Context, in idIn) (out Download, err error) {
	r, now, err := s.there(ctx, in.ID)
	if err != nil {
		return out, err
	}
	out = Download{Artifact: r.wire(), URLExpiresAt: now.Add(readLife)}
	out.URL, err = s.Objects.PresignGet(ctx, r.key(), r.Name, readLife)
	return out, err
}

// DeletedArtifact is the answer of artifact.delete.
type DeletedArtifact struct {
	_       struct{} `doc:"What artifact.delete did." schema:"DeletedArtifact"`
	Deleted bool     `json:"deleted" doc:"false: there was none"`
}

func (s *Service) delete(ctx context.Context, in idIn) (out DeletedArtifact, err error) {
	var r row
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		out = DeletedArtifact{}
		if !id.Valid(in.ID) {
			return nil
		}
		var ok bool
		if r, ok, err = lockAny.Maybe(tx, tx.Account, in.ID); err != nil || !ok {
			return err
		}
		out.Deleted, err = s.conceal(tx, in.ID, asked)
		return err
	})
	if err == nil && out.Deleted {
		if err := s.erase(context.WithoutCancel(ctx), r); err != nil && !errors.Is(err, blob.ErrHeld) {
			observe.Complain(ctx, s.Logger, "delete the bytes of an artifact", err, slog.String("artifact", in.ID))
		}
	}
	return out, err
}
