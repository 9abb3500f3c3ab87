package roots

import (
	"bytes"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
)

func certificate(name string) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(name)})
}

// The bundle has what Go would trust: the file, and each folder of the list, each
// certificate once, and nothing that is no certificate.
func TestBundle(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	secret := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("secret")})
	for name, text := range map[string][]byte{
		filepath.Join(dir, "own.pem"):      append(append([]byte("# ours\n"), secret...), certificate("own")...),
		filepath.Join(dir, "README"):       []byte("words"),
		filepath.Join(other, "one.pem"):    append(certificate("one"), certificate("own")...),
		filepath.Join(other, "broken.pem"): []byte("-----BEGIN CERTIFICATE-----\n"),
	} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set := func(file, folders string) { t.Setenv(fileVariable, file); t.Setenv(dirVariable, folders) }
	names := func(text []byte) (out []string) {
		for {
			var block *pem.Block
			if block, text = pem.Decode(text); block == nil {
				return out
			}
			out = append(out, string(block.Bytes))
		}
	}
	set("", "")
	if b, err := Bundle(); b != nil || err != nil {
		t.Errorf("without a variable: %q %v", b, err)
	}
	set(filepath.Join(dir, "own.pem"), dir+":/nonexistent:"+other)
	if b, err := Bundle(); err != nil || len(names(b)) != 2 || names(b)[0] != "own" || names(b)[1] != "one" {
		t.Errorf("a file and folders: %q %v", b, err)
	}
	set("", other)
	if b, err := Bundle(); err != nil || !bytes.Contains(b, certificate("one")) || bytes.Contains(b, []byte("PRIVATE")) {
		t.Errorf("a folder: %q %v", b, err)
	}
	for _, file := range []string{filepath.Join(dir, "gone.pem"), filepath.Join(dir, "README")} {
		set(file, "")
		if b, err := Bundle(); err == nil {
			t.Errorf("%s: %q", file, b)
		}
	}
}
