package acp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// MaxFrame limits a line, in bytes without its newline. Lines of many megabytes are
// ordinary, because a replayed session can contain whole files.
const MaxFrame = 64 << 20

// ErrFrameTooLong ends a connection whose peer sent a line longer than MaxFrame.
var ErrFrameTooLong = errors.New("acp: line longer than 64 MiB")

// frameReader splits a stream into its non-blank lines.
type frameReader struct {
	r   *bufio.Reader
	max int
}

func newFrameReader(r io.Reader, max int) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(r, 64<<10), max: max}
}

// next returns one line without its line end; the caller may keep the slice. It
// returns a last line without a newline before io.EOF.
func (f *frameReader) next() ([]byte, error) {
	for {
		line, err := f.line()
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// line reads up to a newline. It holds at most max bytes and one buffer.
func (f *frameReader) line() ([]byte, error) {
	var line []byte
	for {
		part, err := f.r.ReadSlice('\n')
		line = append(line, part...)
		if len(bytes.TrimRight(line, "\r\n")) > f.max {
			return nil, ErrFrameTooLong
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}
