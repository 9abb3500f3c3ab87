package builtin

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/smarthttp"
)

// Kinds of objects in a pack.
const (
	packCommit = 1
	packTree   = 2
	packBlob   = 3
	packDelta  = 6 // against the object at a distance of so many bytes
)

// packed is a pack under construction.
type packed struct {
	bytes.Buffer
	n uint32
}

func (p *packed) add(kind int, size int, between, content []byte) {
	b := byte(kind<<4 | size&15)
	for size >>= 4; size > 0; size >>= 7 {
		p.WriteByte(b | 0x80)
		b = byte(size & 0x7f)
	}
	p.WriteByte(b)
	p.Write(between)
	z := zlib.NewWriter(p)
	z.Write(content)
	z.Close()
	p.n++
}

// object adds an object and returns its name.
func (p *packed) object(kind int, content []byte) [20]byte {
	p.add(kind, len(content), nil, content)
	name := map[int]string{packCommit: "commit", packTree: "tree", packBlob: "blob"}[kind]
	return sha1.Sum(fmt.Appendf(nil, "%s %d\x00%s", name, len(content), content))
}

func (p *packed) whole() string {
	head := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), p.n)
	all := append(head, p.Bytes()...)
	sum := sha1.Sum(all)
	return string(append(all, sum[:]...))
}

// grown is a pack of a few kilobytes with a blob of size bytes: a delta that copies
// the same base many times.
func grown(size int) string {
	var p packed
	base := make([]byte, 1<<24-1)
	p.object(packBlob, base)
	distance := p.Len()
	delta := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(len(base))), uint64(size))
	for left := size; left > 0; {
		n := min(left, len(base))
		delta = append(delta, 0xf0, byte(n), byte(n>>8), byte(n>>16))
		left -= n
	}
	far := []byte{byte(distance & 0x7f)}
	for distance >>= 7; distance > 0; distance >>= 7 {
		distance--
		far = append([]byte{0x80 | byte(distance&0x7f)}, far...)
	}
	p.add(packDelta, len(delta), far, delta)
	return p.whole()
}

// multiplied is a pack of a kilobyte with a commit of 10^depth files.
func multiplied(parent string, depth int) (pack, commit string) {
	var p packed
	name, mode := p.object(packBlob, []byte("x\n")), "100644"
	for range depth {
		var tree []byte
		for i := range 10 {
			tree = append(fmt.Appendf(tree, "%s n%d\x00", mode, i), name[:]...)
		}
		name, mode = p.object(packTree, tree), "40000"
	}
	text := fmt.Sprintf("tree %x\nparent %s\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\nmany\n", name, parent)
	sha := p.object(packCommit, []byte(text))
	return p.whole(), fmt.Sprintf("%x", sha)
}

func (s *site) pushPack(t *testing.T, ref, sha, pack string) string {
	t.Helper()
	s.allow("bomber", shop, everything)
	head := smarthttp.Pkt(codehost.ZeroSHA+" "+sha+" "+ref+"\x00report-status\n") + smarthttp.Flush
	status, _, body := get(t, "POST", s.CloneURL(shop)+"/git-receive-pack", "bomber", "application/x-git-receive-pack-request", head+pack)
	if status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	return body
}

// TestPushThatGrows holds that a small push whose objects unpack to gigabytes fails
// at the memory limit.
func TestPushThatGrows(t *testing.T) {
	s := newSite(t, "")
	w := start(t, s, shop)
	began := time.Now()
	answer := s.pushPack(t, "refs/heads/big", w.git("rev-parse", "main"), grown(3<<29))
	if !strings.Contains(answer, "unpack") || strings.Contains(answer, "unpack ok") {
		t.Errorf("after %s: %q", time.Since(began), answer)
	}
	if _, err := s.Head(t.Context(), shop, "big"); !errors.Is(err, codehost.ErrNotFound) {
		t.Error(err)
	}
	w.commit("after", "x", "x\n")
	w.git("push", "-q", "origin", "main")
}

// TestTreeThatMultiplies holds that a tree that contains itself many times is
// compared and merged within the caller's time and the server's memory.
func TestTreeThatMultiplies(t *testing.T) {
	s := newSite(t, "")
	w := start(t, s, shop)
	pack, sha := multiplied(w.git("rev-parse", "main"), 12)
	if answer := s.pushPack(t, "refs/heads/many", sha, pack); !strings.Contains(answer, "ok refs/heads/many") {
		t.Fatal(answer)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if c, err := s.Compare(ctx, shop, "main", "many"); err == nil {
		t.Errorf("%d paths", len(c.Paths))
	}
	// With fewer files git completes, but its output is too long.
	pack, sha = multiplied(w.git("rev-parse", "main"), 7)
	s.pushPack(t, "refs/heads/fewer", sha, pack)
	out, err := s.git.At(s.path(shop), "").Output(t.Context(), "ls-tree", "-r", "fewer")
	if err == nil || len(out) > 64<<20 {
		t.Errorf("%d bytes, %v", len(out), err)
	}
}
