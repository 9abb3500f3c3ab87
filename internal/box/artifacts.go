package box

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"yardmaster/internal/protocol"
	"yardmaster/internal/proxies"
)

// artifactsDir is the folder in an agent's home for files that are stored as artifacts when the
// run is over: pictures, texts. ArtifactsVariable names it.
const artifactsDir = "artifacts"

// ArtifactsVariable is the environment variable with the path of that folder.
const ArtifactsVariable = "YARDMASTER_ARTIFACTS"

// storeArtifacts stores what the agent has left in its folder. No process of the agent runs any
// more, but what it left may be hostile: no link is followed out of the home, and names, types,
// sizes and numbers are bound. What is not stored is told in the run's events.
func (b *box) storeArtifacts(a *attempt) {
	if a.start.Mute {
		return
	}
	home, names := a.left(artifactsDir)
	if home == nil {
		return
	}
	defer home.Close()
	ctx, cancel := b.cfg.clock.WithTimeout(a.killed, b.cfg.Timing.Wrap)
	defer cancel()
	for i, name := range names {
		err := errors.New("is one of more than " + fmt.Sprint(protocol.MaxArtifacts) + " files")
		if i < protocol.MaxArtifacts {
			err = b.storeArtifact(ctx, a, home, name)
		}
		if err != nil {
			a.log.Warn("an artifact is not stored", "error", err)
			a.event(protocol.EventRefused, protocol.OutboxRefused{
				File: artifactsDir + "/" + strings.ToValidUTF8(name, "?"), Reason: err.Error(),
			})
		}
		if i >= protocol.MaxArtifacts {
			return // one line says so of all the others
		}
	}
}

// storeArtifact stores one file of the folder.
func (b *box) storeArtifact(ctx context.Context, a *attempt, home *os.Root, name string) error {
	kind := protocol.ArtifactTypes[strings.ToLower(path.Ext(name))]
	switch {
	case kind == "":
		return errors.New("is of no type that is stored")
	case len(name) > 200 || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) || strings.TrimSpace(name) != name:
		return errors.New("has a name that is not stored")
	case a.secrets.String(name) != name:
		return errors.New("has a secret in its name")
	}
	data, err := readLeft(home, path.Join(artifactsDir, name), protocol.MaxArtifactBytes)
	if err != nil {
		return err
	}
	if data, err = a.harmless(kind, data); err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	var place protocol.ArtifactPlace
	err = b.conn.Call(ctx, protocol.CallArtifact, protocol.ArtifactAsk{
		Run: a.start.Run, Attempt: a.start.Attempt, Name: name, Type: kind, Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:]),
	}, &place)
	if err != nil {
		return fmt.Errorf("is not taken: %w", err)
	}
	return upload(ctx, place, data)
}

// harmless is what is stored of a file: a text without the secrets of the attempt, or a picture
// that is one and has none.
func (a *attempt) harmless(kind string, data []byte) ([]byte, error) {
	if !strings.HasPrefix(kind, "image/") {
		return a.secrets.Bytes(bytes.ToValidUTF8(data, []byte("\ufffd"))), nil
	}
	switch {
	case http.DetectContentType(data) != kind:
		return nil, errors.New("is not the picture that its name says")
	case !bytes.Equal(a.secrets.Bytes(bytes.Clone(data)), data):
		return nil, errors.New("has a secret in it")
	}
	return data, nil
}

// upload sends bytes to the address that the control plane has named. Its errors do not say the
// address, which is a credential.
func upload(ctx context.Context, place protocol.ArtifactPlace, data []byte) error {
	proxies.SpareServer(ctx, place.URL)
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, place.URL, bytes.NewReader(data))
	if err != nil {
		return errors.New("is not taken: the address for it is none")
	}
	for name, value := range place.Headers {
		req.Header.Set(name, value)
	}
	direct := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := direct.Do(req)
	if err != nil {
		return errors.New("did not reach where it is stored")
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return errors.New("is not taken: " + resp.Status)
	}
	return nil
}
