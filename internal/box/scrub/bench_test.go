package scrub

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"
)

// tokens are so many secrets as services hand them out.
func tokens(n int) (out []string) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for i := range n {
		raw := make([]byte, 30)
		for k := range raw {
			raw[k] = byte(rnd.Uint32())
		}
		prefix := []string{"ghp_", "sk-ant-api03-", "postgres://app:", "AKIA", ""}[i%5]
		out = append(out, prefix+base64.RawURLEncoding.EncodeToString(raw))
	}
	return out
}

// texts are what to measure with: ordinary ones, and the worst that an agent
// could print who knows the beginnings of secrets.
func texts(secrets []string) map[string]func() []byte {
	raw := make([]byte, 1<<20)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range raw {
		raw[i] = byte(rnd.Uint32())
	}
	repeat := func(s string) func() []byte {
		return func() []byte { return bytes.Repeat([]byte(s), 1+1<<20/len(s)) }
	}
	beginnings := func(encode func(string) string) func() []byte {
		var b strings.Builder
		for _, s := range secrets {
			for n := len(s) - 1; n > 3 && b.Len() < 1<<17; n -= 3 {
				b.WriteString(encode(s[:n]))
			}
		}
		return repeat(b.String())
	}
	return map[string]func() []byte{
		"log": repeat("2026-11-22T09:05:13Z INFO go: downloading golang.org/x/crypto v0.58.0\n" +
			"ok  \tyardmaster/internal/box/scrub\t0.082s\n--- FAIL: TestForms (0.00s)\n    forms_test.go:42: got \"a b\", want 17\n"),
		"json": repeat(`{"jsonrpc":"2.0","method":"session/update","params":{"update":{"kind":"tool_call","text":"go test ` +
			`./internal/box/...\nok 0.31s\n"}}}` + "\n"),
		"base64":            func() []byte { return []byte(base64.StdEncoding.EncodeToString(raw)) },
		"hex":               func() []byte { return []byte(hex.EncodeToString(raw)) },
		"hex bytes":         func() []byte { return fmt.Appendf(nil, "% x", raw) },
		"bytes":             func() []byte { return raw },
		"white":             repeat(" \t\n"),
		"zeros":             repeat("0"),
		"escapes":           repeat(`\`),
		"entities":          repeat("&amp&am&#x&%\\u00"),
		"beginnings":        beginnings(func(s string) string { return s }),
		"hex of beginnings": beginnings(func(s string) string { return fmt.Sprintf("% x", s) }),
		"wide beginnings":   beginnings(func(s string) string { return strings.Join(strings.Split(s, ""), strings.Repeat(" ", 60)) }),
		"margins":           beginnings(func(s string) string { return s + "\n+" }),
	}
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkWriter says in cpuMB/s what one processor does: on a machine that
// others use as well, MB/s is less.
func BenchmarkWriter(b *testing.B) {
	for _, n := range []int{1, 20, 200} {
		secrets := tokens(n)
		for name, text := range texts(secrets) {
			b.Run(fmt.Sprintf("%s/%d", strings.ReplaceAll(name, " ", "_"), n), func(b *testing.B) {
				in, s := text(), New(secrets...)
				s.String("")
				b.SetBytes(int64(len(in)))
				before := processorTime()
				for b.Loop() {
					w := s.Writer(io.Discard)
					for at := 0; at < len(in); at += 32 << 10 {
						if _, err := w.Write(in[at:min(at+32<<10, len(in))]); err != nil {
							b.Fatal(err)
						}
					}
					if err := w.Close(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N)*float64(len(in))/1e6/(processorTime()-before).Seconds(), "cpuMB/s")
			})
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	for _, n := range []int{1, 20, 200} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				New(tokens(n)...).String("")
			}
		})
	}
}
