// Package bundle is a whole release in one file, for machines that no network reaches: a tar of its
// SHA256SUMS, their signature and each file that they name. Whoever has a release can make its
// bundle, since the signature is the release's own. No byte of it is free: a reader makes it a second
// time out of what was signed, and takes nothing that differs.
//
//   - bundle.go: what a bundle is, and how one is read
//   - make.go: how one is made of the folder of a release
//   - programs.go: what boxes run, out of a bundle
package bundle

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/lazy"
	"yardmaster/internal/minisign"
	"yardmaster/internal/version"
)

// What begins a bundle.
const (
	Sums      = "SHA256SUMS"
	signature = Sums + ".minisig"
)

// Untrusted is what a release says in each signature where nothing is signed.
const Untrusted = "signature of Yardmaster"

const maxText = 1 << 20 // bytes of the sums

// Of is what is signed in the comment of a file's signature.
func Of(name, version string) string { return "yardmaster file:" + name + " version:" + version }

var (
	plain = lazy.New(`^[A-Za-z0-9][A-Za-z0-9._+~-]{0,127}$`)
	line  = lazy.New(`^([0-9a-f]{64})  (.+)$`)
)

// at is when all in a bundle was made, so that the time of its making changes no byte of it.
var at = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// File is a file of a release, with its digest in hexadecimal digits.
type File struct{ Name, SHA256 string }

// Release is what its signature says of a release.
type Release struct {
	Version string
	Files   []File
}

// Folder is the one folder of a bundle.
func (r Release) Folder() string { return "yardmaster_" + strings.TrimPrefix(r.Version, "v") }

// signed reads what the sums say, which must be signed by one of keys.
func signed(keys []minisign.Key, sums, text []byte) (out Release, err error) {
	digest, err := minisign.Digest(bytes.NewReader(sums))
	if err != nil {
		return out, err
	}
	said, err := minisign.Verify(keys, digest, string(text))
	if err != nil {
		return out, fmt.Errorf("the signature of %s does not hold: %w", Sums, err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	if first != "untrusted comment: "+Untrusted || !bytes.HasSuffix(text, []byte("\n")) {
		return out, fmt.Errorf("%s is not as a release writes it", signature)
	}
	var ok bool
	if out.Version, ok = strings.CutPrefix(said, Of(Sums, "")); !ok || !version.Valid(out.Version) {
		return out, fmt.Errorf("what was signed is no release: %q", said)
	}
	for text := range strings.Lines(string(sums)) {
		m := line.FindStringSubmatch(strings.TrimSuffix(text, "\n"))
		switch {
		case m == nil:
			return out, fmt.Errorf("%s has a line that is no sum: %.200q", Sums, text)
		case !plain.MatchString(m[2]):
			return out, fmt.Errorf("%s names a file with a path outside: %.200q", Sums, m[2])
		case m[2] == Sums || m[2] == signature || slices.ContainsFunc(out.Files, func(f File) bool { return f.Name == m[2] }):
			return out, fmt.Errorf("%s names %s twice", Sums, m[2])
		}
		out.Files = append(out.Files, File{Name: m[2], SHA256: m[1]})
	}
	return out, nil
}

// head is the only head that a file of a bundle may have.
func (r Release) head(name string, size int64) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: r.Folder() + "/" + name, Mode: 0o644, Size: size, ModTime: at, Format: tar.FormatUSTAR}
}

// Check reads a whole bundle, which must be by one of keys, and answers what it is of.
func Check(path string, keys []minisign.Key) (Release, error) {
	return read(path, keys, func(string) (io.WriteCloser, error) { return nil, nil })
}

// Is tells whether a file may be a bundle, and is no program.
func Is(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	begin := make([]byte, 512)
	n, err := io.ReadFull(f, begin)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return false, err
	}
	return n == len(begin) && string(begin[257:262]) == "ustar", nil
}

// Open checks a whole bundle and then puts its files into a folder that is empty or not there. One
// of an older version than this program is refused, unless older is taken as well. If it fails,
// nothing is left of it.
func Open(path string, keys []minisign.Key, into string, older bool) (Release, error) {
	if older {
		return open(path, keys, into, "")
	}
	return open(path, keys, into, version.Own)
}

// Keys are public keys of minisign, by their texts.
func Keys(texts []string) (out []minisign.Key, err error) {
	for _, text := range texts {
		k, err := minisign.ParseKey(text)
		if err != nil {
			return nil, fmt.Errorf("%.80q is no public key of minisign", text)
		}
		out = append(out, k)
	}
	return out, nil
}

// open is Open in a program of the version own.
func open(path string, keys []minisign.Key, into, own string) (out Release, err error) {
	if there, err := os.ReadDir(into); err == nil && len(there) > 0 || err != nil && !errors.Is(err, os.ErrNotExist) {
		return out, errors.Join(fmt.Errorf("%s is no empty folder", into), err)
	}
	if out, err = Check(path, keys); err != nil {
		return out, err
	}
	if version.After(own, out.Version) {
		return out, fmt.Errorf("%s is refused: it is of %s, which is older than this program, %s", path, out.Version, own)
	}
	if err := os.MkdirAll(into, 0o755); err != nil {
		return out, err
	}
	var made []string
	defer func() {
		for _, name := range made {
			if err != nil {
				err = errors.Join(err, os.Remove(name))
			}
		}
	}()
	return read(path, keys, func(name string) (io.WriteCloser, error) {
		name = filepath.Join(into, name)
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err == nil {
			made = append(made, name)
		}
		return f, err
	})
}

// reader reads a bundle and makes it a second time.
type reader struct {
	keys    []minisign.Key
	is      Release
	in      *tar.Reader
	again   *tar.Writer
	into    func(name string) (io.WriteCloser, error)
	started bool
}

// read reads a bundle file by file into what into answers for each; nil: into nothing.
func read(path string, keys []minisign.Key, into func(name string) (io.WriteCloser, error)) (out Release, err error) {
	f, err := os.Open(path)
	if err != nil {
		return out, err
	}
	defer f.Close()
	seen, made := sha256.New(), sha256.New()
	all := io.TeeReader(f, seen)
	r := reader{keys: keys, in: tar.NewReader(all), again: tar.NewWriter(made), into: into}
	if err := r.whole(); err != nil {
		return out, fmt.Errorf("%s is refused: %w", path, err)
	}
	if _, err := io.Copy(io.Discard, all); err != nil {
		return out, err
	}
	if err := r.again.Close(); err != nil {
		return out, err
	}
	if !bytes.Equal(seen.Sum(nil), made.Sum(nil)) {
		return out, fmt.Errorf("%s is refused: it has bytes that nobody has signed", path)
	}
	return r.is, nil
}

func (r *reader) whole() error {
	sums, err := r.text(Sums)
	if err != nil {
		return err
	}
	text, err := r.text(signature)
	if err != nil {
		return err
	}
	folder := r.is.Folder()
	if r.is, err = signed(r.keys, sums, text); err != nil {
		return err
	}
	if r.is.Folder() != folder {
		return fmt.Errorf("it calls itself %s and was signed as %s", folder, r.is.Version)
	}
	if err := errors.Join(r.kept(Sums, sums), r.kept(signature, text)); err != nil {
		return err
	}
	for _, f := range r.is.Files {
		if err := r.file(f); err != nil {
			return err
		}
	}
	if h, err := r.in.Next(); !errors.Is(err, io.EOF) {
		return errors.Join(errors.New("it has something that nobody has signed"), err, named(h))
	}
	return nil
}

func named(h *tar.Header) error {
	if h == nil {
		return nil
	}
	return fmt.Errorf("%.200q", h.Name)
}

// next goes to the next file, which must be the one that comes next.
func (r *reader) next(name string) (*tar.Header, error) {
	h, err := r.in.Next()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("it ends before %s", name)
	}
	if err != nil {
		return nil, fmt.Errorf("it is no bundle: %w", err)
	}
	if !r.started { // the version, which is believed once the sums have said so
		r.started = true
		folder, _, _ := strings.Cut(h.Name, "/")
		r.is.Version = "v" + strings.TrimPrefix(folder, "yardmaster_")
	}
	if want := r.is.head(name, h.Size); h.Name != want.Name || h.Typeflag != tar.TypeReg {
		return nil, fmt.Errorf("it has %.200q where %s belongs", h.Name, want.Name)
	}
	return h, r.again.WriteHeader(r.is.head(name, h.Size))
}

func (r *reader) text(name string) ([]byte, error) {
	h, err := r.next(name)
	if err != nil {
		return nil, err
	}
	if h.Size > maxText {
		return nil, fmt.Errorf("%s is too long", name)
	}
	return io.ReadAll(io.TeeReader(r.in, r.again))
}

func (r *reader) kept(name string, content []byte) error {
	out, err := r.into(name)
	if out == nil || err != nil {
		return err
	}
	_, err = out.Write(content)
	return errors.Join(err, out.Close())
}

func (r *reader) file(f File) (err error) {
	if _, err := r.next(f.Name); err != nil {
		return err
	}
	sum := sha256.New()
	to := io.MultiWriter(sum, r.again)
	out, err := r.into(f.Name)
	if err != nil {
		return err
	}
	if out != nil {
		defer func() { err = errors.Join(err, out.Close()) }()
		to = io.MultiWriter(sum, r.again, out)
	}
	if _, err := io.Copy(to, r.in); err != nil {
		return fmt.Errorf("%s is not whole: %w", f.Name, err)
	}
	if hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
		return fmt.Errorf("%s is not what was signed", f.Name)
	}
	return nil
}
