package spool

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"yardmaster/internal/protocol"
)

// A line is the CRC-32C of the event in hexadecimal, a space, the event as JSON,
// and a line feed. The checksum distinguishes a whole line from one that a crash
// has torn or that a power cut has left as zeros.
const sumDigits = 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// segment is one file of consecutive events.
type segment struct {
	path    string
	file    *os.File
	first   int64   // number of its first event, or of the next one if it is empty
	offsets []int64 // where each event's line begins
	size    int64   // bytes of whole lines

	// allocated is the initial length of the file, whose zeros are overwritten: a
	// failed write must not free its blocks.
	allocated int64

	textBytes int64 // bytes of agent updates, which count for the cap
	capped    bool  // it contains the event that reports the cap
}

func segmentPath(dir string, first int64) string {
	return filepath.Join(dir, fmt.Sprintf("%012d.events", first))
}

func createSegment(dir string, first int64) (*segment, error) {
	path := segmentPath(dir, first)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syncDir(dir); err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(path))
	}
	return &segment{path: path, file: file, first: first}, nil
}

// openSegments opens the segments in dir, in order. On error it also returns those
// it has opened.
func openSegments(dir string) ([]*segment, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.events"))
	if err != nil {
		return nil, err
	}
	var out []*segment
	for i, path := range paths {
		newest := i == len(paths)-1
		g, err := openSegment(path)
		if err != nil {
			return out, err
		}
		if newest && len(g.offsets) == 0 && len(out) > 0 {
			// The segment was begun, and nothing was written before the crash.
			return out, g.remove()
		}
		out = append(out, g)
		switch {
		case i > 0 && g.first != out[i-1].last()+1:
			return out, fmt.Errorf("%s: the events before it end with %d", path, out[i-1].last())
		case newest:
			if err := g.file.Truncate(g.size); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

func openSegment(path string) (*segment, error) {
	name := strings.TrimSuffix(filepath.Base(path), ".events")
	first, err := strconv.ParseInt(name, 10, 64)
	if err != nil || first < 1 {
		return nil, fmt.Errorf("%s is not named by a number", path)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	g := &segment{path: path, file: file, first: first}
	lines := bufio.NewReaderSize(file, 256<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return g, nil
		}
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		e, err := parse(line)
		if err != nil || e.Seq != g.last()+1 {
			return g, nil
		}
		g.count(e, len(line))
	}
}

func parse(line []byte) (e protocol.Event, err error) {
	if len(line) < sumDigits+2 {
		return e, errors.New("short line")
	}
	body := line[sumDigits+1 : len(line)-1]
	if string(line[:sumDigits]) != sum(body) {
		return e, errors.New("bad checksum")
	}
	return e, json.Unmarshal(body, &e)
}

func sum(body []byte) string { return fmt.Sprintf("%08x", crc32.Checksum(body, castagnoli)) }

// count records a line that is in the file.
func (g *segment) count(e protocol.Event, length int) {
	g.offsets = append(g.offsets, g.size)
	g.size += int64(length)
	switch e.Kind {
	case protocol.EventUpdate, protocol.EventPermission:
		g.textBytes += charge(e.Data)
	case protocol.EventTruncated:
		g.capped = g.capped || isCap(e.Data)
	}
}

func (g *segment) last() int64 { return g.first + int64(len(g.offsets)) - 1 }

// write adds an event, or leaves the file unchanged.
func (g *segment) write(e protocol.Event) error {
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	line := make([]byte, 0, sumDigits+1+len(body)+1)
	line = append(line, sum(body)...)
	line = append(line, ' ')
	line = append(line, body...)
	line = append(line, '\n')
	if _, err := g.file.WriteAt(line, g.size); err != nil {
		return errors.Join(err, g.file.Truncate(max(g.size, g.allocated)))
	}
	g.count(e, len(line))
	return nil
}

func (g *segment) length(seq int64) int {
	end := g.size
	if seq < g.last() {
		end = g.offsets[seq-g.first+1]
	}
	return int(end - g.offsets[seq-g.first])
}

func (g *segment) event(seq int64) (protocol.Event, error) {
	line := make([]byte, g.length(seq))
	if _, err := g.file.ReadAt(line, g.offsets[seq-g.first]); err != nil {
		return protocol.Event{}, err
	}
	e, err := parse(line)
	if err != nil {
		return e, fmt.Errorf("%s, event %d: %w", g.path, seq, err)
	}
	return e, nil
}

func (g *segment) sync() error  { return g.file.Sync() }
func (g *segment) close() error { return g.file.Close() }

func (g *segment) remove() error {
	return errors.Join(g.file.Close(), os.Remove(g.path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
