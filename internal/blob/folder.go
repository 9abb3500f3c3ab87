package blob

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"yardmaster/internal/durable"
	"yardmaster/internal/seal"
)

// Folder keeps objects as files. The file of an object begins with a line that is its
// media type; the bytes follow. Its name is the key and "~", which no key has, so that
// a file is never where another key needs a folder.
type Folder struct {
	root string
	base string
	ring *seal.Keyring
	now  func() time.Time

	// Signed is told of each request whose address is signed, before its body is read, with the
	// key of its object; what it fails with is answered. Nil: nobody is told.
	Signed func(ctx context.Context, key string) error
	// Stored is told of each object that came by an address. Nil: nobody is told.
	Stored func(ctx context.Context, key string)

	taking sync.Map // the keys of the uploads under way
}

// Path is the beginning of the paths under which a Folder serves its objects.
const Path = "/blob/"

// NewFolder makes a Folder at root, which it creates when the first object comes. Its
// addresses begin with base, say https://yardmaster.example.com, are signed with ring
// and expire by now.
func NewFolder(root, base string, ring *seal.Keyring, now func() time.Time) *Folder {
	return &Folder{root: root, base: strings.TrimSuffix(base, "/"), ring: ring, now: now}
}

func (f *Folder) path(key string) string { return filepath.Join(f.root, filepath.FromSlash(key)) + "~" }

// Put implements Store.
func (f *Folder) Put(ctx context.Context, key string, r io.Reader, size int64, mediaType string) error {
	if err := errors.Join(checkPut(key, size, mediaType), ctx.Err()); err != nil {
		return err
	}
	path := f.path(key)
	if err := durable.Folder(filepath.Dir(path)); err != nil {
		return fmt.Errorf("store object %s: %w", key, err)
	}
	text := io.MultiReader(strings.NewReader(mediaType+"\n"), &exactly{r: reading{ctx, r}, left: size})
	if err := durable.Stream(path, partial+"*", text); err != nil {
		return fmt.Errorf("store object %s: %w", key, err)
	}
	return nil
}

// reading reads until ctx ends.
type reading struct {
	ctx context.Context
	r   io.Reader
}

func (r reading) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// object is an open object.
type object struct {
	*io.SectionReader
	file *os.File
}

func (o object) Close() error { return o.file.Close() }

// open opens an object. It fails with ErrNotFound.
func (f *Folder) open(key string) (o object, i Info, err error) {
	if err := checkKey(key); err != nil {
		return o, i, err
	}
	file, err := os.Open(f.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return o, i, ErrNotFound
	}
	if err != nil {
		return o, i, fmt.Errorf("open object %s: %w", key, err)
	}
	about, err := file.Stat()
	var line string
	if err == nil {
		line, err = bufio.NewReader(io.LimitReader(file, 512)).ReadString('\n')
	}
	if err != nil {
		return o, i, errors.Join(fmt.Errorf("read object %s: %w", key, err), file.Close())
	}
	head := int64(len(line))
	i = Info{Size: about.Size() - head, Type: strings.TrimSuffix(line, "\n"), At: about.ModTime()}
	return object{io.NewSectionReader(file, head, i.Size), file}, i, nil
}

// Get implements Store.
func (f *Folder) Get(_ context.Context, key string) (io.ReadCloser, Info, error) {
	o, i, err := f.open(key)
	if err != nil {
		return nil, i, err
	}
	return o, i, nil
}

// Stat implements Store.
func (f *Folder) Stat(_ context.Context, key string) (Info, error) {
	o, i, err := f.open(key)
	if err != nil {
		return i, err
	}
	return i, o.Close()
}

// Delete implements Store.
func (f *Folder) Delete(_ context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	path := f.path(key)
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = durable.Name(path)
	}
	if err != nil {
		return fmt.Errorf("delete object %s: %w", key, err)
	}
	return nil
}

// Tidy removes what uploads have left that began before a time and were cut off by the end
// of the program.
func (f *Folder) Tidy(ctx context.Context, before time.Time) error {
	err := filepath.WalkDir(f.root, func(path string, e fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || e.IsDir() || !strings.HasPrefix(e.Name(), partial) {
			return err
		}
		about, err := e.Info()
		if err == nil && about.ModTime().Before(before) {
			err = os.Remove(path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// partial begins the name of a file that is being written. No file of an object has it.
const partial = ".put-"

// Close implements Store.
func (f *Folder) Close() error { return nil }

// The parameters of an address.
const (
	paramExpires = "expires" // Unix seconds
	paramName    = "name"    // of the file; GET only
	paramShow    = "show"    // GET only: the type under which a browser shows it
	paramSize    = "size"    // PUT only
	paramType    = "type"    // PUT only
	paramSign    = "signature"
)

// purpose keeps the signatures of addresses apart from all others.
const purpose = "blob-address/"

// statement is the text that is signed for an address: everything that the address
// says.
func statement(key string, q url.Values) []byte {
	all := url.Values{}
	for name, values := range q {
		if name != paramSign {
			all[name] = values
		}
	}
	return []byte(key + "\n" + all.Encode())
}

func (f *Folder) address(method, key string, ttl time.Duration, q url.Values) string {
	q.Set(paramExpires, strconv.FormatInt(f.now().Add(ttl).Unix(), 10))
	q.Set(paramSign, hex.EncodeToString(f.ring.Sign(purpose+method, statement(key, q))))
	return f.base + Path + key + "?" + q.Encode()
}

// PresignGet implements Store.
func (f *Folder) PresignGet(_ context.Context, key, name string, ttl time.Duration) (string, error) {
	if err := errors.Join(checkKey(key), checkTTL(ttl)); err != nil {
		return "", err
	}
	return f.address("GET", key, ttl, url.Values{paramName: {name}}), nil
}

// PresignShow implements Store.
func (f *Folder) PresignShow(ctx context.Context, key, name, mediaType string, ttl time.Duration) (string, error) {
	show := shown(mediaType)
	if show == "" {
		return f.PresignGet(ctx, key, name, ttl)
	}
	if err := errors.Join(checkKey(key), checkTTL(ttl)); err != nil {
		return "", err
	}
	return f.address("GET", key, ttl, url.Values{paramName: {name}, paramShow: {show}}), nil
}

// PresignPut implements Store.
func (f *Folder) PresignPut(_ context.Context, key string, size int64, mediaType string, ttl time.Duration) (string, error) {
	if err := errors.Join(checkPut(key, size, mediaType), checkTTL(ttl)); err != nil {
		return "", err
	}
	return f.address("PUT", key, ttl, url.Values{paramSize: {strconv.FormatInt(size, 10)}, paramType: {mediaType}}), nil
}

// harmless are the media types that are named as they are when an object is served.
// Every other one, such as text/html, is served as bytes without a meaning.
var harmless = map[string]bool{
	"text/plain": true, "application/json": true, "application/pdf": true, "application/zip": true, "application/gzip": true,
	"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true, "video/mp4": true, "video/webm": true,
}

// served is the Content-Type of an object that has a media type.
func served(mediaType string) string {
	plain, _, err := mime.ParseMediaType(mediaType)
	switch {
	case err != nil || !harmless[plain]:
		return "application/octet-stream"
	case plain == "text/plain":
		return "text/plain; charset=utf-8"
	}
	return plain
}
