// Package unixfile is what Linux and macOS know of files in different words: the room of a file
// system, the times of a file, and how a folder is opened to its owner; and the lock of a file.
package unixfile

import "golang.org/x/sys/unix"

// Space is the room of a file system.
type Space struct {
	Total, Used, Free           int64 // bytes; Free is how many this process may still write
	Files, UsedFiles, FreeFiles int64 // 0 where the file system does not count files
}

// Room asks for the room of the file system that a folder is on.
func Room(dir string) (Space, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return Space{}, err
	}
	block := Wide(fs.Bsize)
	return Space{
		Total: int64(fs.Blocks) * block, Used: int64(fs.Blocks-fs.Bfree) * block, Free: int64(fs.Bavail) * block,
		Files: int64(fs.Files), UsedFiles: int64(fs.Files - fs.Ffree), FreeFiles: int64(fs.Ffree),
	}, nil
}

// Wide is a number whose width differs from system to system.
func Wide[T uint16 | int32 | uint32 | int64 | uint64](n T) int64 { return int64(n) }
