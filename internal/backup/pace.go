package backup

import (
	"os"
	"time"
)

const (
	// stride is after how many bytes a backup has what it has written put on the disk. A server
	// whose writes wait for the disk waits for what others have written before: with a gigabyte of
	// it, for as long as the disk takes for a gigabyte.
	stride = 8 << 20
	// longestRest is how long a backup leaves the disk to others after a stride, at most.
	longestRest = time.Second
)

// pace shares the disk: after each stride a backup rests for as long as the stride took.
type pace struct {
	clock func() time.Time
	sleep func(time.Duration)
	n     int       // bytes of this stride
	began time.Time // this stride
}

// paced writes a file at a pace.
type paced struct {
	*pace
	file *os.File
}

func (p paced) Write(b []byte) (int, error) {
	if p.n == 0 {
		p.began = p.clock()
	}
	n, err := p.file.Write(b)
	if p.pace.n += n; err != nil || p.n < stride {
		return n, err
	}
	if err := p.file.Sync(); err != nil {
		return n, err
	}
	p.sleep(min(p.clock().Sub(p.began), longestRest))
	p.pace.n = 0
	return n, nil
}
