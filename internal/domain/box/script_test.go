package box

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestScriptInstalls runs the script on a machine without the program: it is given one, which joins,
// and nothing is installed that has another SHA-256.
func TestScriptInstalls(t *testing.T) {
	t.Parallel()
	program := "#!/bin/sh\necho \"$0 $*, token $YARDMASTER_ENROLL_TOKEN\"\n"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte(program))
	}))
	t.Cleanup(server.Close)
	sum := sha256.Sum256([]byte(program))
	right := hex.EncodeToString(sum[:])
	places := func(sum string) (out []Program) {
		for _, target := range []string{"linux/amd64", "linux/arm64", "plan9/386"} {
			out = append(out, Program{Target: target, URL: server.URL + "/x?a=1&b='2'", SHA256: sum})
		}
		return out
	}
	home := t.TempDir()
	path := os.Getenv("PATH")
	if _, err := exec.LookPath("yardmaster"); err == nil {
		t.Fatal("this machine has the program on its PATH")
	}
	run := func(sum string) (string, error) {
		sh := exec.Command("sh")
		sh.Env = []string{"HOME=" + home, "PATH=" + path}
		// A test must not write into /usr/local/bin, which root may.
		text := strings.ReplaceAll(begin("https://yard.example/it's", "dev_enr_secret", places(sum))+join, "/usr/local/bin", home+"/none")
		sh.Stdin = strings.NewReader(text)
		out, err := sh.CombinedOutput()
		return string(out), err
	}
	at := filepath.Join(home, ".local/bin/yardmaster")
	if out, err := run(strings.Repeat("0", 64)); err == nil || !strings.Contains(out, "is not its program: nothing was installed") {
		t.Errorf("with other bytes: %v, %s", err, out)
	}
	if left, _ := os.ReadDir(filepath.Dir(at)); len(left) > 0 {
		t.Errorf("%s is left", left[0].Name())
	}
	out, err := run(right)
	if want := at + " box join --url https://yard.example/it's, token dev_enr_secret\n"; err != nil || !strings.HasSuffix(out, want) {
		t.Errorf("%v, %q, not %q", err, out, want)
	}
	path = filepath.Dir(at) + ":" + path
	server.Close() // the program is there: nothing is fetched
	if out, err := run(right); err != nil || !strings.HasPrefix(out, at+" box join") {
		t.Errorf("again: %v, %s", err, out)
	}
}
