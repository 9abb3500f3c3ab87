package box

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"
)

// left opens the home of the agent, which follows no link out of it, and lists what stands in
// one of its folders, in order. home is nil if there is no such folder.
func (a *attempt) left(folder string) (home *os.Root, names []string) {
	home, err := os.OpenRoot(a.homePath())
	if err != nil {
		return nil, nil
	}
	dir, err := home.Open(folder)
	if err != nil {
		_ = home.Close()
		return nil, nil
	}
	defer dir.Close()
	names, err = dir.Readdirnames(outboxListed)
	if err != nil && !errors.Is(err, io.EOF) {
		a.log.Warn("a folder of the agent is not read", "folder", folder, "error", err)
	}
	slices.Sort(names)
	return home, names
}

// readLeft reads a regular file that an agent has left, of so many bytes at most. It refuses
// other files before it opens them, and opens without blocking, because the agent may replace
// the file in between.
func readLeft(home *os.Root, place string, most int64) ([]byte, error) {
	info, err := home.Lstat(place)
	if err != nil || !info.Mode().IsRegular() {
		return nil, errors.New("is not a regular file")
	}
	file, err := home.OpenFile(place, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, errors.New("cannot be opened")
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.New("is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	switch {
	case err != nil:
		return nil, errors.New("cannot be read")
	case int64(len(data)) > most:
		return nil, fmt.Errorf("has more than %d bytes", most)
	}
	return data, nil
}
