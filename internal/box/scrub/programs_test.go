package scrub

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// traceLength is how many characters of a form in a row tell something of a
// secret.
const traceLength = 12

// trace finds a part of a secret that is left in text, in any of the forms that
// the package promises to find, or "".
func trace(text, secret string) string {
	stripped := func(s string) string { return strings.Join(strings.Fields(s), "") }
	plain := secret
	for _, l := range strings.Split(secret, "\n") {
		if strings.Contains(l, "-----BEGIN ") || strings.Contains(l, "-----END ") {
			plain = strings.Replace(plain, l, "", 1)
		}
	}
	plain = strings.NewReplacer(`"private_key`, "", "-----BEGIN PRIVATE KEY-----", "", "-----END PRIVATE KEY-----", "").Replace(plain)
	wanted := []string{stripped(plain), hex.EncodeToString([]byte(secret)), base32.StdEncoding.EncodeToString([]byte(secret)),
		strings.NewReplacer(" ", "", ",", "").Replace(strings.Trim(fmt.Sprintf("%d", []byte(secret)), "[]"))}
	for before := range 3 {
		e := base64.RawStdEncoding.EncodeToString(append(make([]byte, before), secret...))
		wanted = append(wanted, e[(before*8+5)/6:])
	}
	parts := map[string]bool{}
	for _, w := range wanted {
		for i := 0; i+traceLength <= len(w); i++ {
			parts[w[i:i+traceLength]] = true
		}
	}
	query, err := url.QueryUnescape(strings.ReplaceAll(text, "+", "%2B"))
	if err != nil {
		query = ""
	}
	for _, v := range []string{text, html.UnescapeString(text), query, strings.ReplaceAll(text, `\`, ""),
		strings.NewReplacer(",", "", ":", "", "0x", "").Replace(text),
		strings.NewReplacer("-", "+", "_", "/").Replace(text)} {
		v = stripped(v)
		for i := 0; i+traceLength <= len(v); i++ {
			if parts[v[i:i+traceLength]] {
				return v[i : i+traceLength]
			}
		}
	}
	return ""
}

// secrets are invented; testdata/record.sh has shown all but the words.
func secrets(t *testing.T) map[string]string {
	out := map[string]string{}
	for _, name := range []string{"token", "pem", "account", "words"} {
		b, err := os.ReadFile("testdata/secrets/" + name)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = string(b)
	}
	return out
}

// slack is how much of a form that is no plain text can show where a piece ends:
// three symbols and what is between them.
const slack = 3 * 20

// hidden tells whether a scrubber takes a secret out of what a program printed:
// alone, as a string in JSON, and whatever the pieces in which it comes.
func hidden(t *testing.T, name, printed, secret string) {
	t.Helper()
	seen := trace(printed, secret) != ""
	s := New(secret)
	rnd := rand.New(rand.NewPCG(5, 6))
	for as, text := range map[string]string{"": printed, " in JSON": inJSON(printed), " in JSON in JSON": inJSON(inJSON(printed))} {
		got := s.String(text)
		if part := trace(got, secret); part != "" || !strings.Contains(got, Mark) {
			t.Errorf("%s%s: %q is left in\n%s", name, as, part, got)
		}
		if !seen && len(strings.Join(strings.Fields(got), "")) > len(text)/4+120 { // in a form that trace does not know
			t.Errorf("%s%s: much is left in\n%s", name, as, got)
		}
		for range 3 {
			pieces := stream(t, s, []byte(text), func(int) int { return 1 + rnd.IntN(40) })
			if trace(pieces, secret) != "" || strings.Count(pieces, Mark) != strings.Count(got, Mark) ||
				len(pieces) > len(got)+slack*strings.Count(got, Mark) {
				t.Fatalf("%s%s: in one piece\n%s\nin several\n%s", name, as, got, pieces)
			}
		}
	}
}

// TestWhatRecordedProgramsPrint holds the scrubber against programs that a
// machine need not have.
func TestWhatRecordedProgramsPrint(t *testing.T) {
	of := secrets(t)
	archive, err := txtar.ParseFile("testdata/recorded.txtar")
	if err != nil {
		t.Fatal(err)
	}
	if len(archive.Files) < 90 {
		t.Fatalf("only %d recordings", len(archive.Files))
	}
	for _, f := range archive.Files {
		secret, _, _ := strings.Cut(f.Name, ":")
		hidden(t, f.Name, string(f.Data), of[secret])
	}
}

// TestWhatProgramsPrint holds the scrubber against the programs of every Debian,
// git, and the perl that git needs there.
func TestWhatProgramsPrint(t *testing.T) {
	commands := []string{
		`cat $f`, `cat -A $f`, `cat -n $f`, `nl $f`, `sed 's/^/    /' $f`, `sed 's/^/> > /' $f`, `sed 's/$/\r/' $f`, `echo $X`,
		`pr -o 8 -t $f`, `fold -w 20 $f`, `fmt -w 30 $f`,
		`paste -s -d ' ' $f`, `tr -d '\n' <$f`, `tail -n 2 $f | head -n 1 | grep -n .`,
		`base64 $f`, `base64 -w 0 $f`, `base64 -w 20 $f`, `base64 $f | sed 's/^/  /'`, `base64 $f | sed 's/^/+/'`, `base64 $f | cat -n`,
		`base64 $f | cat -A`, `base32 $f`, `base32 -w 0 $f`,
		`basenc --base64url $f`, `basenc --base16 $f`, `printf 'user:%s' "$X" | base64`, `(printf aa; cat $f; echo tail) | base64`,
		`base64 -w 0 $f | od -c`,
		`od $f`, `od -c $f`, `od -b $f`, `od -x $f`, `od -tx1 $f`, `od -An -tx1 $f`, `od -tx1z $f`, `od -tu1 $f`, `od -An -td1 $f`,
		`od -Ax -tx1 -v $f`, `od -Ad -c $f`, `od -An -v -tx1 $f | tr -d ' \n'`,
		`printf %q "$X"`, `declare -p X`, `set -x; : "$X"`, `export -p | grep -A 12 X=`, `set | grep -a -A 12 ^X=`, `echo "${X@Q}"`,
		`echo "${X@E}"`, `printf '%s\n' "'${X//\'/\'\\\'\'}'"`,
		`diff /dev/null $f`, `diff -u /dev/null $f`, `git diff --no-index /dev/null $f`, `git diff --no-index --color=always /dev/null $f`,
		`git config --file /dev/null x.y; printf 'a: |\n' && sed 's/^/      /' $f`,
		`grep --color=always -e KGC -e Kw4 -e Leer $f`, `perl -e 'print unpack("H*", $ENV{X})'`,
		`perl -e 'print join(" ", unpack("C*", $ENV{X}))'`, `perl -e 'printf "\\x%02x", ord for split //, $ENV{X}'`,
		`perl -e 'printf "\\%03o", ord for split //, $ENV{X}'`, `perl -e 'printf "&#%d;", ord for split //, $ENV{X}'`,
		`perl -e 'printf "&#x%X;", ord for split //, $ENV{X}'`,
		`perl -e 'printf "\\u%04X", ord for split //, $ENV{X}'`, `perl -e 'printf "%%%02x", ord for split //, $ENV{X}'`,
		`perl -e 'printf "%%25%02X", ord for split //, $ENV{X}'`, `perl -e 'printf "0x%02x, ", ord for split //, $ENV{X}'`,
		`perl -MMIME::Base64 -e 'print encode_base64($ENV{X})'`, `perl -MData::Dumper -e 'print Dumper({x => $ENV{X}})'`,
	}
	for name, secret := range secrets(t) {
		file, err := filepath.Abs("testdata/secrets/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range commands {
			if name == "words" && strings.HasPrefix(c, "fold") {
				continue // which breaks characters in two
			}
			cmd := exec.Command("bash", "-c", c)
			cmd.Env = append(os.Environ(), "f="+file, "X="+secret, "LC_ALL=C")
			out, err := cmd.CombinedOutput()
			if bad, ok := err.(*exec.ExitError); err != nil && (!ok || bad.ExitCode() != 1) { // diff has found a difference
				t.Fatalf("%s: %v\n%s", c, err, out)
			}
			hidden(t, name+": "+c, string(out), secret)
		}
	}
}

// TestWhatGoPrints holds it against the verbs of Go.
func TestWhatGoPrints(t *testing.T) {
	for name, secret := range secrets(t) {
		for _, verb := range []string{"%s", "%q", "%+q", "%#q", "%x", "%X", "% x", "% X", "%# x", "%#v"} {
			hidden(t, name+" "+verb, fmt.Sprintf(verb, secret), secret)
		}
		for _, verb := range []string{"%v", "%d", "%x", "% x", "%#v", "%q", "%o"} {
			hidden(t, name+" bytes *"+verb, fmt.Sprintf(verb, []byte(secret)), secret)
		}
	}
}
