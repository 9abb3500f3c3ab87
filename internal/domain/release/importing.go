package release

import (
	"context"
	"fmt"
	"io"
	"os"

	"yardmaster/internal/blob"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/lazy"
	"yardmaster/internal/minisign"
	"yardmaster/internal/protocol"
	"yardmaster/internal/version"
)

// statement is the trusted comment of a program.
var statement = lazy.New(
	`^yardmaster channel:([a-z][a-z0-9-]{0,31}) version:(\S{1,64}) target:([a-z0-9]+/[a-z0-9]+) sha256:([0-9a-f]{64})(?: oldest:(\S{1,64}))?$`)

// Imported is a program that was put into the ledger.
type Imported struct {
	protocol.Update
	Key string // id of the key that signed it
}

// Import puts a program into the ledger and its bytes into the store of objects. Its signature,
// which is beside it in a file of the same name with .minisig, must be by one of keys, and say
// channel, version, target and digest.
func Import(ctx context.Context, d *db.DB, objects blob.Store, keys []string, path string) (out Imported, err error) {
	signature, err := os.ReadFile(path + ".minisig")
	if err != nil {
		return out, err
	}
	of, err := measure(path)
	if err != nil {
		return out, err
	}
	out, signer, err := read(of, keys, string(signature))
	if err != nil {
		return out, err
	}
	f, err := os.Open(path)
	if err != nil {
		return out, err
	}
	defer f.Close()
	if err := objects.Put(ctx, object(out.SHA256), io.Reader(f), out.Size, "application/octet-stream"); err != nil {
		return out, err
	}
	return out, d.Write(ctx, func(tx *db.Tx) error {
		r := row{
			ID: id.New(), Channel: out.Channel, Version: out.Version, Target: out.Target, Size: out.Size, SHA256: out.SHA256,
			Signature: out.Signature, SignedBy: signer.String(), Oldest: out.Oldest, PublishedAt: tx.Now, StoredAt: &tx.Now,
		}
		if n, err := put.Exec(tx, r); err != nil || n == 0 {
			return err // it is there
		}
		return importedEvent.Operated(tx, event.Subject{ID: out.Channel + "/" + out.Version}, importedData{
			Channel: out.Channel, Version: out.Version, Target: out.Target, SHA256: out.SHA256, Key: out.Key,
		}, nil)
	})
}

// read is what a signature says of a program, if it holds.
func read(of sums, keys []string, signature string) (out Imported, signer minisign.Key, err error) {
	err = minisign.ErrKey
	said := ""
	for _, text := range keys {
		if signer, err = minisign.ParseKey(text); err != nil {
			return out, signer, fmt.Errorf("%.80q is no public key of minisign", text)
		}
		if said, err = minisign.Verify([]minisign.Key{signer}, of.file, signature); err == nil {
			break
		}
	}
	if err != nil {
		return out, signer, fmt.Errorf("the signature was not accepted: %w", err)
	}
	m := statement.FindStringSubmatch(said)
	if m == nil {
		return out, signer, fmt.Errorf("the trusted comment %q is not of the form %q", said,
			"yardmaster channel:CHANNEL version:VERSION target:OS/ARCH sha256:DIGEST [oldest:VERSION]")
	}
	out = Imported{Key: signer.Name(), Update: protocol.Update{
		Channel: m[1], Version: m[2], Target: m[3], SHA256: m[4], Oldest: m[5], Size: of.size, Signature: signature,
	}}
	switch {
	case out.SHA256 != of.sha:
		err = fmt.Errorf("the trusted comment is about other bytes: the SHA-256 of the file is %s", of.sha)
	case out.Channel == BuiltIn:
		err = fmt.Errorf("the channel %s is that of the server's own program", BuiltIn)
	case !version.Valid(out.Version) || out.Oldest != "" && !version.Valid(out.Oldest):
		err = fmt.Errorf("the trusted comment names a version that is none, such as v1.4.0")
	}
	return out, signer, err
}
